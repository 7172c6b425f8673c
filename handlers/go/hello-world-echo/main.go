// hello-world with the framework Echo (Debian: golang-github-labstack-echo-dev).
package main

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"handlers/serve"
)

func main() {
	server := echo.New()
	server.Any("/*", func(c echo.Context) error {
		return c.Blob(http.StatusOK, "text/plain", []byte("Hello, World!\n"))
	})
	serve.Run(server)
}

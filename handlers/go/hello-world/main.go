// The same few bytes for every request.
package main

import (
	"io"
	"net/http"

	"handlers/serve"
)

func main() {
	serve.Run(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("Content-Type", "text/plain")
		io.WriteString(response, "Hello, World!\n")
	}))
}

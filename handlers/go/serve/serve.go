// Package serve runs an http.Handler in the way in which the program was started.
package serve

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/fcgi"
	"os"
)

// Run serves as an HTTP server of its own with --port, as a CGI program where the environment has a request, and else as
// a FastCGI worker on the listening socket that is descriptor 0. It does not return after a failure.
func Run(handler http.Handler) {
	port := flag.Int("port", 0, "serve HTTP on this `port` of 127.0.0.1")
	flag.Parse()

	var err error
	switch {
	case *port != 0:
		err = http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), handler)
	case os.Getenv("REQUEST_METHOD") != "":
		err = cgi.Serve(handler)
	default:
		err = fcgi.Serve(nil, handler)
	}
	if err != nil {
		log.Fatal(err)
	}
}

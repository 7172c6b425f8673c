// POST {"name":"Johnny"} is answered with {"greeting":"Hello, Johnny!"}.
package main

import (
	"encoding/json"
	"io"
	"net/http"

	"handlers/serve"
)

const bodyMax = 64 << 10

type greeting struct {
	Greeting string `json:"greeting"`
}

func greet(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, bodyMax))
	if err != nil {
		http.Error(response, "the body is larger than 64 KiB, or was cut off", http.StatusRequestEntityTooLarge)
		return
	}
	var person struct{ Name *string }
	if json.Unmarshal(body, &person) != nil || person.Name == nil {
		http.Error(response, "expected a JSON object with a string, name", http.StatusBadRequest)
		return
	}
	response.Header().Set("Content-Type", "application/json")
	answer, _ := json.Marshal(greeting{"Hello, " + *person.Name + "!"})
	response.Write(answer)
}

func main() {
	serve.Run(http.HandlerFunc(greet))
}

// A function: {"name":"Johnny"} on standard input, {"greeting":"Hello, Johnny!"} on standard output (protocol: stdio).
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

import "C" // so that it starts by way of the C library, as a program that is to wait must

type greeting struct {
	Greeting string `json:"greeting"`
}

func main() {
	var person struct{ Name *string }
	body, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = json.Unmarshal(body, &person)
	}
	if err != nil || person.Name == nil {
		fmt.Fprintln(os.Stderr, "expected a JSON object with a string, name")
		os.Exit(1)
	}
	answer, _ := json.Marshal(greeting{"Hello, " + *person.Name + "!"})
	os.Stdout.Write(answer)
}

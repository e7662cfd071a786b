// A processor in Go, of the standard library: follows the links of each page and gives its title. Argiope finds both (`select`).
//
// Argiope starts it with the first page as its argument: processor = ["./titles", "https://shop.example/"], of `go build titles.go`.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

type object = map[string]any

type message struct {
	Type, Event, Rule string
	ID                int64
	Body              int64
	Response          struct{ URL string }
	Error             *struct{ Text string }
	Matches           []struct {
		Text       string
		Attributes map[string]string
	}
}

var in = bufio.NewReaderSize(os.Stdin, 1<<17)

// The next message and its body; io.EOF at the end.
func receive() (m message, body []byte, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return m, nil, err
	}
	if err = json.Unmarshal(line, &m); err != nil {
		return m, nil, err
	}
	body = make([]byte, m.Body)
	_, err = io.ReadFull(in, body)
	return m, body, err
}

func send(told object) {
	line, err := json.Marshal(told)
	if err != nil {
		line, _ = json.Marshal(object{"type": "done", "id": told["id"], "error": object{"text": err.Error()}})
	}
	os.Stdout.Write(append(line, '\n'))
}

func choose(page int64, css string) (message, error) {
	send(object{"type": "select", "id": page, "query": 1, "css": css, "give": []string{"text", "attributes"}})
	found, _, err := receive()
	if err == nil && found.Error != nil {
		err = fmt.Errorf("%s", found.Error.Text)
	}
	return found, err
}

func visit(call message, body []byte) (object, error) {
	if call.Event == "start" {
		return object{"pages": []object{{"url": os.Args[1], "rule": "page"}}}, nil
	}
	fmt.Fprintf(os.Stderr, "%d bytes from %s\n", len(body), call.Response.URL) // is the log
	titles, err := choose(call.ID, "h1")
	if err != nil {
		return nil, err
	}
	links, err := choose(call.ID, "a[href^=http]")
	pages := []object{}
	for _, link := range links.Matches {
		pages = append(pages, object{"url": link.Attributes["href"], "rule": "page"})
	}
	results := []object{}
	for _, title := range titles.Matches {
		results = append(results, object{"value": object{"title": title.Text}})
	}
	return object{"pages": pages, "results": results}, err
}

func main() {
	for {
		call, body, err := receive()
		if err != nil {
			return
		}
		switch call.Type {
		case "describe":
			send(object{"type": "described", "protocol": 1, "on": object{"start": "start"}, "rules": object{"page": object{"age_ms": 3600000}}})
		case "page":
			answer, err := visit(call, body)
			if err != nil {
				answer = object{"error": object{"text": err.Error()}}
			}
			answer["type"], answer["id"] = "done", call.ID
			send(answer)
		}
	}
}

// An origin that understands requests as Go's net/http does, and logs them: `go-origin ADDRESS LOG`.
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

func main() {
	out, err := os.OpenFile(os.Args[2], os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		line, _ := json.Marshal(map[string]any{
			"method": r.Method, "target": r.RequestURI, "start": string(body[:min(64, len(body))]),
			"whole": err == nil,
		})
		out.Write(append(line, '\n'))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	}
	server := &http.Server{Addr: os.Args[1], Handler: http.HandlerFunc(serve), IdleTimeout: 3 * time.Second,
		ReadTimeout: 3 * time.Second}
	log.Fatal(server.ListenAndServe())
}

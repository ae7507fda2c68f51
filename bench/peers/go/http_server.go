package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// httpServer returns what serves with net/http until the harness has no more to say: a goroutine for
// each connection of HTTP/1.1 and for each stream of HTTP/2.
func httpServer(p *params) func(h *harness) error {
	tls, http2 := p.get("tls") != 0, p.get("http2") != 0
	server := &http.Server{Handler: site(p)}
	if http2 {
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetHTTP2(true)
		server.Protocols.SetUnencryptedHTTP2(true)
	}
	return func(h *harness) error {
		if !tls {
			return serveBy(h, server.Serve)
		}
		certificate, key := os.Getenv("BENCH_CERTIFICATE"), os.Getenv("BENCH_KEY")
		if certificate == "" || key == "" {
			return fmt.Errorf("the environment variable BENCH_CERTIFICATE or BENCH_KEY is missing")
		}
		return serveBy(h, func(listener net.Listener) error {
			return server.ServeTLS(listener, certificate, key)
		})
	}
}

// site is the handler of http-server.
func site(p *params) http.Handler {
	delay, length := p.millis("delay_ms"), p.get("body")
	if p.err != nil {
		return nil
	}
	body := bytes.Repeat([]byte("x"), int(length))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		if delay > 0 {
			time.Sleep(delay)
		}
		answer(w, "Hello, World!")
	})
	mux.HandleFunc("GET /body", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	})
	mux.HandleFunc("POST /body", func(w http.ResponseWriter, r *http.Request) {
		length, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, strconv.FormatInt(length, 10))
	})
	return mux
}

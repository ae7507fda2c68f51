package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// serve serves over HTTP/1.1 until the harness has no more to say.
func serve(h *harness, handler http.Handler) error {
	return serveBy(h, func(listener net.Listener) error { return http.Serve(listener, handler) })
}

// serveBy has a server serve on a free port until the harness has no more to say. The listen backlog
// is Go's, which is the largest that the system allows.
func serveBy(h *harness, serve func(net.Listener) error) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	failed, ended := make(chan error, 1), make(chan error, 1)
	go func() { failed <- serve(listener) }()
	h.listening(listener.Addr().(*net.TCPAddr).Port)
	go func() { ended <- h.untilEnd() }()
	select {
	case err := <-failed:
		return err
	case err := <-ended:
		return err
	}
}

// hello answers with a greeting, after a while.
func hello(p *params) http.Handler {
	delay := p.millis("delay_ms")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		if delay > 0 {
			time.Sleep(delay)
		}
		answer(w, "Hello, World!")
	})
	return mux
}

// gateway answers with how much three calls of a backend brought.
func gateway(p *params) http.Handler {
	port := p.get("backend")
	p.require(port > 0 && port <= 65535, "backend must be a port")
	url := fmt.Sprintf("http://127.0.0.1:%d/", port)
	client := &http.Client{Transport: roomyTransport()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		var sum int
		for range 3 {
			length, err := fetch(r, client, url)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			sum += length
		}
		answer(w, strconv.Itoa(sum))
	})
	return mux
}

// roomyTransport is the default one, but keeps every connection that is idle: by default it keeps
// two for each host.
func roomyTransport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = 0 // no limit
	transport.MaxIdleConnsPerHost = 1 << 20
	return transport
}

// fetch returns the length of the body at this address. It gives up when whose request this is for
// is gone.
func fetch(r *http.Request, client *http.Client, url string) (int, error) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the backend answers %s", response.Status)
	}
	return len(body), nil
}

// answer writes a short text, whose length net/http puts into the header.
func answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, text)
}

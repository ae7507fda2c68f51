package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// messageSize is how many bytes go there and come back.
const messageSize = 64

// outcome is what became of a client: how many bytes came back right, or what went wrong.
type outcome struct {
	right uint64
	err   error
}

// echo has as many clients as connections talk to a server. Both sides are without delay
// (TCP_NODELAY), as Go's connections are unless told otherwise.
func echo(p *params) workload {
	connections, trips := p.get("connections"), p.get("trips")
	return func(h *harness) error {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer listener.Close()
		outcomes, open := make(chan outcome, connections+1), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := echoServer(listener, &wg); err != nil {
				outcomes <- outcome{err: err}
			}
		})
		for i := range connections {
			wg.Go(func() { echoClient(listener.Addr().String(), i, trips, open, outcomes) })
		}
		if _, err := collect(outcomes, connections); err != nil { // that they are connected
			return err
		}

		start := time.Now()
		close(open)
		right, err := collect(outcomes, connections)
		elapsed := time.Since(start)
		if err != nil {
			return err
		}
		all := connections * trips
		h.metric("round trip", per(elapsed, all, 1), "ns/round trip", right, all*messageSize)

		// So that the next round finds all file descriptors free.
		listener.Close()
		wg.Wait()
		return nil
	}
}

// collect adds up so many outcomes, or returns the first error.
func collect(outcomes <-chan outcome, n uint64) (right uint64, err error) {
	for range n {
		outcome := <-outcomes
		if outcome.err != nil {
			return 0, outcome.err
		}
		right += outcome.right
	}
	return right, nil
}

// echoServer serves until its listener is closed, each connection in a goroutine of the group.
func echoServer(listener net.Listener, wg *sync.WaitGroup) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
		wg.Go(func() { sendBack(conn) })
	}
}

// sendBack sends back what it gets. What goes wrong here the client gets to know. (Not io.Copy:
// between sockets it is a splice, with a pipe, two more file descriptors, for each connection.)
func sendBack(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		if _, err := conn.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// echoClient connects, tells so, makes its round trips when the gate is open, and tells how that
// went.
func echoClient(address string, id, trips uint64, open <-chan struct{}, outcomes chan<- outcome) {
	conn, err := net.Dial("tcp", address)
	outcomes <- outcome{err: err}
	if err != nil {
		return
	}
	defer conn.Close()
	<-open
	right, err := roundTrips(conn, id, trips)
	outcomes <- outcome{right, err}
}

// roundTrips returns how many bytes came back right.
func roundTrips(conn net.Conn, id, trips uint64) (right uint64, err error) {
	message, reply := make([]byte, messageSize), make([]byte, messageSize)
	binary.LittleEndian.PutUint64(message, id)
	for trip := range trips {
		binary.LittleEndian.PutUint64(message[8:], trip)
		if _, err := conn.Write(message); err != nil {
			return right, err
		}
		if _, err := io.ReadFull(conn, reply); err != nil {
			return right, err
		}
		if bytes.Equal(message, reply) {
			right += messageSize
		}
	}
	return right, nil
}

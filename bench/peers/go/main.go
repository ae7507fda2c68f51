// Command peer does the workloads of bench/PROTOCOL.md with goroutines.
package main

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
)

// A workload does its work once, and reports to the harness what it measured.
type workload func(h *harness) error

// The workloads that are done in rounds. Each is made once, of its parameters, and what it makes
// is asked for any number of rounds.
var workloads = map[string]func(p *params) workload{
	"spawn":          spawn,
	"yield":          yield,
	"pingpong":       pingpong,
	"parked":         parked,
	"sleepers":       sleepers,
	"deep":           deep,
	"cpu-bound":      cpuBound,
	"ticker":         ticker,
	"database":       database,
	"skynet":         skynet,
	"chain":          chain,
	"wait-and-hurry": waitAndHurry,
	"mutex":          mutex,
	"timers":         timers,
	"random-numbers": randomNumbers,
	"echo":           echo,
	"scope":          scope,
	"actor-messages": actorMessages,
	"actor-asks":     actorAsks,
	"actor-create":   actorCreate,
	"actor-idle":     actorIdle,
	"actor-chain":    actorChain,
	"actor-skynet":   actorSkynet,
}

// The workloads that serve until the harness has no more to say.
var servers = map[string]func(p *params) http.Handler{
	"serve":   hello,
	"gateway": gateway,
}

func main() {
	h := newHarness(os.Stdin, os.Stdout)
	h.hello("go", runtime.Version())
	os.Exit(run(h, os.Args[1:]))
}

// run does what the command line asks for, and returns the exit code.
func run(h *harness, args []string) int {
	if len(args) == 0 {
		return h.fail(fmt.Errorf("usage: peer WORKLOAD [key=value]..."), 2)
	}
	p, err := parseParams(args[1:])
	if err != nil {
		return h.fail(err, 2)
	}
	if makeHandler, ok := servers[args[0]]; ok {
		handler := makeHandler(p)
		if p.err != nil {
			return h.fail(p.err, 2)
		}
		if err := serve(h, handler); err != nil {
			return h.fail(err, 1)
		}
		return 0
	}
	if args[0] == "http-server" {
		serve := httpServer(p)
		if p.err != nil {
			return h.fail(p.err, 2)
		}
		if err := serve(h); err != nil {
			return h.fail(err, 1)
		}
		return 0
	}
	makeWorkload, ok := workloads[args[0]]
	if !ok {
		return h.fail(fmt.Errorf("there is no workload %q", args[0]), 2)
	}
	work := makeWorkload(p)
	if p.err != nil {
		return h.fail(p.err, 2)
	}
	return rounds(h, work)
}

// rounds does the work as often as the harness asks for it, and returns the exit code.
func rounds(h *harness, work workload) int {
	for {
		word, ok, err := h.next()
		switch {
		case err != nil:
			return h.fail(err, 1)
		case !ok:
			return 0
		case word != "round":
			return h.fail(fmt.Errorf("expected round, got %q", word), 2)
		}
		if err := caught(h, work); err != nil {
			return h.fail(err, 1)
		}
		h.end()
	}
}

// caught does the work, and turns a panic of the calling goroutine into an error. (One of another
// goroutine ends the process, as Go has it.)
func caught(h *harness, work workload) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return work(h)
}

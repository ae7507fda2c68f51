package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// harness is the other side: who says when to work, and gets to know what was measured.
type harness struct {
	in  *bufio.Scanner
	out *json.Encoder
}

func newHarness(in io.Reader, out io.Writer) *harness {
	return &harness{in: bufio.NewScanner(in), out: json.NewEncoder(out)}
}

// next waits for the next word; it is not ok at the end of input.
func (h *harness) next() (word string, ok bool, err error) {
	if !h.in.Scan() {
		return "", false, h.in.Err()
	}
	return strings.TrimSpace(h.in.Text()), true, nil
}

// untilEnd waits until there are no more words.
func (h *harness) untilEnd() error {
	for {
		if _, ok, err := h.next(); !ok {
			return err
		}
	}
}

// print writes a line, with a single unbuffered write. That it fails means that the harness is
// gone, and the end of input will end the peer.
func (h *harness) print(line any) {
	_ = h.out.Encode(line)
}

func (h *harness) hello(peer, version string) {
	h.print(struct {
		Peer    string `json:"peer"`
		Version string `json:"version"`
	}{peer, version})
}

// metric reports a number, with the check of the work: what came out, and what must.
func (h *harness) metric(name string, value float64, unit string, done, due uint64) {
	h.print(struct {
		Metric string  `json:"metric"`
		Value  float64 `json:"value"`
		Unit   string  `json:"unit"`
		Done   uint64  `json:"done"`
		Due    uint64  `json:"due"`
	}{name, value, unit, done, due})
}

// skip reports that a number cannot be had, and why.
func (h *harness) skip(metric, why string) {
	h.print(struct {
		Metric string `json:"metric"`
		Skip   string `json:"skip"`
	}{metric, why})
}

// at stands still, to be looked at from outside, and reports how many more of the same there are
// to be before it goes on.
func (h *harness) at(place string, count uint64) (more uint64, err error) {
	h.print(struct {
		At    string `json:"at"`
		Count uint64 `json:"count"`
	}{place, count})
	word, ok, err := h.next()
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, fmt.Errorf("expected go or more, got the end of input")
	}
	if word == "go" {
		return 0, nil
	}
	if number, ok := strings.CutPrefix(word, "more "); ok {
		if more, err = strconv.ParseUint(number, 10, 64); err == nil {
			return more, nil
		}
	}
	return 0, fmt.Errorf("expected go or more and a number, got %q", word)
}

func (h *harness) listening(port int) {
	h.print(struct {
		Listening int `json:"listening"`
	}{port})
}

func (h *harness) end() {
	h.print(struct {
		End bool `json:"end"`
	}{true})
}

// fail reports why there is nothing to measure, and returns the exit code it was given.
func (h *harness) fail(err error, code int) int {
	h.print(struct {
		Error string `json:"error"`
	}{err.Error()})
	return code
}

// params are the key=value arguments. What is wrong with them is kept in err, to be looked at
// once all have been asked for.
type params struct {
	values map[string]string
	err    error
}

func parseParams(args []string) (*params, error) {
	values := make(map[string]string)
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not key=value", arg)
		}
		values[key] = value
	}
	return &params{values: values}, nil
}

// get returns the number of a key.
func (p *params) get(key string) uint64 {
	text, ok := p.values[key]
	p.require(ok, "the parameter %s is missing", key)
	if !ok {
		return 0
	}
	value, err := strconv.ParseUint(text, 10, 64)
	p.require(err == nil, "the parameter %s is %q, which is no number", key, text)
	return value
}

// millis returns the time in milliseconds of a key.
func (p *params) millis(key string) time.Duration {
	return time.Duration(p.get(key)) * time.Millisecond
}

// require keeps the message as the error of the parameters, if this does not hold and all was well
// until now.
func (p *params) require(holds bool, format string, args ...any) {
	if !holds && p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// per returns how many units of time each of n equal pieces of work took.
func per(elapsed time.Duration, n uint64, unit time.Duration) float64 {
	if n == 0 {
		return 0
	}
	return float64(elapsed) / float64(unit) / float64(n)
}

// sumBelow returns 0 + 1 + … + (n − 1).
func sumBelow(n uint64) uint64 {
	return n * (n - 1) / 2
}

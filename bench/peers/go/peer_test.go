package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Every language computes these numbers; others would mean that it does other work.
func TestComputeIsTheAgreedOne(t *testing.T) {
	for _, c := range []struct{ iterations, seed, want uint64 }{
		{0, 6, 7},
		{1, 0, 1082269761},
		{1000, 7, 15073333303738932546},
	} {
		if got := compute(c.iterations, c.seed); got != c.want {
			t.Errorf("compute(%d, %d) = %d, want %d", c.iterations, c.seed, got, c.want)
		}
	}
}

// descendByLoops is descend without calls: down with the frames on a slice, and up again.
func descendByLoops(depth, x uint64) uint64 {
	type frame struct{ a, b, c, d uint64 }
	var frames []frame
	for ; depth > 0; depth-- {
		a := x*6364136223846793005 + depth
		b := a ^ (a >> 29)
		c := b*3 + depth
		d := c ^ (c << 7)
		frames = append(frames, frame{a, b, c, d})
		x = d
	}
	for i := len(frames) - 1; i >= 0; i-- {
		f := frames[i]
		x = ((((x^f.a)*31 + f.b) ^ f.c) * 31) + f.d
	}
	return x
}

func TestDescendComesBackWithTheSumOfItsFrames(t *testing.T) {
	for _, depth := range []uint64{0, 1, 2, 100, 1000} {
		bottoms := 0
		got := descend(depth, 7, func() { bottoms++ })
		if want := descendByLoops(depth, 7); got != want {
			t.Errorf("descend(%d, 7) = %d, want %d", depth, got, want)
		}
		if bottoms != 1 {
			t.Errorf("descend(%d, 7) was at the bottom %d times", depth, bottoms)
		}
	}
}

// line is any line of the protocol.
type line struct {
	Metric, Skip, Unit, At, Error string
	Value                         *float64
	Done, Due, Count              uint64
	End                           bool
}

// say runs a workload with these words as input, and returns its exit code and what it printed.
func say(t *testing.T, args string, words ...string) (code int, lines []line) {
	t.Helper()
	var out bytes.Buffer
	in := strings.NewReader(strings.Join(words, "\n") + "\n")
	code = run(newHarness(in, &out), strings.Fields(args))
	scanner := bufio.NewScanner(&out)
	for scanner.Scan() {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			t.Fatalf("%q: %v", scanner.Text(), err)
		}
		lines = append(lines, l)
	}
	return code, lines
}

func TestEveryWorkloadDoesItsWorkAgainAndAgain(t *testing.T) {
	cases := []struct {
		args, metrics string
		words         []string // of a round
	}{
		{"spawn burst=10 inside=5 main=3", "burst,join inside,join main", []string{"round"}},
		{"yield yields=10", "yield,switch", []string{"round"}},
		{"pingpong trips=10", "channel,park", []string{"round"}},
		{"parked step=10", "spawn,wake", []string{"round", "more 10", "go"}},
		{"sleepers threads=3 ms=1", "wall", []string{"round"}},
		{"deep threads=5 depth=100", "sink,wake,pause", []string{"round", "go"}},
		{"cpu-bound tasks=3 iterations=100", "wall", []string{"round"}},
		{"ticker tasks=3 iterations=100000", "p50,p99,max", []string{"round"}},
		{"database tasks=10 permits=2 ms=1", "wall", []string{"round"}},
		{"skynet threads=1000", "wall", []string{"round"}},
		{"chain threads=10", "wall", []string{"round"}},
		{"wait-and-hurry tasks=3 ms=1 iterations=100", "wall", []string{"round"}},
		{"mutex threads=4 ops=100", "lock", []string{"round"}},
		{"timers threads=10 waits=10", "arm,rearm,cancel", []string{"round"}},
		{"random-numbers tasks=3 times=2 ms=1", "wall", []string{"round"}},
		{"echo connections=4 trips=5", "round trip", []string{"round"}},
		{"scope two=5 many=2 forks=7 first=3 tasks=5", "two,many,first", []string{"round"}},
		{"actor-messages messages=50 many=20", "1 to 1,4 to 4,4 to 1", []string{"round"}},
		{"actor-asks crowd=3 tells=20 asks=5 turns=6 each=4", "tell,ask,in turn,replies", []string{"round"}},
		{"actor-create actors=10", "create,create and end", []string{"round"}},
		{"actor-idle actors=10", "ask", []string{"round", "go"}},
		{"actor-chain row=10", "wall", []string{"round"}},
		{"actor-skynet leaves=1000", "wall", []string{"round"}},
	}
	if len(cases) != len(workloads) {
		t.Errorf("%d workloads of %d are tested", len(cases), len(workloads))
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			code, lines := say(t, c.args, append(c.words, c.words...)...)
			var metrics []string
			ends := 0
			for _, l := range lines {
				switch {
				case l.End:
					ends++
				case l.Metric != "":
					metrics = append(metrics, l.Metric)
					if l.Skip == "" && (l.Value == nil || l.Unit == "" || l.Done != l.Due) {
						t.Errorf("no good number: %+v", l)
					}
				case l.At == "":
					t.Errorf("unexpected line: %+v", l)
				}
			}
			if got, want := strings.Join(metrics, ","), c.metrics+","+c.metrics; got != want {
				t.Errorf("metrics are %s, want %s", got, want)
			}
			if code != 0 || ends != 2 {
				t.Errorf("exit code %d after %d rounds", code, ends)
			}
		})
	}
}

func TestMoreParksMore(t *testing.T) {
	_, lines := say(t, "parked step=10", "round", "more 10", "go")
	var counts []uint64
	for _, l := range lines {
		if l.At == "parked" {
			counts = append(counts, l.Count)
		}
	}
	if len(counts) != 2 || counts[0] != 10 || counts[1] != 20 {
		t.Errorf("stood still at %v, want 10 and 20", counts)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	for _, c := range []struct {
		args, word, want string
		code             int
	}{
		{"", "round", "usage", 2},
		{"nothing", "round", `no workload "nothing"`, 2},
		{"chain", "round", "threads is missing", 2},
		{"chain threads=many", "round", `"many"`, 2},
		{"chain threads", "round", "not key=value", 2},
		{"mutex threads=3 ops=10", "round", "divide", 2},
		{"skynet threads=20", "round", "power of ten", 2},
		{"scope two=1 many=1 forks=1 first=1 tasks=0", "round", "tasks must not be 0", 2},
		{"serve", "", "delay_ms is missing", 2},
		{"http-server tls=0 http2=0 delay_ms=0", "", "body is missing", 2},
		{"gateway backend=65536", "", "must be a port", 2},
		{"chain threads=3", "rund", `"rund"`, 2},
		{"parked step=3", "round", "end of input", 1},
	} {
		code, lines := say(t, c.args, c.word)
		if len(lines) != 1 && !(c.args == "parked step=3" && len(lines) == 2) {
			t.Errorf("%q: %+v", c.args, lines)
			continue
		}
		if got := lines[len(lines)-1].Error; code != c.code || !strings.Contains(got, c.want) {
			t.Errorf("%q: exit code %d and %q, want %d and %q", c.args, code, got, c.code, c.want)
		}
	}
}

func TestAPanicIsAnError(t *testing.T) {
	err := caught(nil, func(*harness) error { panic("oh") })
	if err == nil || !strings.Contains(err.Error(), "oh") {
		t.Errorf("got %v", err)
	}
}

// serverOf starts a workload that serves, and returns its address.
func serverOf(t *testing.T, name, key, value string) string {
	t.Helper()
	p := &params{values: map[string]string{key: value}}
	server := httptest.NewServer(servers[name](p))
	t.Cleanup(server.Close)
	if p.err != nil {
		t.Fatal(p.err)
	}
	return server.URL
}

// fetched returns the status, the kind and the text of an answer.
func fetched(t *testing.T, address string) (int, string, string) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.ContentLength != int64(len(body)) {
		t.Errorf("Content-Length is %d of %d", response.ContentLength, len(body))
	}
	return response.StatusCode, response.Header.Get("Content-Type"), string(body)
}

func TestTheGatewayAddsUpItsCalls(t *testing.T) {
	backend := serverOf(t, "serve", "delay_ms", "1")
	if status, kind, body := fetched(t, backend); status != 200 || kind != "text/plain" || body != "Hello, World!" {
		t.Errorf("the backend answers %d, %s, %q", status, kind, body)
	}
	address, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	front := serverOf(t, "gateway", "backend", address.Port())
	if status, kind, body := fetched(t, front); status != 200 || kind != "text/plain" || body != "39" {
		t.Errorf("the gateway answers %d, %s, %q", status, kind, body)
	}
}

func TestAGatewayWithoutBackendSaysSo(t *testing.T) {
	gone := httptest.NewServer(nil)
	address, err := url.Parse(gone.URL)
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	front := serverOf(t, "gateway", "backend", address.Port())
	if status, _, body := fetched(t, front); status != 502 || !strings.Contains(body, "connection refused") {
		t.Errorf("the gateway answers %d, %q", status, body)
	}
}

func TestTheSiteCountsAndSendsBodies(t *testing.T) {
	p := &params{values: map[string]string{"delay_ms": "1", "body": "70000"}}
	server := httptest.NewServer(site(p))
	defer server.Close()
	if status, _, body := fetched(t, server.URL); status != 200 || body != "Hello, World!" {
		t.Errorf("it answers %d, %q", status, body)
	}
	long := strings.Repeat("x", 70000)
	if status, kind, body := fetched(t, server.URL+"/body"); status != 200 || kind != "application/octet-stream" || body != long {
		t.Errorf("it answers %d, %s, %d bytes", status, kind, len(body))
	}
	response, err := http.Post(server.URL+"/body", "application/octet-stream", strings.NewReader(long))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "70000" {
		t.Errorf("it answers %q, %v", body, err)
	}
}

func TestAServerWithoutCertificateSaysSo(t *testing.T) {
	t.Setenv("BENCH_CERTIFICATE", "")
	code, lines := say(t, "http-server delay_ms=0 connections=1 http2=0 tls=1 body=0")
	if last := lines[len(lines)-1]; code != 1 || !strings.Contains(last.Error, "BENCH_CERTIFICATE") {
		t.Errorf("exit code %d and %+v", code, lines)
	}
}

package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// muster counts goroutines as they come to a place, and lets another wait until all are there. It
// is a sync.WaitGroup that can also tell how many came.
type muster struct {
	due     uint64
	arrived atomic.Uint64
	all     chan struct{}
}

func newMuster(due uint64) *muster {
	m := &muster{due: due, all: make(chan struct{})}
	if due == 0 {
		close(m.all)
	}
	return m
}

// arrive tells that one more is there.
func (m *muster) arrive() {
	if m.arrived.Add(1) == m.due {
		close(m.all)
	}
}

// wait waits until all are there, and returns their number.
func (m *muster) wait() uint64 {
	<-m.all
	return m.arrived.Load()
}

// parked has goroutines wait, to be looked at, and wakes them.
func parked(p *params) workload {
	step := p.get("step")
	return func(h *harness) error {
		var wg sync.WaitGroup
		var woken atomic.Uint64
		wake := make(chan struct{})

		var waiting, due uint64
		var spawning time.Duration
		for more := step; more > 0; {
			start := time.Now()
			there := newMuster(more)
			for range more {
				wg.Go(func() {
					there.arrive()
					<-wake
					woken.Add(1)
				})
			}
			waiting += there.wait()
			spawning += time.Since(start)
			due += more

			runtime.GC()
			var err error
			if more, err = h.at("parked", waiting); err != nil {
				return err
			}
		}
		h.metric("spawn", per(spawning, due, 1), "ns/thread", waiting, due)

		start := time.Now()
		close(wake)
		wg.Wait()
		waking := time.Since(start)
		h.metric("wake", per(waking, due, 1), "ns/thread", woken.Load(), due)
		return nil
	}
}

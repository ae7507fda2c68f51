package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// yield measures what it takes to give the core to another goroutine. The process has one core.
func yield(p *params) workload {
	yields := p.get("yields")
	return func(h *harness) error {
		var last atomic.Int64
		var calls, switches [2]uint64
		var wg sync.WaitGroup
		ready, open := newMuster(2), make(chan struct{})
		for me := range int64(2) {
			wg.Go(func() {
				ready.arrive()
				<-open
				calls[me], switches[me] = yieldOften(&last, me, yields)
			})
		}
		ready.wait()
		start := time.Now()
		close(open)
		wg.Wait()
		elapsed := time.Since(start)
		h.metric("yield", per(elapsed, 2*yields, 1), "ns/yield", calls[0]+calls[1], 2*yields)
		switched := switches[0] + switches[1]
		if switched > 0 {
			h.metric("switch", per(elapsed, switched, 1), "ns/switch", switched, switched)
		} else {
			h.skip("switch", "no call let the other run")
		}
		return nil
	}
}

// yieldOften returns how often it has yielded, and after how many times of these another goroutine
// had run.
func yieldOften(last *atomic.Int64, me int64, times uint64) (calls, switches uint64) {
	for range times {
		last.Store(me)
		runtime.Gosched()
		calls++
		if last.Load() != me {
			switches++
		}
	}
	return calls, switches
}

// pingpong measures how long a number takes to another goroutine and back.
func pingpong(p *params) workload {
	trips := p.get("trips")
	return func(h *harness) error {
		took := in(func() measured { return overChannels(trips) })
		h.metric("channel", per(took.elapsed, trips, 1), "ns/round trip", took.done, 2*trips)
		h.skip("park", "Go has no park")
		return nil
	}
}

func overChannels(trips uint64) measured {
	there, back := make(chan uint64), make(chan uint64)
	go func() {
		for number := range there {
			back <- number + 1
		}
	}()
	defer close(there)

	var number uint64
	start := time.Now()
	for range trips {
		there <- number + 1
		number = <-back
	}
	return measured{number, time.Since(start)}
}

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// deep has goroutines wait at the bottom of many calls, and watches how long the others, of whom
// a ticker is one, are kept from running.
func deep(p *params) workload {
	threads, depth := p.get("threads"), p.get("depth")
	var due uint64
	for i := range threads {
		due += descend(depth, i, func() {})
	}
	return func(h *harness) error {
		var wg sync.WaitGroup
		var sum atomic.Uint64
		bottom, wake := newMuster(threads), make(chan struct{})

		watch := startWatch()
		start := time.Now()
		for i := range threads {
			wg.Go(func() {
				sum.Add(descend(depth, i, func() {
					bottom.arrive()
					<-wake
				}))
			})
		}
		waiting := bottom.wait()
		sinking := time.Since(start)
		pause := watch.stop()

		if more, err := h.at("deep", waiting); err != nil {
			return err
		} else if more > 0 {
			return fmt.Errorf("deep does not do more")
		}

		watch = startWatch()
		start = time.Now()
		close(wake)
		wg.Wait()
		waking := time.Since(start)
		pause = max(pause, watch.stop())

		h.metric("sink", per(sinking, threads, time.Microsecond), "µs/thread", waiting, threads)
		h.metric("wake", per(waking, threads, time.Microsecond), "µs/thread", sum.Load(), due)
		h.metric("pause", per(pause, 1, time.Millisecond), "ms", waiting, threads)
		return nil
	}
}

// descend calls itself until depth is zero, calls bottom there, and has work left to do on the way
// back in each frame.
func descend(depth, x uint64, bottom func()) uint64 {
	if depth == 0 {
		bottom()
		return x
	}
	a := x*6364136223846793005 + depth
	b := a ^ (a >> 29)
	c := b*3 + depth
	d := c ^ (c << 7)
	r := descend(depth-1, d, bottom)
	return ((((r^a)*31 + b) ^ c) * 31) + d
}

// watch is a goroutine that sleeps a millisecond again and again. It does not run while the peer
// stands still, so that this is no lateness.
type watch struct {
	stopping atomic.Bool
	longest  chan time.Duration
}

func startWatch() *watch {
	w := &watch{longest: make(chan time.Duration)}
	last := time.Now()
	go func() {
		var longest time.Duration
		for stopping := false; !stopping; {
			stopping = w.stopping.Load()
			time.Sleep(time.Millisecond)
			now := time.Now()
			longest = max(longest, now.Sub(last)-time.Millisecond)
			last = now
		}
		w.longest <- longest
	}()
	return w
}

// stop waits for another waking, and returns the longest time that was more than a millisecond
// from one waking to the next: by how much it was more.
func (w *watch) stop() time.Duration {
	w.stopping.Store(true)
	return <-w.longest
}

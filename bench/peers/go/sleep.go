package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// sleepers sleep, and print their numbers.
func sleepers(p *params) workload {
	threads, pause := p.get("threads"), p.millis("ms")
	return func(h *harness) error {
		var wg sync.WaitGroup
		var sum atomic.Uint64
		start := time.Now()
		for i := range threads {
			wg.Go(func() {
				time.Sleep(pause)
				fmt.Println(i)
				sum.Add(i)
			})
		}
		wg.Wait()
		wall := time.Since(start)
		h.metric("wall", wall.Seconds(), "s", sum.Load(), sumBelow(threads))
		return nil
	}
}

// chance is where the random numbers go, so that they are used.
var chance atomic.Uint64

// randomNumbers sleep and draw, again and again.
func randomNumbers(p *params) workload {
	tasks, times, pause := p.get("tasks"), p.get("times"), p.millis("ms")
	return func(h *harness) error {
		var wg sync.WaitGroup
		var drawn atomic.Uint64
		start := time.Now()
		for range tasks {
			wg.Go(func() {
				var sum uint64
				for range times {
					time.Sleep(pause)
					sum += rand.Uint64()
				}
				chance.Add(sum)
				drawn.Add(times)
			})
		}
		wg.Wait()
		wall := time.Since(start)
		h.metric("wall", wall.Seconds(), "s", drawn.Load(), tasks*times)
		return nil
	}
}

// longTime is a time limit that is never reached.
const longTime = 600 * time.Second

// wokenWithin waits to be woken, but not longer than this; it tells whether it was.
func wokenWithin(limit time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-wake:
		return true
	case <-timer.C:
		return false
	}
}

// timers measures waits with a time limit, while there are many of them.
func timers(p *params) workload {
	threads, waits := p.get("threads"), p.get("waits")
	return func(h *harness) error {
		var wg sync.WaitGroup
		var woken atomic.Uint64
		armed, wake := newMuster(threads), make(chan struct{})
		start := time.Now()
		for i := range threads {
			limit := longTime + time.Duration(i%1000)*time.Millisecond
			wg.Go(func() {
				armed.arrive()
				if wokenWithin(limit, wake) {
					woken.Add(1)
				}
			})
		}
		waiting := armed.wait()
		arming := time.Since(start)
		h.metric("arm", per(arming, threads, 1), "ns/timer", waiting, threads)

		turns := passTurns(waits)
		h.metric("rearm", per(turns.elapsed, 2*waits, 1), "ns/timed wait", turns.done, 2*waits)

		start = time.Now()
		close(wake)
		wg.Wait()
		cancelling := time.Since(start)
		h.metric("cancel", per(cancelling, threads, 1), "ns/timer", woken.Load(), threads)
		return nil
	}
}

// passTurns has two goroutines pass a turn to and fro, and counts the turns that were taken.
func passTurns(roundTrips uint64) measured {
	// With room for the turn, so that only the wait for it waits.
	left, right := make(chan struct{}, 1), make(chan struct{}, 1)
	var wg sync.WaitGroup
	var turns atomic.Uint64
	take := func(mine <-chan struct{}, other chan<- struct{}) {
		var taken uint64
		for range roundTrips {
			if !wokenWithin(longTime, mine) {
				break
			}
			taken++
			other <- struct{}{}
		}
		turns.Add(taken)
	}
	wg.Go(func() { take(left, right) })
	wg.Go(func() { take(right, left) })
	start := time.Now()
	left <- struct{}{}
	wg.Wait()
	return measured{turns.Load(), time.Since(start)}
}

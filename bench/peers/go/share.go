package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// mutex has goroutines take the same lock again and again.
func mutex(p *params) workload {
	threads, ops := p.get("threads"), p.get("ops")
	p.require(threads > 0 && ops%max(threads, 1) == 0, "threads must divide ops")
	return func(h *harness) error {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var number uint64
		ready, open := newMuster(threads), make(chan struct{})
		for range threads {
			wg.Go(func() {
				ready.arrive()
				<-open
				for range ops / threads {
					mu.Lock()
					number++
					mu.Unlock()
				}
			})
		}
		ready.wait()
		start := time.Now()
		close(open)
		wg.Wait()
		elapsed := time.Since(start)
		h.metric("lock", per(elapsed, ops, 1), "ns/lock", number, ops)
		return nil
	}
}

// database lets goroutines make queries, so many at once as there are permits.
func database(p *params) workload {
	tasks, permits, query := p.get("tasks"), p.get("permits"), p.millis("ms")
	p.require(permits > 0, "there must be a permit")
	return func(h *harness) error {
		var wg sync.WaitGroup
		var done atomic.Uint64
		var holders, breaches atomic.Int64
		semaphore := make(chan struct{}, permits)
		start := time.Now()
		for range tasks {
			wg.Go(func() {
				semaphore <- struct{}{}
				if holders.Add(1) > int64(permits) {
					breaches.Add(1)
				}
				time.Sleep(query)
				holders.Add(-1)
				<-semaphore
				done.Add(1)
			})
		}
		wg.Wait()
		wall := time.Since(start)
		if n := breaches.Load(); n > 0 {
			return fmt.Errorf("%d times more than %d held a permit", n, permits)
		}
		h.metric("wall", wall.Seconds(), "s", done.Load(), tasks)
		return nil
	}
}

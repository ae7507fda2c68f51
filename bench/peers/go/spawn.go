package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// spawn measures what it takes to start goroutines, many at once and one after the other.
func spawn(p *params) workload {
	many, inside, main := p.get("burst"), p.get("inside"), p.get("main")
	return func(h *harness) error {
		took := in(func() measured { return burst(many) })
		h.metric("burst", per(took.elapsed, many, 1), "ns/thread", took.done, sumBelow(many))

		took = in(func() measured { return joinEach(inside) })
		h.metric("join inside", per(took.elapsed, inside, 1), "ns/thread", took.done, sumBelow(inside))

		took = joinEach(main)
		h.metric("join main", per(took.elapsed, main, 1), "ns/thread", took.done, sumBelow(main))
		return nil
	}
}

// measured is what came out of a piece of work, and how long it took.
type measured struct {
	done    uint64
	elapsed time.Duration
}

// in returns what a function returns that is called in a goroutine of its own.
func in[T any](f func() T) T {
	result := make(chan T, 1)
	go func() { result <- f() }()
	return <-result
}

func burst(n uint64) measured {
	var sum atomic.Uint64
	var wg sync.WaitGroup
	start := time.Now()
	for i := range n {
		wg.Go(func() { sum.Add(i) })
	}
	wg.Wait()
	return measured{sum.Load(), time.Since(start)}
}

func joinEach(n uint64) measured {
	var sum uint64
	start := time.Now()
	for i := range n {
		sum += in(func() uint64 { return i })
	}
	return measured{sum, time.Since(start)}
}

// skynet adds up numbers in a tree of goroutines, ten below each.
func skynet(p *params) workload {
	threads := p.get("threads")
	p.require(isPowerOfTen(threads), "threads must be a power of ten")
	return func(h *harness) error {
		result := make(chan uint64)
		start := time.Now()
		go sumRange(result, 0, threads)
		sum := <-result
		wall := time.Since(start)
		h.metric("wall", wall.Seconds(), "s", sum, sumBelow(threads))
		return nil
	}
}

func sumRange(result chan<- uint64, first, size uint64) {
	if size == 1 {
		result <- first
		return
	}
	parts := make(chan uint64)
	for i := range uint64(10) {
		go sumRange(parts, first+i*(size/10), size/10)
	}
	var sum uint64
	for range 10 {
		sum += <-parts
	}
	result <- sum
}

func isPowerOfTen(n uint64) bool {
	for n >= 10 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}

// chain passes a number through a row of goroutines.
func chain(p *params) workload {
	threads := p.get("threads")
	return func(h *harness) error {
		var wg sync.WaitGroup
		start := time.Now()
		leftmost := make(chan uint64)
		rightmost := leftmost
		for range threads {
			left, right := rightmost, make(chan uint64)
			wg.Go(func() { left <- <-right + 1 })
			rightmost = right
		}
		// In a goroutine of its own, because without a row this is sent to who receives below.
		go func() { rightmost <- 0 }()
		number := <-leftmost
		wg.Wait()
		wall := time.Since(start)
		h.metric("wall", wall.Seconds(), "s", number, threads)
		return nil
	}
}

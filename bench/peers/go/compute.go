package main

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// compute is the work that is the same in every language.
func compute(iterations, seed uint64) uint64 {
	x := seed | 1
	for range iterations {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// computed returns the sum of what the tasks 0 … tasks−1 must compute.
func computed(tasks, iterations uint64) uint64 {
	var result uint64
	for i := range tasks {
		result += compute(iterations, i)
	}
	return result
}

// computeAll has each task wait and compute in a goroutine of its own, and returns the sum of the
// results.
func computeAll(tasks, iterations uint64, wait func()) measured {
	var wg sync.WaitGroup
	results := make([]uint64, tasks)
	start := time.Now()
	for i := range tasks {
		wg.Go(func() {
			wait()
			results[i] = compute(iterations, i)
		})
	}
	wg.Wait()
	elapsed := time.Since(start)

	var sum uint64
	for _, result := range results {
		sum += result
	}
	return measured{sum, elapsed}
}

// cpuBound goroutines only compute.
func cpuBound(p *params) workload {
	tasks, iterations := p.get("tasks"), p.get("iterations")
	due := computed(tasks, iterations)
	return func(h *harness) error {
		all := computeAll(tasks, iterations, func() {})
		h.metric("wall", all.elapsed.Seconds(), "s", all.done, due)
		return nil
	}
}

// waitAndHurry has goroutines sleep, as if for I/O, and compute.
func waitAndHurry(p *params) workload {
	tasks, pause, iterations := p.get("tasks"), p.millis("ms"), p.get("iterations")
	due := computed(tasks, iterations)
	return func(h *harness) error {
		all := computeAll(tasks, iterations, func() { time.Sleep(pause) })
		h.metric("wall", all.elapsed.Seconds(), "s", all.done, due)
		return nil
	}
}

// ticker measures how late a goroutine is that has little to do, while others compute.
func ticker(p *params) workload {
	tasks, iterations := p.get("tasks"), p.get("iterations")
	due := computed(tasks, iterations)
	return func(h *harness) error {
		var stop atomic.Bool
		warm, ticks := make(chan struct{}), make(chan []tick, 1)
		start := time.Now()
		go func() { ticks <- tickUntil(&stop, start, warm) }()
		<-warm
		spawned := time.Since(start)
		all := computeAll(tasks, iterations, func() {})
		stop.Store(true)

		var late []time.Duration
		for _, tick := range <-ticks {
			if tick.due >= spawned {
				late = append(late, tick.late)
			}
		}
		slices.Sort(late)
		for _, metric := range []struct {
			name    string
			percent int
		}{{"p50", 50}, {"p99", 99}, {"max", 100}} {
			value := per(percentile(late, metric.percent), 1, time.Millisecond)
			h.metric(metric.name, value, "ms", all.done, due)
		}
		return nil
	}
}

// percentile returns the least of the sorted times that so many in a hundred do not exceed.
func percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}

// tick is when a tick was due, from the start, and how late it came.
type tick struct{ due, late time.Duration }

// tickUntil ticks every millisecond until after the tick that comes after it was told to stop. It
// closes warm when it has made ten ticks.
func tickUntil(stop *atomic.Bool, start time.Time, warm chan<- struct{}) []tick {
	const period = time.Millisecond
	var ticks []tick
	due := period
	for stopping := false; !stopping; {
		stopping = stop.Load()
		now := time.Since(start)
		notPast := (now + period - 1).Truncate(period)
		time.Sleep(max(due, notPast) - now)
		now = time.Since(start)
		for ; due <= now; due += period {
			ticks = append(ticks, tick{due, now - due})
			if len(ticks) == 10 {
				close(warm)
			}
		}
	}
	return ticks
}

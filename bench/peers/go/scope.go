package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// How long those wait that are to be cancelled, unless they are.
const long = 10 * time.Second

// scope has groups of goroutines that are joined, or cancelled, together.
func scope(p *params) workload {
	two, many, forks := p.get("two"), p.get("many"), p.get("forks")
	first, tasks := p.get("first"), p.get("tasks")
	p.require(forks > 0, "forks must not be 0")
	p.require(tasks > 0, "tasks must not be 0")
	return func(h *harness) error {
		took, err := inGroup(func() (measured, error) { return forkTwo(two) })
		if err != nil {
			return err
		}
		h.metric("two", per(took.elapsed, two, 1), "ns/scope", took.done, sumBelow(2*two))

		took, err = inGroup(func() (measured, error) { return forkMany(many, forks) })
		if err != nil {
			return err
		}
		h.metric("many", per(took.elapsed, many*forks, 1), "ns/fork", took.done, sumBelow(many*forks))

		took, err = inGroup(func() (measured, error) { return firstOf(first, tasks) })
		if err != nil {
			return err
		}
		h.metric("first", per(took.elapsed, first, time.Microsecond), "µs/scope", took.done, first*tasks)
		return nil
	}
}

// inGroup returns what a function returns that is called in a goroutine of its own.
func inGroup(f func() (measured, error)) (took measured, err error) {
	var group errgroup.Group
	group.Go(func() error {
		took, err = f()
		return err
	})
	return took, group.Wait()
}

// forkTwo adds up what goroutines come to, two in a group.
func forkTwo(scopes uint64) (measured, error) {
	var sum uint64
	start := time.Now()
	for i := range scopes {
		var even, odd uint64
		var group errgroup.Group
		group.Go(func() error {
			even = 2 * i
			return nil
		})
		group.Go(func() error {
			odd = 2*i + 1
			return nil
		})
		if err := group.Wait(); err != nil {
			return measured{}, err
		}
		sum += even + odd
	}
	return measured{sum, time.Since(start)}, nil
}

// forkMany adds up what goroutines come to, so many in a group.
func forkMany(scopes, forks uint64) (measured, error) {
	var sum uint64
	start := time.Now()
	for i := range scopes {
		numbers := make([]uint64, forks)
		var group errgroup.Group
		for j := range forks {
			group.Go(func() error {
				numbers[j] = i*forks + j
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return measured{}, err
		}
		for _, number := range numbers {
			sum += number
		}
	}
	return measured{sum, time.Since(start)}, nil
}

// errFound is what ends a group that has what it looked for: the first error cancels the others.
var errFound = errors.New("found")

// firstOf takes the first result of groups of this many goroutines, and counts those that ended.
func firstOf(scopes, tasks uint64) (measured, error) {
	var ended atomic.Uint64
	start := time.Now()
	for i := range scopes {
		var found uint64
		var waiting sync.WaitGroup
		waiting.Add(int(tasks) - 1)
		group, ctx := errgroup.WithContext(context.Background())
		for range tasks - 1 {
			group.Go(func() error {
				waiting.Done()
				select {
				case <-ctx.Done():
					ended.Add(1)
					return ctx.Err()
				case <-time.After(long):
					return nil
				}
			})
		}
		waiting.Wait()
		group.Go(func() error {
			found = i
			return errFound
		})
		if err := group.Wait(); err != errFound || found != i {
			return measured{}, fmt.Errorf("the first result is %d (%v), not %d", found, err, i)
		}
		ended.Add(1)
	}
	return measured{ended.Load(), time.Since(start)}, nil
}

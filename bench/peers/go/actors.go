package main

import (
	"runtime"
	"sync"
	"time"
)

// room is how many messages a channel holds. It takes the memory for all of them at once, so that
// a program would not give it much more.
const room = 64

// senders is how many send at once, in two of the metrics of messages.
const senders = 4

// query is a message to a counter: a number to add, or, with a reply, an ask.
type query struct {
	kind   int
	number uint64
	reply  chan<- uint64
}

const (
	add   = iota // adds the number
	total        // asks for the sum
	next         // asks for the number after this one
)

// actor is a goroutine that adds up numbers, known by its channel. Closed, it ends.
type actor struct {
	inbox chan query
	ended chan struct{}
}

func newActor(sum uint64) actor {
	a := actor{make(chan query, room), make(chan struct{})}
	go func() {
		defer close(a.ended)
		for q := range a.inbox {
			switch q.kind {
			case add:
				sum += q.number
			case total:
				q.reply <- sum
			case next:
				q.reply <- q.number + 1
			}
		}
	}()
	return a
}

func newActors(count uint64) []actor {
	actors := make([]actor, count)
	for i := range actors {
		actors[i] = newActor(0)
	}
	return actors
}

// ask returns the answer to a message.
func (a actor) ask(kind int, number uint64) uint64 {
	reply := make(chan uint64, 1)
	a.inbox <- query{kind, number, reply}
	return <-reply
}

// totalOf asks each for its sum, one after the other, and adds these up.
func totalOf(actors []actor) (sum uint64) {
	for _, a := range actors {
		sum += a.ask(total, 0)
	}
	return sum
}

func endAll(actors []actor) {
	for _, a := range actors {
		close(a.inbox)
	}
	for _, a := range actors {
		<-a.ended
	}
}

// actorMessages sends numbers to actors that add them up.
func actorMessages(p *params) workload {
	one, many := p.get("messages"), p.get("many")
	p.require(many%senders == 0, "many must be a multiple of %d", senders)
	return func(h *harness) error {
		report := func(metric string, count uint64, took measured) {
			h.metric(metric, per(took.elapsed, count, 1), "ns/message", took.done, sumBelow(count))
		}
		report("1 to 1", one, in(func() measured { return oneToOne(one) }))
		report("4 to 4", many, in(func() measured { return fromAll(many, senders) }))
		report("4 to 1", many, in(func() measured { return fromAll(many, 1) }))
		return nil
	}
}

func oneToOne(messages uint64) measured {
	a := newActor(0)
	start := time.Now()
	for number := range messages {
		a.inbox <- query{kind: add, number: number}
	}
	sum := a.ask(total, 0)
	elapsed := time.Since(start)
	endAll([]actor{a})
	return measured{sum, elapsed}
}

// fromAll has all senders send, each to one of the actors.
func fromAll(messages, count uint64) measured {
	actors := newActors(count)
	share := messages / senders
	var wg sync.WaitGroup
	start := time.Now()
	for sender := range uint64(senders) {
		to := actors[sender%count]
		wg.Go(func() {
			for number := range share {
				to.inbox <- query{kind: add, number: sender*share + number}
			}
		})
	}
	wg.Wait()
	sum := totalOf(actors)
	elapsed := time.Since(start)
	endAll(actors)
	return measured{sum, elapsed}
}

// actorAsks sends messages to many, asks, and has messages go to and fro.
func actorAsks(p *params) workload {
	crowd, tells, asks := p.get("crowd"), p.get("tells"), p.get("asks")
	turns, each := p.get("turns"), p.get("each")
	p.require(crowd > 0 && each > 0, "crowd and each must not be 0")
	return func(h *harness) error {
		took := in(func() measured { return tellCrowd(crowd, tells) })
		h.metric("tell", per(took.elapsed, tells, 1), "ns/message", took.done, sumBelow(tells))

		took = in(func() measured { return askOften(asks) })
		h.metric("ask", per(took.elapsed, asks, 1), "ns/ask", took.done, sumBelow(asks+1))

		took = in(func() measured { return inTurn(turns) })
		h.metric("in turn", per(took.elapsed, turns, 1), "ns/message", took.done, turns)

		took = in(func() measured { return replies(crowd, each) })
		h.metric("replies", per(took.elapsed, crowd*each, 1), "ns/reply", took.done, crowd*each)
		return nil
	}
}

func tellCrowd(crowd, messages uint64) measured {
	actors := newActors(crowd)
	start := time.Now()
	for number := range messages {
		actors[number%crowd].inbox <- query{kind: add, number: number}
	}
	sum := totalOf(actors)
	elapsed := time.Since(start)
	endAll(actors)
	return measured{sum, elapsed}
}

func askOften(asks uint64) measured {
	a := newActor(0)
	var sum uint64
	start := time.Now()
	for number := range asks {
		sum += a.ask(next, number)
	}
	elapsed := time.Since(start)
	endAll([]actor{a})
	return measured{sum, elapsed}
}

// inTurn has two goroutines send each other a number, until it is the last.
func inTurn(last uint64) measured {
	there, back := make(chan uint64, room), make(chan uint64, room)
	outcome := make(chan uint64, 1)
	var wg sync.WaitGroup
	play := func(inbox <-chan uint64, other chan<- uint64) {
		for number := range inbox {
			if number == last {
				outcome <- number
			} else {
				other <- number + 1
			}
		}
	}
	wg.Go(func() { play(there, back) })
	wg.Go(func() { play(back, there) })
	start := time.Now()
	there <- 0
	number := <-outcome
	elapsed := time.Since(start)
	close(there)
	close(back)
	wg.Wait()
	return measured{number, elapsed}
}

// done says that a worker has done a piece.
type done struct {
	worker int
	piece  uint64
}

// replies has a master that gives each of its workers piece after piece, and counts what is done.
func replies(crowd, each uint64) measured {
	reports := make(chan done, room)
	workers := make([]chan uint64, crowd)
	var wg sync.WaitGroup
	for i := range workers {
		inbox := make(chan uint64, room)
		workers[i] = inbox
		wg.Go(func() {
			for piece := range inbox {
				reports <- done{i, piece}
			}
		})
	}
	outcome := make(chan uint64)
	start := time.Now()
	go func() {
		for _, worker := range workers {
			worker <- 1
		}
		var count uint64
		for count < crowd*each {
			report := <-reports
			count++
			if report.piece < each {
				workers[report.worker] <- report.piece + 1
			}
		}
		outcome <- count
	}()
	count := <-outcome
	elapsed := time.Since(start)
	for _, worker := range workers {
		close(worker)
	}
	wg.Wait()
	return measured{count, elapsed}
}

// actorCreate has actors come and go.
func actorCreate(p *params) workload {
	count := p.get("actors")
	return func(h *harness) error {
		took := in(func() measured { return createAll(count) })
		h.metric("create", per(took.elapsed, count, 1), "ns/actor", took.done, sumBelow(count))
		took = in(func() measured { return createAndEnd(count) })
		h.metric("create and end", per(took.elapsed, count, 1), "ns/actor", took.done, count)
		return nil
	}
}

func createAll(count uint64) measured {
	actors := make([]actor, 0, count)
	start := time.Now()
	for number := range count {
		actors = append(actors, newActor(number))
	}
	elapsed := time.Since(start)
	sum := totalOf(actors)
	endAll(actors)
	return measured{sum, elapsed}
}

func createAndEnd(count uint64) measured {
	var ended uint64
	start := time.Now()
	for number := range count {
		a := newActor(number)
		close(a.inbox)
		<-a.ended
		ended++
	}
	return measured{ended, time.Since(start)}
}

// actorIdle has actors that wait, to be looked at, and asks them again.
func actorIdle(p *params) workload {
	count := p.get("actors")
	return func(h *harness) error {
		actors := in(func() []actor {
			actors := make([]actor, 0, count)
			for number := range count {
				actors = append(actors, newActor(number))
			}
			totalOf(actors)
			return actors
		})
		runtime.GC()
		if _, err := h.at("idle", count); err != nil {
			return err
		}
		took := in(func() measured {
			start := time.Now()
			sum := totalOf(actors)
			elapsed := time.Since(start)
			endAll(actors)
			return measured{sum, elapsed}
		})
		h.metric("ask", per(took.elapsed, count, 1), "ns/actor", took.done, sumBelow(count))
		return nil
	}
}

// actorChain passes a number along a row of actors.
func actorChain(p *params) workload {
	row := p.get("row")
	return func(h *harness) error {
		took := in(func() measured { return passAlong(row) })
		h.metric("wall", took.elapsed.Seconds(), "s", took.done, row)
		return nil
	}
}

func passAlong(count uint64) measured {
	var wg sync.WaitGroup
	start := time.Now()
	comesOut := make(chan uint64, room)
	to := comesOut
	for range count {
		inbox, out := make(chan uint64, room), to
		wg.Go(func() {
			defer close(out)
			for number := range inbox {
				out <- number + 1
			}
		})
		to = inbox
	}
	to <- 0
	number := <-comesOut
	elapsed := time.Since(start)
	close(to)
	wg.Wait()
	return measured{number, elapsed}
}

// part asks for the sum of a range of numbers.
type part struct {
	first, size uint64
	sum         chan<- uint64
}

// actorSkynet adds up numbers in a tree of actors, ten below each.
func actorSkynet(p *params) workload {
	leaves := p.get("leaves")
	p.require(isPowerOfTen(leaves), "leaves must be a power of ten")
	return func(h *harness) error {
		took := in(func() measured {
			start := time.Now()
			sum := make(chan uint64, 1)
			newNode() <- part{0, leaves, sum}
			return measured{<-sum, time.Since(start)}
		})
		h.metric("wall", took.elapsed.Seconds(), "s", took.done, sumBelow(leaves))
		return nil
	}
}

// newNode starts what adds up one range: it has others do it, if there is more than one number.
func newNode() chan<- part {
	inbox := make(chan part, 1)
	go func() {
		p := <-inbox
		if p.size == 1 {
			p.sum <- p.first
			return
		}
		size := p.size / 10
		sums := make(chan uint64, 10)
		for i := range uint64(10) {
			newNode() <- part{p.first + i*size, size, sums}
		}
		var all uint64
		for range 10 {
			all += <-sums
		}
		p.sum <- all
	}()
	return inbox
}

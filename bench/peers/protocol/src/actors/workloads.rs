//! The workloads, and the actors that they consist of. `bench/PROTOCOL.md` defines both.

use super::{Actor, Answer, Outcome, System};
use crate::{Params, Workload, nanos_per, sum_below};
use anyhow::{Context, Result, ensure};
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// How many send at once, in two of the metrics of messages.
const SENDERS: u64 = 4;

/// How long a piece of work took, and what it came to.
type Took = (Duration, u64);

/// Makes the workload of this name.
pub fn find<S: System>(name: &str, params: &Params) -> Option<Result<Workload>> {
    let make = match name {
        "actor-messages" => messages::<S>,
        "actor-asks" => asks::<S>,
        "actor-create" => create::<S>,
        "actor-idle" => idle::<S>,
        "actor-chain" => chain::<S>,
        "actor-skynet" => skynet::<S>,
        _ => return None,
    };
    Some(S::start().and_then(|runtime| make(runtime, params)))
}

/// Actors of a kind.
struct Actors<S: System, A: Actor<S>> {
    refs: Vec<S::Ref<A>>,
    lives: Vec<S::Life>,
}

impl<S: System, A: Actor<S>> Actors<S, A> {
    /// Creates an actor for each of the numbers below `count`.
    async fn spawn(count: u64, mut actor: impl FnMut(u64) -> A + Send) -> Result<Self> {
        let mut actors = Actors {
            refs: Vec::with_capacity(count as usize),
            lives: Vec::with_capacity(count as usize),
        };
        for number in 0..count {
            let (actor, life) = S::spawn(actor(number)).await?;
            actors.refs.push(actor);
            actors.lives.push(life);
        }
        Ok(actors)
    }

    /// Has all of them end.
    async fn close(self) -> Result<Vec<S::End<A>>> {
        let mut ends = Vec::with_capacity(self.refs.len());
        for (actor, life) in self.refs.into_iter().zip(self.lives) {
            ends.push(S::close(actor, life).await?);
        }
        Ok(ends)
    }

    /// Ends them, all at once, and waits for them.
    async fn end(self) -> Result<()> {
        for end in self.close().await? {
            S::ended(end).await?;
        }
        S::all_ended().await;
        Ok(())
    }
}

/// An actor that adds up numbers.
struct Counter(u64);

enum Question {
    /// Asks for the sum so far.
    Total,
    /// Asks for the number that follows this one.
    Next(u64),
}

impl<S: System> Actor<S> for Counter {
    type Tell = u64;
    type Ask = Question;

    async fn told(&mut self, number: u64) {
        self.0 += number;
    }

    fn asked(&mut self, question: Question) -> Answer {
        Answer::Now(match question {
            Question::Total => self.0,
            Question::Next(number) => number + 1,
        })
    }
}

impl<S: System> Actors<S, Counter> {
    /// Asks each for its sum, one after the other, and adds these up.
    async fn total(&self) -> Result<u64> {
        let mut sum = 0;
        for counter in &self.refs {
            sum += S::ask(counter, Question::Total).await?;
        }
        Ok(sum)
    }
}

fn messages<S: System>(runtime: S::Runtime, params: &Params) -> Result<Workload> {
    let (one, many) = (params.get("messages")?, params.get("many")?);
    ensure!(
        many.is_multiple_of(SENDERS),
        "many must be a multiple of {SENDERS}"
    );
    Ok(Box::new(move |round| {
        let mut report = |metric, count, (elapsed, sum): Took| {
            let value = nanos_per(elapsed, count);
            round.metric(metric, value, "ns/message", sum, sum_below(count));
        };
        report("1 to 1", one, S::run(&runtime, tell::<S>(1, one))?);
        report(
            "4 to 4",
            many,
            S::run(&runtime, from_all::<S>(many, SENDERS))?,
        );
        report("4 to 1", many, S::run(&runtime, from_all::<S>(many, 1))?);
        Ok(())
    }))
}

/// From one sender to as many counters in turn.
async fn tell<S: System>(crowd: u64, messages: u64) -> Result<Took> {
    let counters = Actors::<S, _>::spawn(crowd, |_| Counter(0)).await?;
    let start = Instant::now();
    if let [counter] = &counters.refs[..] {
        for number in 0..messages {
            S::tell(counter, number).await?;
        }
    } else {
        for number in 0..messages {
            S::tell(&counters.refs[(number % crowd) as usize], number).await?;
        }
    }
    let sum = counters.total().await?;
    let elapsed = start.elapsed();
    counters.end().await?;
    Ok((elapsed, sum))
}

/// From all senders, each to one of the counters.
async fn from_all<S: System>(messages: u64, counters: u64) -> Result<Took> {
    let counters = Actors::<S, _>::spawn(counters, |_| Counter(0)).await?;
    let start = Instant::now();
    let mut senders = Vec::new();
    for sender in 0..SENDERS {
        let to = counters.refs[sender as usize % counters.refs.len()].clone();
        let each = messages / SENDERS;
        senders.push(S::task(async move {
            for number in sender * each..(sender + 1) * each {
                S::tell(&to, number).await?;
            }
            Ok(())
        }));
    }
    for sender in senders {
        sender.await?;
    }
    let sum = counters.total().await?;
    let elapsed = start.elapsed();
    counters.end().await?;
    Ok((elapsed, sum))
}

fn asks<S: System>(runtime: S::Runtime, params: &Params) -> Result<Workload> {
    let (crowd, each) = (params.get("crowd")?, params.get("each")?);
    let (tells, asks, turns) = (
        params.get("tells")?,
        params.get("asks")?,
        params.get("turns")?,
    );
    ensure!(crowd > 0 && each > 0, "crowd and each must not be 0");
    Ok(Box::new(move |round| {
        let mut report = |metric, unit, count, (elapsed, done): Took, due| {
            round.metric(metric, nanos_per(elapsed, count), unit, done, due);
        };
        let took = S::run(&runtime, tell::<S>(crowd, tells))?;
        report("tell", "ns/message", tells, took, sum_below(tells));
        let took = S::run(&runtime, ask::<S>(asks))?;
        report("ask", "ns/ask", asks, took, sum_below(asks + 1));
        let took = S::run(&runtime, in_turn::<S>(turns))?;
        report("in turn", "ns/message", turns, took, turns);
        let took = S::run(&runtime, replies::<S>(crowd, each))?;
        report("replies", "ns/reply", crowd * each, took, crowd * each);
        Ok(())
    }))
}

async fn ask<S: System>(asks: u64) -> Result<Took> {
    let counters = Actors::<S, _>::spawn(1, Counter).await?;
    let counter = &counters.refs[0];
    let mut sum = 0;
    let start = Instant::now();
    for number in 0..asks {
        sum += S::ask(counter, Question::Next(number)).await?;
    }
    let elapsed = start.elapsed();
    counters.end().await?;
    Ok((elapsed, sum))
}

/// One of two that send each other a number, until it is the last.
struct Player<S: System> {
    other: Option<S::Ref<Player<S>>>,
    last: u64,
    outcome: Outcome,
}

enum Move<S: System> {
    /// The other, or none any more: two that know each other might keep each other.
    Meet(Option<S::Ref<Player<S>>>),
    Number(u64),
}

impl<S: System> Actor<S> for Player<S> {
    type Tell = Move<S>;
    type Ask = Infallible;

    async fn told(&mut self, message: Move<S>) {
        match (message, &self.other) {
            (Move::Meet(other), _) => self.other = other,
            // If the other one has gone it has failed, and the outcome never comes.
            (Move::Number(number), Some(other)) if number < self.last => {
                drop(S::tell(other, Move::Number(number + 1)).await);
            }
            (Move::Number(number), _) => self.outcome.set(number),
        }
    }

    fn asked(&mut self, question: Infallible) -> Answer {
        match question {}
    }
}

async fn in_turn<S: System>(last: u64) -> Result<Took> {
    let outcome = Outcome::default();
    let player = |_| Player {
        other: None,
        last,
        outcome: outcome.clone(),
    };
    let players = Actors::<S, _>::spawn(2, player).await?;
    let [first, second] = &players.refs[..] else {
        unreachable!("there are two")
    };
    S::tell(first, Move::Meet(Some(second.clone()))).await?;
    S::tell(second, Move::Meet(Some(first.clone()))).await?;
    let start = Instant::now();
    S::tell(first, Move::Number(0)).await?;
    let number = outcome.await;
    let elapsed = start.elapsed();
    for player in &players.refs {
        S::tell(player, Move::Meet(None)).await?;
    }
    players.end().await?;
    Ok((elapsed, number))
}

/// Has work for each of its workers, piece by piece, and counts what is done.
struct Master<S: System> {
    workers: Vec<S::Ref<Worker<S>>>,
    each: u64,
    done: u64,
    outcome: Outcome,
}

enum Report<S: System> {
    Begin(Vec<S::Ref<Worker<S>>>),
    Done { worker: usize, piece: u64 },
}

struct Worker<S: System> {
    number: usize,
    master: S::Ref<Master<S>>,
}

impl<S: System> Actor<S> for Master<S> {
    type Tell = Report<S>;
    type Ask = Infallible;

    async fn told(&mut self, report: Report<S>) {
        match report {
            Report::Begin(workers) => {
                self.workers = workers;
                for worker in &self.workers {
                    // If it has gone there will be no reply, and so no outcome.
                    drop(S::tell(worker, 1).await);
                }
            }
            Report::Done { worker, piece } => {
                self.done += 1;
                if piece < self.each {
                    // As above.
                    drop(S::tell(&self.workers[worker], piece + 1).await);
                } else if self.done == self.each * self.workers.len() as u64 {
                    self.outcome.set(self.done);
                    // Workers and master might keep each other.
                    self.workers.clear();
                }
            }
        }
    }

    fn asked(&mut self, question: Infallible) -> Answer {
        match question {}
    }
}

impl<S: System> Actor<S> for Worker<S> {
    type Tell = u64;
    type Ask = Infallible;

    async fn told(&mut self, piece: u64) {
        let worker = self.number;
        // A master that has gone wants no more.
        drop(S::tell(&self.master, Report::Done { worker, piece }).await);
    }

    fn asked(&mut self, question: Infallible) -> Answer {
        match question {}
    }
}

async fn replies<S: System>(crowd: u64, each: u64) -> Result<Took> {
    let outcome = Outcome::default();
    let master = |_| Master {
        workers: Vec::new(),
        each,
        done: 0,
        outcome: outcome.clone(),
    };
    let masters = Actors::<S, _>::spawn(1, master).await?;
    let master = &masters.refs[0];
    let worker = |number| Worker {
        number: number as usize,
        master: master.clone(),
    };
    let workers = Actors::<S, _>::spawn(crowd, worker).await?;
    let start = Instant::now();
    S::tell(master, Report::Begin(workers.refs.clone())).await?;
    let done = outcome.await;
    let elapsed = start.elapsed();
    let masters = masters.close().await?;
    workers.end().await?;
    for master in masters {
        S::ended(master).await?;
    }
    Ok((elapsed, done))
}

fn create<S: System>(runtime: S::Runtime, params: &Params) -> Result<Workload> {
    let count = params.get("actors")?;
    Ok(Box::new(move |round| {
        let (elapsed, sum) = S::run(&runtime, create_all::<S>(count))?;
        let value = nanos_per(elapsed, count);
        round.metric("create", value, "ns/actor", sum, sum_below(count));
        let (elapsed, ended) = S::run(&runtime, create_and_end::<S>(count))?;
        let value = nanos_per(elapsed, count);
        round.metric("create and end", value, "ns/actor", ended, count);
        Ok(())
    }))
}

async fn create_all<S: System>(count: u64) -> Result<Took> {
    let start = Instant::now();
    let counters = Actors::<S, _>::spawn(count, Counter).await?;
    let elapsed = start.elapsed();
    let sum = counters.total().await?;
    counters.end().await?;
    Ok((elapsed, sum))
}

async fn create_and_end<S: System>(count: u64) -> Result<Took> {
    let mut ended = 0;
    let start = Instant::now();
    for number in 0..count {
        let (counter, life) = S::spawn(Counter(number)).await?;
        let end = S::close(counter, life).await?;
        S::ended(end).await?;
        S::all_ended().await;
        ended += 1;
    }
    Ok((start.elapsed(), ended))
}

fn idle<S: System>(runtime: S::Runtime, params: &Params) -> Result<Workload> {
    let count = params.get("actors")?;
    Ok(Box::new(move |round| {
        let counters = S::run(&runtime, async move {
            let counters = Actors::<S, _>::spawn(count, Counter).await?;
            counters.total().await?;
            Ok(counters)
        })?;
        round.at("idle", count)?;
        let (elapsed, sum) = S::run(&runtime, async move {
            let start = Instant::now();
            let sum = counters.total().await?;
            let elapsed = start.elapsed();
            counters.end().await?;
            Ok((elapsed, sum))
        })?;
        round.metric(
            "ask",
            nanos_per(elapsed, count),
            "ns/actor",
            sum,
            sum_below(count),
        );
        Ok(())
    }))
}

/// Adds one to a number, and passes it on.
enum Link<S: System> {
    To(S::Ref<Link<S>>),
    Outside(Outcome),
}

impl<S: System> Actor<S> for Link<S> {
    type Tell = u64;
    type Ask = Infallible;

    async fn told(&mut self, number: u64) {
        match self {
            // If the neighbour has gone it has failed, and the number never comes out.
            Link::To(link) => drop(S::tell(link, number + 1).await),
            Link::Outside(outcome) => outcome.set(number + 1),
        }
    }

    fn asked(&mut self, question: Infallible) -> Answer {
        match question {}
    }
}

fn chain<S: System>(runtime: S::Runtime, params: &Params) -> Result<Workload> {
    let row = params.get("row")?;
    Ok(Box::new(move |round| {
        let (elapsed, number) = S::run(&runtime, pass_along::<S>(row))?;
        round.metric("wall", elapsed.as_secs_f64(), "s", number, row);
        Ok(())
    }))
}

async fn pass_along<S: System>(count: u64) -> Result<Took> {
    let outcome = Outcome::default();
    let mut row = Actors::<S, Link<S>> {
        refs: Vec::with_capacity(count as usize),
        lives: Vec::with_capacity(count as usize),
    };
    let start = Instant::now();
    for _ in 0..count {
        let last = row.refs.last().cloned();
        let link = last.map_or_else(|| Link::Outside(outcome.clone()), Link::To);
        let (link, life) = S::spawn(link).await?;
        row.refs.push(link);
        row.lives.push(life);
    }
    S::tell(row.refs.last().context("a row has an actor")?, 0).await?;
    let number = outcome.await;
    let elapsed = start.elapsed();
    row.end().await?;
    Ok((elapsed, number))
}

/// Adds up a range of numbers: has other nodes do it, if there is more than one.
struct Node;

struct Range {
    first: u64,
    size: u64,
}

impl<S: System> Actor<S> for Node {
    type Tell = Infallible;
    type Ask = Range;
    const ONCE: bool = true;

    async fn told(&mut self, message: Infallible) {
        match message {}
    }

    fn asked(&mut self, Range { first, size }: Range) -> Answer {
        match size {
            1 => Answer::Now(first),
            _ => Answer::Later(Box::pin(async move {
                parts::<S>(first, size / 10).await.expect("a node answers")
            })),
        }
    }
}

/// The sum of ten parts, all of which are asked for before the first answer.
async fn parts<S: System>(first: u64, size: u64) -> Result<u64> {
    let mut answers = Vec::with_capacity(10);
    for child in 0..10 {
        let (node, _) = S::spawn(Node).await?;
        let first = first + child * size;
        answers.push(S::ask_later(&node, Range { first, size }).await?);
    }
    let mut sum = 0;
    for answer in answers {
        sum += answer.await?;
    }
    Ok(sum)
}

fn skynet<S: System>(runtime: S::Runtime, params: &Params) -> Result<Workload> {
    let leaves = params.get("leaves")?;
    let is_power = 10u64.checked_pow(leaves.max(1).ilog10()) == Some(leaves);
    ensure!(is_power, "leaves must be a power of ten");
    Ok(Box::new(move |round| {
        let (elapsed, sum) = S::run(&runtime, async move {
            let start = Instant::now();
            let (root, _) = S::spawn(Node).await?;
            let sum = S::ask(
                &root,
                Range {
                    first: 0,
                    size: leaves,
                },
            )
            .await?;
            Ok((start.elapsed(), sum))
        })?;
        round.metric("wall", elapsed.as_secs_f64(), "s", sum, sum_below(leaves));
        Ok(())
    }))
}

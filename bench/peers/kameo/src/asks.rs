//! `actor-asks`: messages to many, asks, messages to and fro.

use crate::counter::{Add, Next, start_all, total};
use crate::{end, inside};
use anyhow::Result;
use kameo::Actor;
use kameo::actor::{ActorRef, Spawn};
use kameo::message::{Context, Message};
use peer_protocol::actors::{Asks, Took};
use peer_protocol::{Params, Workload};
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

pub fn new(runtime: Runtime, params: &Params) -> Result<Workload> {
    let sizes = Asks::of(params)?;
    Ok(Box::new(move |round| {
        let tell = inside(&runtime, tell(sizes.crowd, sizes.tells))?;
        let ask = inside(&runtime, ask(sizes.asks))?;
        let turns = inside(&runtime, in_turn(sizes.turns))?;
        let replies = inside(&runtime, replies(sizes))?;
        sizes.report(round, tell, ask, turns, replies);
        Ok(())
    }))
}

async fn tell(crowd: u64, messages: u64) -> Result<Took> {
    let counters = start_all(crowd);
    let start = Instant::now();
    for number in 0..messages {
        counters[(number % crowd) as usize]
            .tell(Add(number))
            .await?;
    }
    let sum = total(&counters).await?;
    let elapsed = start.elapsed();
    end(&counters).await?;
    Ok((elapsed, sum))
}

async fn ask(asks: u64) -> Result<Took> {
    let counters = start_all(1);
    let counter = &counters[0];
    let mut sum = 0;
    let start = Instant::now();
    for number in 0..asks {
        sum += counter.ask(Next(number)).await?;
    }
    let elapsed = start.elapsed();
    end(&counters).await?;
    Ok((elapsed, sum))
}

/// One of two that send each other a number, until it is the last.
#[derive(Actor)]
struct Player {
    other: Option<ActorRef<Player>>,
    last: u64,
    outcome: Option<oneshot::Sender<u64>>,
}

struct Meet(ActorRef<Player>);

struct Number(u64);

impl Message<Meet> for Player {
    type Reply = ();

    async fn handle(&mut self, Meet(other): Meet, _: &mut Context<Self, ()>) {
        self.other = Some(other);
    }
}

impl Message<Number> for Player {
    type Reply = ();

    async fn handle(&mut self, Number(number): Number, _: &mut Context<Self, ()>) {
        // Who has gone has failed, and the outcome never comes.
        match &self.other {
            Some(other) if number < self.last => drop(other.tell(Number(number + 1)).await),
            _ => drop(self.outcome.take().map(|outcome| outcome.send(number))),
        }
    }
}

async fn in_turn(last: u64) -> Result<Took> {
    let player = |outcome| {
        Player::spawn(Player {
            other: None,
            last,
            outcome: Some(outcome),
        })
    };
    let (first_last, first_outcome) = oneshot::channel();
    let (second_last, second_outcome) = oneshot::channel();
    let players = [player(first_last), player(second_last)];
    players[0].tell(Meet(players[1].clone())).await?;
    players[1].tell(Meet(players[0].clone())).await?;
    let start = Instant::now();
    players[0].tell(Number(0)).await?;
    let outcome = if last.is_multiple_of(2) {
        first_outcome
    } else {
        second_outcome
    };
    let number = outcome.await?;
    let elapsed = start.elapsed();
    end(&players).await?;
    Ok((elapsed, number))
}

/// Has work for each of its workers, piece by piece, and counts what is done.
#[derive(Actor)]
struct Master {
    workers: Vec<ActorRef<Worker>>,
    sizes: Asks,
    done: u64,
    outcome: Option<oneshot::Sender<u64>>,
}

struct Begin(Vec<ActorRef<Worker>>);

struct Done {
    worker: usize,
    piece: u64,
}

impl Message<Begin> for Master {
    type Reply = ();

    async fn handle(&mut self, Begin(workers): Begin, _: &mut Context<Self, ()>) {
        self.workers = workers;
        for worker in &self.workers {
            // Of one that has gone there will be no reply, and so no outcome.
            drop(worker.tell(Piece(1)).await);
        }
    }
}

impl Message<Done> for Master {
    type Reply = ();

    async fn handle(&mut self, Done { worker, piece }: Done, _: &mut Context<Self, ()>) {
        self.done += 1;
        if piece < self.sizes.each {
            // As above.
            drop(self.workers[worker].tell(Piece(piece + 1)).await);
        } else if self.done == self.sizes.replies() {
            let outcome = self.outcome.take();
            // The receiver is still waiting.
            let _ = outcome.map(|outcome| outcome.send(self.done));
        }
    }
}

#[derive(Actor)]
struct Worker {
    number: usize,
    master: ActorRef<Master>,
}

struct Piece(u64);

impl Message<Piece> for Worker {
    type Reply = ();

    async fn handle(&mut self, Piece(piece): Piece, _: &mut Context<Self, ()>) {
        let worker = self.number;
        // A master that has gone wants no more.
        drop(self.master.tell(Done { worker, piece }).await);
    }
}

async fn replies(sizes: Asks) -> Result<Took> {
    let (outcome, all_done) = oneshot::channel();
    let master = Master::spawn(Master {
        workers: Vec::new(),
        sizes,
        done: 0,
        outcome: Some(outcome),
    });
    let worker = |number| {
        let master = master.clone();
        Worker::spawn(Worker { number, master })
    };
    let workers: Vec<_> = (0..sizes.crowd as usize).map(worker).collect();
    let start = Instant::now();
    master.tell(Begin(workers.clone())).await?;
    let done = all_done.await?;
    let elapsed = start.elapsed();
    end(&workers).await?;
    end(&[master]).await?;
    Ok((elapsed, done))
}

//! `actor-asks`: messages to many, asks, messages to and fro.

use crate::counter::{Add, Next, start_all, total};
use crate::{Alive, Gone};
use actix::{Actor, Addr, Context, Handler, Message, SystemRunner};
use anyhow::Result;
use peer_protocol::actors::{Asks, Took};
use peer_protocol::{Params, Workload};
use std::time::Instant;
use tokio::sync::mpsc;

pub fn new(system: SystemRunner, params: &Params) -> Result<Workload> {
    let sizes = Asks::of(params)?;
    Ok(Box::new(move |round| {
        let tell = system.block_on(tell(sizes.crowd, sizes.tells))?;
        let ask = system.block_on(ask(sizes.asks))?;
        let turns = system.block_on(in_turn(sizes.turns))?;
        let replies = system.block_on(replies(sizes))?;
        sizes.report(round, tell, ask, turns, replies);
        Ok(())
    }))
}

async fn tell(crowd: u64, messages: u64) -> Result<Took> {
    let (alive, gone) = Gone::when_released();
    let counters = start_all(crowd, &alive);
    let start = Instant::now();
    for number in 0..messages {
        counters[(number % crowd) as usize].do_send(Add(number));
    }
    let sum = total(&counters).await?;
    let elapsed = start.elapsed();
    drop((alive, counters));
    gone.wait().await;
    Ok((elapsed, sum))
}

async fn ask(asks: u64) -> Result<Took> {
    let (alive, gone) = Gone::when_released();
    let counters = start_all(1, &alive);
    let mut sum = 0;
    let start = Instant::now();
    for number in 0..asks {
        sum += counters[0].send(Next(number)).await?;
    }
    let elapsed = start.elapsed();
    drop((alive, counters));
    gone.wait().await;
    Ok((elapsed, sum))
}

/// One of two that send each other a number, until it is the last.
struct Player {
    other: Option<Addr<Player>>,
    last: u64,
    outcome: mpsc::UnboundedSender<u64>,
    _alive: Alive,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Meet(Option<Addr<Player>>);

#[derive(Message)]
#[rtype(result = "()")]
struct Number(u64);

impl Actor for Player {
    type Context = Context<Self>;
}

impl Handler<Meet> for Player {
    type Result = ();

    fn handle(&mut self, Meet(other): Meet, _: &mut Context<Self>) {
        self.other = other;
    }
}

impl Handler<Number> for Player {
    type Result = ();

    fn handle(&mut self, Number(number): Number, _: &mut Context<Self>) {
        match &self.other {
            Some(other) if number < self.last => other.do_send(Number(number + 1)),
            // The receiver is still waiting.
            _ => drop(self.outcome.send(number)),
        }
    }
}

async fn in_turn(last: u64) -> Result<Took> {
    let (alive, gone) = Gone::when_released();
    let (outcome, mut last_number) = mpsc::unbounded_channel();
    let players = [(); 2].map(|()| {
        Player {
            other: None,
            last,
            outcome: outcome.clone(),
            _alive: alive.clone(),
        }
        .start()
    });
    drop(outcome);
    players[0].do_send(Meet(Some(players[1].clone())));
    players[1].do_send(Meet(Some(players[0].clone())));
    let start = Instant::now();
    players[0].do_send(Number(0));
    let number = last_number.recv().await.unwrap_or_default();
    let elapsed = start.elapsed();
    // They would keep each other.
    players.iter().for_each(|player| player.do_send(Meet(None)));
    drop((alive, players));
    gone.wait().await;
    Ok((elapsed, number))
}

/// Has work for each of its workers, piece by piece, and counts what is done.
struct Master {
    workers: Vec<Addr<Worker>>,
    sizes: Asks,
    done: u64,
    outcome: mpsc::UnboundedSender<u64>,
    _alive: Alive,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Begin(Vec<Addr<Worker>>);

#[derive(Message)]
#[rtype(result = "()")]
struct Done {
    worker: usize,
    piece: u64,
}

impl Actor for Master {
    type Context = Context<Self>;
}

impl Handler<Begin> for Master {
    type Result = ();

    fn handle(&mut self, Begin(workers): Begin, _: &mut Context<Self>) {
        self.workers = workers;
        for worker in &self.workers {
            worker.do_send(Piece(1));
        }
    }
}

impl Handler<Done> for Master {
    type Result = ();

    fn handle(&mut self, Done { worker, piece }: Done, _: &mut Context<Self>) {
        self.done += 1;
        if piece < self.sizes.each {
            self.workers[worker].do_send(Piece(piece + 1));
        } else if self.done == self.sizes.replies() {
            // Workers and master would keep each other.
            self.workers.clear();
            // The receiver is still waiting.
            let _ = self.outcome.send(self.done);
        }
    }
}

struct Worker {
    number: usize,
    master: Addr<Master>,
    _alive: Alive,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Piece(u64);

impl Actor for Worker {
    type Context = Context<Self>;
}

impl Handler<Piece> for Worker {
    type Result = ();

    fn handle(&mut self, Piece(piece): Piece, _: &mut Context<Self>) {
        let worker = self.number;
        self.master.do_send(Done { worker, piece });
    }
}

async fn replies(sizes: Asks) -> Result<Took> {
    let (alive, gone) = Gone::when_released();
    let (outcome, mut all_done) = mpsc::unbounded_channel();
    let master = Master {
        workers: Vec::new(),
        sizes,
        done: 0,
        outcome,
        _alive: alive.clone(),
    }
    .start();
    let worker = |number| {
        let (master, _alive) = (master.clone(), alive.clone());
        Worker {
            number,
            master,
            _alive,
        }
        .start()
    };
    let workers: Vec<_> = (0..sizes.crowd as usize).map(worker).collect();
    let start = Instant::now();
    master.do_send(Begin(workers));
    let done = all_done.recv().await.unwrap_or_default();
    let elapsed = start.elapsed();
    drop((alive, master));
    gone.wait().await;
    Ok((elapsed, done))
}

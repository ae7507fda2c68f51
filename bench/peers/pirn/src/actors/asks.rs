//! `actor-asks`: messages to many, asks, messages to and fro.

use super::counter::{Add, Counter, Next, Total};
use super::end;
use crate::workloads::start::inside;
use anyhow::Result;
use peer_protocol::actors::{Asks, Took};
use peer_protocol::{Params, Workload};
use pirn_actor::{self as actor, Context, Handle, Ref};
use std::sync::mpsc::{self, Sender};
use std::time::Instant;

pub fn new(params: &Params) -> Result<Workload> {
    let sizes = Asks::of(params)?;
    Ok(Box::new(move |round| {
        let tell = inside(move || tell(sizes.crowd, sizes.tells))?;
        let ask = inside(move || ask(sizes.asks))?;
        let turns = inside(move || in_turn(sizes.turns))?;
        let replies = inside(move || replies(sizes))?;
        sizes.report(round, tell, ask, turns, replies);
        Ok(())
    }))
}

fn tell(crowd: u64, messages: u64) -> Result<Took> {
    let counters: Vec<Ref<Counter>> = (0..crowd).map(|_| actor::spawn(Counter(0))).collect();
    let start = Instant::now();
    for number in 0..messages {
        counters[(number % crowd) as usize].send(Add(number))?;
    }
    let mut sum = 0;
    for counter in &counters {
        sum += counter.ask(Total)?;
    }
    let elapsed = start.elapsed();
    end(&counters)?;
    Ok((elapsed, sum))
}

fn ask(asks: u64) -> Result<Took> {
    let counter = actor::spawn(Counter(0));
    let mut sum = 0;
    let start = Instant::now();
    for number in 0..asks {
        sum += counter.ask(Next(number))?;
    }
    let elapsed = start.elapsed();
    end(&[counter])?;
    Ok((elapsed, sum))
}

/// One of two that send each other a number, until it is the last.
struct Player {
    other: Option<Ref<Player>>,
    last: u64,
    outcome: Sender<u64>,
}

struct Meet(Ref<Player>);

struct Number(u64);

impl Handle<Meet> for Player {
    type Reply = ();

    fn handle(&mut self, Meet(other): Meet, _: &Context<Self>) {
        self.other = Some(other);
    }
}

impl Handle<Number> for Player {
    type Reply = ();

    fn handle(&mut self, Number(number): Number, _: &Context<Self>) {
        // Who has gone has failed, and the outcome never comes.
        match &self.other {
            Some(other) if number < self.last => drop(other.send(Number(number + 1))),
            _ => drop(self.outcome.send(number)),
        }
    }
}

fn in_turn(last: u64) -> Result<Took> {
    let (outcome, last_number) = mpsc::channel();
    let players = [(); 2].map(|()| {
        actor::spawn(Player {
            other: None,
            last,
            outcome: outcome.clone(),
        })
    });
    drop(outcome);
    players[0].send(Meet(players[1].clone()))?;
    players[1].send(Meet(players[0].clone()))?;
    let start = Instant::now();
    players[0].send(Number(0))?;
    let number = last_number.recv()?;
    let elapsed = start.elapsed();
    end(&players)?;
    Ok((elapsed, number))
}

/// Has work for each of its workers, piece by piece, and counts what is done.
struct Master {
    workers: Vec<Ref<Worker>>,
    each: u64,
    done: u64,
    outcome: Sender<u64>,
}

struct Begin(Vec<Ref<Worker>>);

struct Done {
    worker: usize,
    piece: u64,
}

impl Handle<Begin> for Master {
    type Reply = ();

    fn handle(&mut self, Begin(workers): Begin, _: &Context<Self>) {
        self.workers = workers;
        self.workers.iter().for_each(|worker| give(worker, 1));
    }
}

impl Handle<Done> for Master {
    type Reply = ();

    fn handle(&mut self, Done { worker, piece }: Done, _: &Context<Self>) {
        self.done += 1;
        if piece < self.each {
            give(&self.workers[worker], piece + 1);
        } else if self.done == self.each * self.workers.len() as u64 {
            // The one who waits for it is there.
            let _ = self.outcome.send(self.done);
        }
    }
}

struct Worker {
    number: usize,
    master: Ref<Master>,
}

struct Piece(u64);

impl Handle<Piece> for Worker {
    type Reply = ();

    fn handle(&mut self, Piece(piece): Piece, _: &Context<Self>) {
        let worker = self.number;
        // A master that has gone wants no more.
        drop(self.master.send(Done { worker, piece }));
    }
}

fn give(worker: &Ref<Worker>, piece: u64) {
    // Of one that has gone there will be no reply, and so no outcome.
    drop(worker.send(Piece(piece)));
}

fn replies(sizes: Asks) -> Result<Took> {
    let (outcome, all_done) = mpsc::channel();
    let master = actor::spawn(Master {
        workers: Vec::new(),
        each: sizes.each,
        done: 0,
        outcome,
    });
    let worker = |number| {
        let master = master.clone();
        actor::spawn(Worker { number, master })
    };
    let workers: Vec<Ref<Worker>> = (0..sizes.crowd as usize).map(worker).collect();
    let start = Instant::now();
    master.send(Begin(workers.clone()))?;
    let done = all_done.recv()?;
    let elapsed = start.elapsed();
    end(&workers)?;
    end(&[master])?;
    Ok((elapsed, done))
}

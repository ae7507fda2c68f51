//! `actor-asks`: messages to many, asks, messages to and fro.

use crate::counter::{Counter, Message, counter};
use crate::{end, inside};
use anyhow::Result;
use peer_protocol::actors::{Asks, Took};
use peer_protocol::{Params, Workload};
use pirn_actor::{self as actor, Inbox, Process};
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
    let counters: Vec<Counter> = (0..crowd).map(|_| counter(0)).collect();
    let start = Instant::now();
    for number in 0..messages {
        counters[(number % crowd) as usize].send(Message::Add(number))?;
    }
    let mut sum = 0;
    for counter in &counters {
        sum += counter.ask(Message::Total)?;
    }
    let elapsed = start.elapsed();
    end(&counters)?;
    Ok((elapsed, sum))
}

fn ask(asks: u64) -> Result<Took> {
    let counter = counter(0);
    let mut sum = 0;
    let start = Instant::now();
    for number in 0..asks {
        sum += counter.ask(|reply| Message::Next(number, reply))?;
    }
    let elapsed = start.elapsed();
    end(&[counter])?;
    Ok((elapsed, sum))
}

/// What one of two gets who send each other a number, until it is the last.
enum Move {
    Meet(Process<Move, ()>),
    Number(u64),
}

fn player(last: u64, outcome: Sender<u64>) -> Process<Move, ()> {
    actor::process(move |inbox: &mut Inbox<Move>| {
        let mut other = None;
        while let Ok(message) = inbox.recv() {
            match (message, &other) {
                (Move::Meet(met), _) => other = Some(met),
                // Who has gone has failed, and the outcome never comes.
                (Move::Number(number), Some(other)) if number < last => {
                    drop(other.send(Move::Number(number + 1)));
                }
                (Move::Number(number), _) => drop(outcome.send(number)),
            }
        }
    })
}

fn in_turn(last: u64) -> Result<Took> {
    let (outcome, last_number) = mpsc::channel();
    let players = [(); 2].map(|()| player(last, outcome.clone()));
    drop(outcome);
    players[0].send(Move::Meet(players[1].clone()))?;
    players[1].send(Move::Meet(players[0].clone()))?;
    let start = Instant::now();
    players[0].send(Move::Number(0))?;
    let number = last_number.recv()?;
    let elapsed = start.elapsed();
    end(&players)?;
    Ok((elapsed, number))
}

type Worker = Process<u64, ()>;

/// What the master gets.
enum Report {
    Begin(Vec<Worker>),
    Done { worker: usize, piece: u64 },
}

/// Has work for each of its workers, piece by piece, and counts what is done.
fn master(each: u64, outcome: Sender<u64>) -> Process<Report, ()> {
    actor::process(move |inbox: &mut Inbox<Report>| {
        let (mut workers, mut done) = (Vec::new(), 0);
        while let Ok(report) = inbox.recv() {
            match report {
                Report::Begin(all) => {
                    workers = all;
                    workers.iter().for_each(|worker| give(worker, 1));
                }
                Report::Done { worker, piece } => {
                    done += 1;
                    if piece < each {
                        give(&workers[worker], piece + 1);
                    } else if done == each * workers.len() as u64 {
                        // The one who waits for it is there.
                        let _ = outcome.send(done);
                    }
                }
            }
        }
    })
}

fn give(worker: &Worker, piece: u64) {
    // Of one that has gone there will be no reply, and so no outcome.
    drop(worker.send(piece));
}

fn worker(worker: usize, master: Process<Report, ()>) -> Worker {
    actor::process(move |inbox: &mut Inbox<u64>| {
        while let Ok(piece) = inbox.recv() {
            // A master that has gone wants no more.
            drop(master.send(Report::Done { worker, piece }));
        }
    })
}

fn replies(sizes: Asks) -> Result<Took> {
    let (outcome, all_done) = mpsc::channel();
    let master = master(sizes.each, outcome);
    let workers = 0..sizes.crowd as usize;
    let workers: Vec<Worker> = workers.map(|n| worker(n, master.clone())).collect();
    let start = Instant::now();
    master.send(Report::Begin(workers.clone()))?;
    let done = all_done.recv()?;
    let elapsed = start.elapsed();
    end(&workers)?;
    end(&[master])?;
    Ok((elapsed, done))
}

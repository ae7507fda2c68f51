//! `actor-asks`: messages to many, asks, messages to and fro.

use crate::counter::{Message, start_all};
use crate::{Started, inside};
use anyhow::Result;
use peer_protocol::actors::{Asks, Took};
use peer_protocol::{Params, Workload};
use ractor::{Actor, ActorProcessingErr, ActorRef, call};
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
    let counters = start_all(crowd).await?;
    let start = Instant::now();
    for number in 0..messages {
        counters.actors[(number % crowd) as usize].cast(Message::Add(number))?;
    }
    let sum = counters.total().await?;
    let elapsed = start.elapsed();
    counters.end().await?;
    Ok((elapsed, sum))
}

async fn ask(asks: u64) -> Result<Took> {
    let counters = start_all(1).await?;
    let counter = &counters.actors[0];
    let mut sum = 0;
    let start = Instant::now();
    for number in 0..asks {
        sum += call!(counter, Message::Next, number)?;
    }
    let elapsed = start.elapsed();
    counters.end().await?;
    Ok((elapsed, sum))
}

/// One of two that send each other a number, until it is the last.
struct Player {
    last: u64,
}

/// What a player knows: the other, and who waits for the last number.
#[derive(Default)]
struct Game {
    other: Option<ActorRef<Move>>,
    outcome: Option<oneshot::Sender<u64>>,
}

enum Move {
    Meet(ActorRef<Move>, oneshot::Sender<u64>),
    Number(u64),
}

impl Actor for Player {
    type Msg = Move;
    type State = Game;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Move>, (): ()) -> Result<Game, ActorProcessingErr> {
        Ok(Game::default())
    }

    async fn handle(
        &self,
        _: ActorRef<Move>,
        message: Move,
        game: &mut Game,
    ) -> Result<(), ActorProcessingErr> {
        match (message, &game.other) {
            (Move::Meet(other, outcome), _) => {
                *game = Game {
                    other: Some(other),
                    outcome: Some(outcome),
                };
            }
            (Move::Number(number), Some(other)) if number < self.last => {
                other.cast(Move::Number(number + 1))?;
            }
            (Move::Number(number), _) => {
                // The receiver is still waiting.
                let _ = game.outcome.take().map(|outcome| outcome.send(number));
            }
        }
        Ok(())
    }
}

async fn in_turn(last: u64) -> Result<Took> {
    let mut players = Started::with_capacity(2);
    let first = players.start(Player { last }, ()).await?;
    let second = players.start(Player { last }, ()).await?;
    let (first_last, first_outcome) = oneshot::channel();
    let (second_last, second_outcome) = oneshot::channel();
    first.cast(Move::Meet(second.clone(), first_last))?;
    second.cast(Move::Meet(first.clone(), second_last))?;
    let start = Instant::now();
    first.cast(Move::Number(0))?;
    let outcome = if last.is_multiple_of(2) {
        first_outcome
    } else {
        second_outcome
    };
    let number = outcome.await?;
    let elapsed = start.elapsed();
    players.end().await?;
    Ok((elapsed, number))
}

/// Has work for each of its workers, piece by piece, and counts what is done.
struct Master {
    sizes: Asks,
}

#[derive(Default)]
struct Progress {
    workers: Vec<ActorRef<u64>>,
    done: u64,
    outcome: Option<oneshot::Sender<u64>>,
}

enum Report {
    Begin(Vec<ActorRef<u64>>, oneshot::Sender<u64>),
    Done { worker: usize, piece: u64 },
}

impl Actor for Master {
    type Msg = Report;
    type State = Progress;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Report>, (): ()) -> Result<Progress, ActorProcessingErr> {
        Ok(Progress::default())
    }

    async fn handle(
        &self,
        _: ActorRef<Report>,
        report: Report,
        progress: &mut Progress,
    ) -> Result<(), ActorProcessingErr> {
        match report {
            Report::Begin(workers, outcome) => {
                progress.workers = workers;
                progress.outcome = Some(outcome);
                for worker in &progress.workers {
                    worker.cast(1)?;
                }
            }
            Report::Done { worker, piece } => {
                progress.done += 1;
                if piece < self.sizes.each {
                    progress.workers[worker].cast(piece + 1)?;
                } else if progress.done == self.sizes.replies() {
                    let outcome = progress.outcome.take();
                    // The receiver is still waiting.
                    let _ = outcome.map(|outcome| outcome.send(progress.done));
                }
            }
        }
        Ok(())
    }
}

struct Worker {
    number: usize,
    master: ActorRef<Report>,
}

impl Actor for Worker {
    type Msg = u64;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<u64>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<u64>,
        piece: u64,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        let worker = self.number;
        Ok(self.master.cast(Report::Done { worker, piece })?)
    }
}

async fn replies(sizes: Asks) -> Result<Took> {
    let mut masters = Started::with_capacity(1);
    let master = masters.start(Master { sizes }, ()).await?;
    let mut workers = Started::with_capacity(sizes.crowd);
    for number in 0..sizes.crowd as usize {
        let master = master.clone();
        workers.start(Worker { number, master }, ()).await?;
    }
    let (outcome, all_done) = oneshot::channel();
    let start = Instant::now();
    master.cast(Report::Begin(workers.actors.clone(), outcome))?;
    let done = all_done.await?;
    let elapsed = start.elapsed();
    workers.end().await?;
    masters.end().await?;
    Ok((elapsed, done))
}

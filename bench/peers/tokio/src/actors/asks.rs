//! `actor-asks`: messages to many, asks, messages to and fro.

use super::counter::{Counter, total};
use super::{ROOM, ended, inside};
use anyhow::Result;
use peer_protocol::actors::{Asks, Took};
use peer_protocol::{Params, Workload};
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

pub fn asks(runtime: Runtime, params: &Params) -> Result<Workload> {
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
    let (counters, tasks) = Counter::start_all(crowd);
    let start = Instant::now();
    for number in 0..messages {
        counters[(number % crowd) as usize].add(number).await?;
    }
    let sum = total(&counters).await?;
    let elapsed = start.elapsed();
    drop(counters);
    ended(tasks).await?;
    Ok((elapsed, sum))
}

async fn ask(asks: u64) -> Result<Took> {
    let (counter, task) = Counter::start(0);
    let mut sum = 0;
    let start = Instant::now();
    for number in 0..asks {
        sum += counter.next(number).await?;
    }
    let elapsed = start.elapsed();
    drop(counter);
    task.await?;
    Ok((elapsed, sum))
}

/// One of two that send each other a number, until it is the last. That ends both.
async fn play(
    mut inbox: mpsc::Receiver<u64>,
    other: mpsc::Sender<u64>,
    last: u64,
    outcome: oneshot::Sender<u64>,
) {
    while let Some(number) = inbox.recv().await {
        if number == last {
            // The receiver is still waiting.
            let _ = outcome.send(number);
            return;
        }
        if other.send(number + 1).await.is_err() {
            return;
        }
    }
}

async fn in_turn(last: u64) -> Result<Took> {
    let (to_first, first_inbox) = mpsc::channel(ROOM);
    let (to_second, second_inbox) = mpsc::channel(ROOM);
    let (first_last, first_outcome) = oneshot::channel();
    let (second_last, second_outcome) = oneshot::channel();
    let players = vec![
        tokio::spawn(play(first_inbox, to_second, last, first_last)),
        tokio::spawn(play(second_inbox, to_first.clone(), last, second_last)),
    ];
    let start = Instant::now();
    to_first.send(0).await?;
    let outcome = if last.is_multiple_of(2) {
        first_outcome
    } else {
        second_outcome
    };
    let number = outcome.await?;
    let elapsed = start.elapsed();
    drop(to_first);
    ended(players).await?;
    Ok((elapsed, number))
}

/// A worker has done a piece.
struct Done {
    worker: usize,
    piece: u64,
}

/// Has work for each of its workers, piece by piece, and gives how much was done.
async fn direct(
    mut inbox: mpsc::Receiver<Done>,
    workers: Vec<mpsc::Sender<u64>>,
    sizes: Asks,
) -> Result<u64> {
    for worker in &workers {
        worker.send(1).await?;
    }
    let mut done = 0;
    while done < sizes.replies()
        && let Some(Done { worker, piece }) = inbox.recv().await
    {
        done += 1;
        if piece < sizes.each {
            workers[worker].send(piece + 1).await?;
        }
    }
    Ok(done)
}

async fn work(worker: usize, mut inbox: mpsc::Receiver<u64>, master: mpsc::Sender<Done>) {
    while let Some(piece) = inbox.recv().await {
        if master.send(Done { worker, piece }).await.is_err() {
            return;
        }
    }
}

async fn replies(sizes: Asks) -> Result<Took> {
    let (to_master, inbox) = mpsc::channel(ROOM);
    let (mut workers, mut tasks) = (Vec::new(), Vec::new());
    for worker in 0..sizes.crowd as usize {
        let (to_worker, inbox) = mpsc::channel(ROOM);
        tasks.push(tokio::spawn(work(worker, inbox, to_master.clone())));
        workers.push(to_worker);
    }
    let start = Instant::now();
    let done = tokio::spawn(direct(inbox, workers, sizes)).await??;
    let elapsed = start.elapsed();
    ended(tasks).await?;
    Ok((elapsed, done))
}

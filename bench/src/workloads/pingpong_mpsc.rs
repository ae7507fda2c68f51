//! Two virtual threads pass a number to and fro over a pair of `std::sync::mpsc` channels.

use crate::place::Place;
use crate::workload::{Sample, Size, Workload};
use anyhow::{Result, ensure};
use pirn::thread;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

pub struct PingpongMpsc;

impl Workload for PingpongMpsc {
    fn name(&self) -> &'static str {
        "pingpong_mpsc"
    }

    fn about(&self) -> &'static str {
        "two virtual threads, there and back over std::sync::mpsc"
    }

    fn round(&self, size: Size) -> Result<Vec<Sample>> {
        let count = size.pick(300_000, 1000);
        let elapsed = Place::Virtual.run(move || ping(count))?;
        Ok(vec![
            Sample::nanos("there and back", elapsed, count, "round trip").goals(&[250.0]),
        ])
    }
}

fn ping(count: usize) -> Result<Duration> {
    let (there, pong_in) = mpsc::channel();
    let (pong_out, back) = mpsc::channel();
    let pong = thread::spawn(move || pong(&pong_in, &pong_out));

    let start = Instant::now();
    let mut number = 0;
    for _ in 0..count {
        there.send(number)?;
        number = back.recv()?;
    }
    let elapsed = start.elapsed();

    drop(there);
    pong.join().expect("the other thread only adds one");
    ensure!(
        number == count,
        "the number was passed back {number} times, not {count}"
    );
    Ok(elapsed)
}

/// Sends each number back, one greater, until there are no more.
fn pong(numbers: &Receiver<usize>, replies: &Sender<usize>) {
    while let Ok(number) = numbers.recv() {
        replies
            .send(number + 1)
            .expect("the first thread waits for replies");
    }
}

//! What a parked virtual thread takes of memory: resident, and the kernel's page tables for it.
//!
//! Every count has a fresh helper process, whose growth is measured, everything included that a
//! thread needs to be woken again: its stack, its bookkeeping, its handle.

use crate::memory::Footprint;
use crate::process;
use crate::workload::{Sample, Size, Workload};
use anyhow::{Context, Result, ensure};
use pirn::thread::{self, JoinHandle, Thread};
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub struct ParkedMemory;

/// The goals are for this many.
const MILLION: usize = 1_000_000;
/// 8.7 KiB and 4.7 KiB, a thread.
const GOALS: [f64; 2] = [8.7 * 1024.0, 4.7 * 1024.0];

impl Workload for ParkedMemory {
    fn name(&self) -> &'static str {
        "parked_memory"
    }

    fn about(&self) -> &'static str {
        "bytes taken by each of 10,000 to 1,000,000 parked virtual threads"
    }

    fn round(&self, size: Size) -> Result<Vec<Sample>> {
        let counts = size.pick([10_000, 100_000, MILLION], [100, 300, 1000]);
        let mut samples = Vec::new();
        for count in counts {
            let growth = growth(count).with_context(|| format!("with {count} threads"))?;
            let bytes = |n: u64| n as f64 / count as f64;
            let all = bytes(growth.resident + growth.page_tables);
            let goals = if count == MILLION { &GOALS[..] } else { &[] };
            samples.push(Sample::new(format!("{count} threads"), all, "bytes/thread").goals(goals));
            let tables = bytes(growth.page_tables);
            samples.push(Sample::new("  of it page tables", tables, "bytes/thread"));
        }
        Ok(samples)
    }

    fn helper(&self, count: usize) -> Result<()> {
        // Starts the runtime.
        thread::spawn(|| ())
            .join()
            .expect("the thread does nothing");
        let before = Footprint::now()?;
        let threads = park(count)?;
        let growth = Footprint::now()?.since(before);
        let woken = wake(threads);
        ensure!(woken == count, "{woken} of {count} threads were woken");
        println!("{}", serde_json::to_string(&growth)?);
        Ok(())
    }
}

/// The growth of a fresh process by so many threads.
fn growth(count: usize) -> Result<Footprint> {
    let output = process::helper(&ParkedMemory, count)?
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(
        output.status.success(),
        "their process ended with {} (see above)",
        output.status
    );
    let growth: Footprint = serde_json::from_slice(&output.stdout)?;
    ensure!(growth.resident > 0, "they took no memory at all");
    Ok(growth)
}

static PARKING: AtomicUsize = AtomicUsize::new(0);
static WAKE: AtomicBool = AtomicBool::new(false);
/// Whom the last one to park tells.
static WAITER: OnceLock<Thread> = OnceLock::new();

/// Spawns so many threads and waits until all are parked, or about to.
fn park(count: usize) -> Result<Vec<JoinHandle<usize>>> {
    let me = thread::current();
    WAITER.set(me).ok().context("parked before")?;
    let mut threads = Vec::with_capacity(count);
    for i in 0..count {
        let spawned = thread::Builder::new().spawn(move || parked(count));
        threads.push(spawned.with_context(|| format!("cannot spawn thread {i} of {count}"))?);
    }
    while PARKING.load(Ordering::SeqCst) < count {
        thread::park();
    }
    Ok(threads)
}

/// The life of a thread: gives 1 for being woken.
fn parked(count: usize) -> usize {
    if PARKING.fetch_add(1, Ordering::SeqCst) == count - 1 {
        WAITER.get().expect("set before the first spawn").unpark();
    }
    while !WAKE.load(Ordering::SeqCst) {
        thread::park();
    }
    1
}

/// Wakes all; gives how many were woken.
fn wake(threads: Vec<JoinHandle<usize>>) -> usize {
    WAKE.store(true, Ordering::SeqCst);
    for thread in &threads {
        thread.thread().unpark();
    }
    threads
        .into_iter()
        .map(|thread| thread.join().expect("the thread only parks"))
        .sum()
}

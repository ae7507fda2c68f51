//! A client that takes a large answer very slowly.

use std::fs;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use super::target::{Target, ask, be_told, connect, dump_of, tasks, until, usual_folder};
use crate::common::{SetAtEnd, child, watched};
use pirn::thread;
use pirn_dump::{Dump, State};

const THREADS: usize = 20_000;
/// More than what such a dump takes in memory, and less than some. The allocator that checks adds
/// to each block.
const MOST_KIB: u64 = if cfg!(pirn_checked_alloc) { 80 } else { 40 } << 10;

/// Returns the resident memory of a process.
fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

/// Reads a byte now and then, until it is over. Returns what it has read.
fn sip(mut stream: &std::os::unix::net::UnixStream, over: &AtomicBool) -> Vec<u8> {
    let mut got = Vec::new();
    while !over.load(SeqCst) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        got.push(byte[0]);
        std::thread::sleep(Duration::from_millis(50));
    }
    stream.read_to_end(&mut got).unwrap();
    got
}

/// As long as it lasts, `EACH` threads are woken and end.
const EACH: usize = 1000;

#[watched(limit = Duration::from_secs(600))]
fn a_slow_reader_of_a_large_dump_holds_up_nobody_and_is_dropped() {
    if child::is_here() {
        let mut parked: Vec<thread::JoinHandle<()>> = Vec::new();
        return be_told(|what| {
            match what {
                "spawn" => parked.extend((0..THREADS).map(|_| thread::spawn(thread::park))),
                "wake" => end(parked.drain(..EACH)),
                _ => end(parked.drain(..)),
            }
            String::new()
        });
    }
    let mut target = Target::start(&[], "");
    target.tell("spawn");
    until(|| (waiting(&dump_of(target.pid())) == THREADS + 1).then_some(()));
    // On a busy machine it may be dropped before the others have what they want.
    let mut left = THREADS;
    until(|| {
        left -= EACH;
        others_are_served_meanwhile(&mut target, left).then_some(())
    });
    target.tell("end");
    until(|| (waiting(&dump_of(target.pid())) == 1).then_some(()));
    target.finish();
}

fn end(threads: impl Iterator<Item = thread::JoinHandle<()>>) {
    for thread in threads {
        thread.thread().unpark();
        thread.join().unwrap();
    }
}

fn waiting(dump: &Dump) -> usize {
    dump.totals.by_state[State::Waiting as usize] as usize
}

/// Returns whether a process is sending something to a client that does not take it.
fn is_being_sent(pid: u32) -> bool {
    // `std` uses one or the other, by its version.
    let sends = [libc::SYS_sendto, libc::SYS_write].map(|call| format!("{call} "));
    let mut tasks = tasks(pid).unwrap();
    tasks.any(|task| {
        let call = task.read("syscall");
        task.name() == "pirn-observe" && sends.iter().any(|sends| call.starts_with(sends))
    })
}

/// Has a client take a dump very slowly until it is dropped, and others ask meanwhile. Returns
/// whether they were answered before. `left`: how many threads are left when some have been woken.
fn others_are_served_meanwhile(target: &mut Target, left: usize) -> bool {
    let before = resident_kib(target.pid());
    let mut slow = connect(target.pid(), &usual_folder());
    slow.write_all(b"pirn 1 dump threads=all\n").unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sipping = scope.spawn(|| sip(&slow, &over));
        let end = SetAtEnd(&over);
        target.tell("wake");
        let dump = dump_of(target.pid());
        assert_eq!(dump.threads.len(), left + 1);
        assert!(ask(target, "metrics").starts_with("ok text\n"));
        let used = resident_kib(target.pid()).saturating_sub(before);
        assert!(used < MOST_KIB, "{used} KiB");
        let meanwhile = is_being_sent(target.pid());
        // The listener is left.
        until(|| (target.threads("pirn-observe") == 1).then_some(()));
        drop(end);
        let got = sipping.join().unwrap();
        let payload = got.strip_prefix(b"ok dump\n").unwrap();
        assert!(Dump::read_from(payload).is_err(), "it was given all");
        meanwhile
    })
}

//! Threads that know what they do are compared with what dumps say, while they start, park, are
//! woken, are interrupted and end.

use super::{Read, depth_in};
use crate::common::{Rng, child, watched};
use pirn::thread;
use pirn_dump::{State, Thread};
use std::collections::HashMap;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// The ways to wait, by the first letter of the thread's name, and the function in which it waits.
const KINDS: [(char, &str); 5] = [
    ('p', "by_permit"),
    ('s', "by_sleep"),
    ('c', "by_condition"),
    ('r', "by_read"),
    ('i', "by_interrupt"),
];

/// What the threads share.
struct Stage {
    over: AtomicBool,
    turn: Mutex<u64>,
    changed: Condvar,
    pipe: (PipeReader, PipeWriter),
    /// The names of threads that have not been joined, by their ids.
    names: Mutex<HashMap<u64, String>>,
}

impl Stage {
    /// Notes the id that a thread of this name has.
    fn note(&self, thread: &thread::Thread) {
        let name = thread.name().unwrap().to_owned();
        self.names.lock().unwrap().insert(id(thread), name);
    }
}

/// Returns the number in a thread's id.
fn id(thread: &thread::Thread) -> u64 {
    let id = format!("{:?}", thread.id());
    let digits = id.trim_matches(|c: char| !c.is_ascii_digit());
    digits.parse().unwrap()
}

#[inline(never)]
fn by_permit() {
    thread::park_timeout(Duration::from_millis(5));
}

#[inline(never)]
fn by_sleep() {
    thread::sleep(Duration::from_micros(200));
}

#[inline(never)]
fn by_condition(stage: &Stage) {
    let turn = stage.turn.lock().unwrap();
    let before = *turn;
    let same = |turn: &mut u64| *turn == before && !stage.over.load(Relaxed);
    drop(stage.changed.wait_while(turn, same).unwrap());
}

#[inline(never)]
fn by_read(stage: &Stage) {
    (&stage.pipe.0).read_exact(&mut [0]).unwrap();
}

#[inline(never)]
fn by_interrupt() {
    let _ = thread::park_interruptible();
}

/// What a thread is to do: the kind of its wait, its depth, and at which depth it takes the other
/// way, if at all. So stacks differ in a single frame.
#[derive(Clone, Copy)]
struct Role {
    kind: usize,
    depth: usize,
    turn: Option<usize>,
}

impl Role {
    fn any(rng: &mut Rng) -> Role {
        let (kind, depth) = (rng.below(5) as usize, rng.below(30) as usize);
        let turn = 1 + rng.below(60) as usize;
        let turn = Some(turn).filter(|turn| *turn <= depth);
        Role { kind, depth, turn }
    }

    /// Returns the beginning of the thread's name.
    fn name(self) -> String {
        let (letter, depth) = (KINDS[self.kind].0, self.depth);
        match self.turn {
            Some(turn) => format!("{letter}{depth}-{turn}"),
            None => format!("{letter}{depth}-none"),
        }
    }
}

/// A way to the next depth.
type Way = fn(usize, Option<usize>, &mut dyn FnMut());

static WAYS: [Way; 2] = [descend_straight, descend_turned];

#[inline(never)]
fn descend_straight(depth: usize, turn: Option<usize>, f: &mut dyn FnMut()) {
    onward(depth, turn, f);
    std::hint::black_box(1); // So this is no tail call, and another function.
}

#[inline(never)]
fn descend_turned(depth: usize, turn: Option<usize>, f: &mut dyn FnMut()) {
    onward(depth, turn, f);
    std::hint::black_box(2);
}

/// Goes on to the next depth, from one place.
#[inline(never)]
fn onward(depth: usize, turn: Option<usize>, f: &mut dyn FnMut()) {
    match depth {
        0 => f(),
        _ => WAYS[usize::from(turn == Some(depth))](depth - 1, turn, f),
    }
    std::hint::black_box(depth);
}

/// Waits in the way of this kind until it is over, at this depth.
fn play(stage: &Stage, role: Role, rounds: usize) {
    for _ in 0..rounds {
        if stage.over.load(Relaxed) {
            return;
        }
        descend_straight(role.depth, role.turn, &mut || match KINDS[role.kind].0 {
            'p' => by_permit(),
            's' => by_sleep(),
            'c' => by_condition(stage),
            'r' => by_read(stage),
            _ => by_interrupt(),
        });
    }
}

/// Compares what a dump says about a thread with its name: kind, depth, turn, and a number.
fn check(read: &Read, seen: &Thread) -> bool {
    let name = String::from_utf8(seen.name.clone().unwrap()).unwrap();
    let mut parts = name[1..].split('-');
    let kind = name.chars().next().unwrap();
    let depth: usize = parts.next().unwrap().parse().unwrap();
    let turn: Option<usize> = parts.next().unwrap().parse().ok();
    let Some(functions) = read.functions(seen) else {
        assert_ne!(
            seen.state,
            State::Waiting,
            "{name} waits, and its stack is not whole"
        );
        return false;
    };
    let place = KINDS.iter().find(|(letter, _)| *letter == kind).unwrap().1;
    let inside = functions.iter().any(|name| name.contains("descend"));
    if inside {
        let other = KINDS.iter().filter(|(letter, _)| *letter != kind);
        for (_, other) in other {
            assert!(
                !functions.iter().any(|name| name.ends_with(other)),
                "{name}: {functions:?}"
            );
        }
        if functions.iter().any(|name| name.ends_with(place)) {
            assert_eq!(depth_in(&functions), depth, "{name}: {functions:?}");
            let ways = functions.iter().filter(|name| name.contains("descend_"));
            let turned = ways
                .clone()
                .position(|name| name.contains("descend_turned"));
            // The way to a depth is the frame of the depth before.
            assert_eq!(turned.map(|at| at + 1), turn, "{name}: {functions:?}");
            assert!(ways.filter(|name| name.contains("turned")).count() <= 1);
        }
    }
    if seen.state == State::Waiting {
        assert!(inside, "{name} waits elsewhere: {functions:?}");
    }
    inside
}

/// Gives those who read something, if the pipe is not full.
fn feed(stage: &Stage) {
    let _ = (&stage.pipe.1).write(&[0; 10]);
}

/// Returns a pipe whose writer does not wait.
fn pipe() -> (PipeReader, PipeWriter) {
    let pipe = std::io::pipe().unwrap();
    // SAFETY: no pointers.
    let set = unsafe { libc::fcntl(pipe.1.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    assert_eq!(set, 0);
    pipe
}

/// Starts threads, wakes them, and starts others in place of those that end, until it is over.
fn direct(stage: &Arc<Stage>, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut cast: Vec<thread::JoinHandle<()>> = Vec::new();
    let mut number = 0;
    while !stage.over.load(Relaxed) {
        while cast.len() < 60 {
            number += 1;
            let role = Role::any(&mut rng);
            let rounds = 1 + rng.below(50) as usize;
            let stage = Arc::clone(stage);
            let name = format!("{}-{seed}-{number}", role.name());
            let builder = thread::Builder::new().name(name);
            let one = builder.spawn({
                let stage = Arc::clone(&stage);
                move || play(&stage, role, rounds)
            });
            let one = one.unwrap();
            stage.note(one.thread());
            cast.push(one);
        }
        for _ in 0..20 {
            let one = cast[rng.below(cast.len() as u64) as usize].thread();
            match rng.below(3) {
                0 => one.unpark(),
                1 if one.name().is_some_and(|name| name.starts_with('i')) => one.interrupt(),
                _ => {}
            }
        }
        *stage.turn.lock().unwrap() += 1;
        stage.changed.notify_all();
        feed(stage);
        std::thread::sleep(rng.micros(300));
        let (ended, others): (Vec<_>, _) = cast.into_iter().partition(|one| one.is_finished());
        cast = others;
        for one in ended {
            stage.names.lock().unwrap().remove(&id(one.thread()));
            one.join().unwrap();
        }
    }
    // Those that read are given as much as they may still want.
    while cast.iter().any(|one| !one.is_finished()) {
        *stage.turn.lock().unwrap() += 1;
        stage.changed.notify_all();
        for one in &cast {
            one.thread().unpark();
            if one
                .thread()
                .name()
                .is_some_and(|name| name.starts_with('i'))
            {
                one.thread().interrupt();
            }
        }
        feed(stage);
        std::thread::sleep(Duration::from_millis(1));
    }
    cast.into_iter().for_each(|one| one.join().unwrap());
}

#[watched(limit = Duration::from_secs(600 + 10 * seconds()))]
fn dumps_say_what_threads_know() {
    child::with_carriers(&["1", "2", "8"], compare);
}

/// Compares the names in a dump with those that the threads with these ids have. Returns how many
/// were compared: a thread that has just been spawned or joined has no name to compare with.
fn check_names(stage: &Stage, read: &Read) -> usize {
    let known = stage.names.lock().unwrap();
    let mut compared = 0;
    for seen in &read.dump.threads {
        if let Some(name) = known.get(&seen.id) {
            assert_eq!(seen.name.as_deref(), Some(name.as_bytes()), "{seen:?}");
            compared += 1;
        }
    }
    compared
}

/// Has threads play, and compares them with dumps.
fn compare() {
    let stage = Arc::new(Stage {
        over: AtomicBool::new(false),
        turn: Mutex::new(0),
        changed: Condvar::new(),
        pipe: pipe(),
        names: Mutex::default(),
    });
    let directors: Vec<_> = (1..=2)
        .map(|seed| {
            let stage = Arc::clone(&stage);
            std::thread::spawn(move || direct(&stage, seed))
        })
        .collect();
    let (mut checked, mut named, mut dumps, began) = (0, 0, 0, Instant::now());
    while checked.min(named) < 1000 || began.elapsed() < Duration::from_secs(seconds()) {
        let read = Read::now();
        let counted: u64 = read.dump.groups.iter().map(|group| group.count).sum();
        assert_eq!(counted, read.dump.totals.listed);
        assert_eq!(read.dump.totals.by_state.iter().sum::<u64>(), counted);
        assert_eq!(read.dump.threads.len() as u64, counted);
        let mut ids: Vec<u64> = read.dump.threads.iter().map(|thread| thread.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len() as u64, counted, "each thread is there once");
        named += check_names(&stage, &read);
        checked += read
            .dump
            .threads
            .iter()
            .filter(|seen| check(&read, seen))
            .count();
        dumps += 1;
    }
    stage.over.store(true, Relaxed);
    for director in directors {
        director.join().unwrap();
    }
    eprintln!("{checked} stacks in {dumps} dumps");
    assert_eq!(
        pirn::dump::take().threads(),
        0,
        "no thread that has ended is there"
    );
}

/// How long to go on, at least: `PIRN_TRUTH_SECONDS`.
fn seconds() -> u64 {
    let seconds = std::env::var("PIRN_TRUTH_SECONDS");
    seconds.map_or(0, |seconds| seconds.parse().unwrap())
}

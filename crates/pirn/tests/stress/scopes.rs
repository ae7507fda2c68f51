//! Many scopes and subtasks that succeed, fail, panic, time out, are interrupted and cancelled, at
//! random: each scope is left, none of its threads outlives it, every value is dropped once, and no
//! memory is lost.
//!
//! All random choices follow from a seed, which failures name. `PIRN_STRESS` multiplies the rounds
//! (10: some minutes), and `PIRN_STRESS_SEED` is the first seed.

use std::cell::Cell;
use std::env;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crate::common::memory::resident;
use crate::common::{Rng, child, watched};
use pirn::scope::{self, Builder, JoinError, TaskScope};
use pirn::thread::{self, Interrupted};

/// Longer than any test, unless interrupted.
const FOREVER: Duration = Duration::from_secs(3600);

const CARRIERS: [&str; 4] = ["1", "2", "8", "32"];

fn number(variable: &str, otherwise: u64) -> u64 {
    let text = env::var(variable).ok();
    text.map_or(otherwise, |text| text.parse().unwrap())
}

fn times(rounds: usize) -> usize {
    rounds * number("PIRN_STRESS", 1) as usize
}

fn first_seed() -> u64 {
    number("PIRN_STRESS_SEED", 1)
}

/// Returns the time limit of one test.
fn limit() -> Duration {
    Duration::from_secs(200) * number("PIRN_STRESS", 1) as u32
}

/// The number of live instances, and of all that ever existed.
struct Census {
    born: AtomicUsize,
    gone: AtomicUsize,
}

impl Census {
    const fn new() -> Census {
        Census {
            born: AtomicUsize::new(0),
            gone: AtomicUsize::new(0),
        }
    }

    fn assert_even(&self, what: &str) {
        let (born, gone) = (self.born.load(SeqCst), self.gone.load(SeqCst));
        assert_eq!(born, gone, "{what} that came and that went");
    }
}

static VALUES: Census = Census::new();
static SUBTASKS: Census = Census::new();

/// One counted instance.
struct One(&'static Census);

impl One {
    fn of(census: &'static Census) -> One {
        census.born.fetch_add(1, SeqCst);
        One(census)
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.0.gone.fetch_add(1, SeqCst);
    }
}

/// A value that borrows something that outlives the scope, and checks when it is dropped that this
/// still exists.
struct Value<'env> {
    borrowed: &'env Alive,
    _one: One,
}

impl<'env> Value<'env> {
    fn new(borrowed: &'env Alive) -> Value<'env> {
        borrowed.check();
        Value {
            borrowed,
            _one: One::of(&VALUES),
        }
    }
}

impl Drop for Value<'_> {
    fn drop(&mut self) {
        self.borrowed.check();
    }
}

/// Something on the stack of an owner that can tell whether it still exists.
struct Alive(AtomicUsize);

const ALIVE: usize = 0x5a5a_1234_5a5a;

impl Alive {
    fn new() -> Alive {
        Alive(AtomicUsize::new(ALIVE))
    }

    fn check(&self) {
        assert_eq!(self.0.load(SeqCst), ALIVE, "used after the scope was left");
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.store(0xdead, SeqCst);
    }
}

type Failed = JoinError<Interrupted>;

fn nothing_is_left() {
    let left = scope::snapshot();
    assert!(left.is_empty(), "{left:?}");
    VALUES.assert_even("values");
    SUBTASKS.assert_even("subtasks");
}

fn count_forks(builder: Builder, count: usize) {
    let alive = Alive::new();
    let values = builder.open_with(scope::await_all(), |s| {
        for _ in 0..count {
            s.fork(|| {
                let _one = One::of(&SUBTASKS);
                Ok::<_, Interrupted>(Value::new(&alive))
            });
        }
        s.join()?;
        Ok(())
    });
    values.unwrap();
}

#[watched(limit = limit())]
fn a_million_forks() {
    // In all, over the numbers of carriers: a quarter of them in scopes with a limit.
    child::with_carriers(&CARRIERS, || {
        let (scopes, in_one) = (times(188), times(31_000));
        count_forks(Builder::new().limit(1000), in_one);
        (0..scopes / 2).for_each(|_| count_forks(Builder::new(), 1000));
        let before = resident();
        (scopes / 2..scopes).for_each(|_| count_forks(Builder::new(), 1000));
        count_forks(Builder::new().limit(1000), in_one);
        let more = resident().saturating_sub(before);
        println!("{before} bytes, then {more} more");
        assert!(more < 2 << 20, "{more} bytes more after as many again");
        assert_eq!(SUBTASKS.born.load(SeqCst), 1000 * scopes + 2 * in_one);
        nothing_is_left();
    });
}

// --- scopes at random

/// Spends time as a subtask, and ends in some way.
fn subtask<'env>(seed: u64, alive: &'env Alive, depth: u32) -> Result<Value<'env>, Interrupted> {
    let _one = One::of(&SUBTASKS);
    let mut rng = Rng::new(seed);
    let value = Value::new(alive);
    match rng.below(20) {
        0..6 => {}
        6..9 => thread::yield_now(),
        9 => thread::sleep_interruptible(rng.micros(300))?,
        10..13 => thread::sleep_interruptible(Duration::from_millis(5))?,
        13 => return Err(Interrupted),
        14 => std::panic::resume_unwind(Box::new("expected")), // says nothing
        15 => drop(thread::spawn(thread::yield_now).join()),
        16 => {
            let (_sender, receiver) = std::sync::mpsc::channel::<()>();
            let _ = receiver.recv_timeout(rng.micros(500));
        }
        _ if depth > 0 => {
            let _ = at_random(rng.below(u64::MAX), depth - 1);
        }
        _ => {}
    }
    Ok(value)
}

/// Goes on as an owner that has forked all subtasks.
fn finish<'scope, 'env, J>(
    s: TaskScope<'scope, 'env, J>,
    rng: &mut Rng,
) -> Result<(), JoinError<Interrupted>>
where
    J: scope::Joiner<Error = Interrupted>,
{
    match rng.below(12) {
        0 => s.cancel(),
        1 => Err(Interrupted)?, // leaves it unjoined
        2 => std::panic::resume_unwind(Box::new("expected")),
        3 => thread::current().interrupt(),
        4 => {
            let soon = std::time::Instant::now() + rng.micros(300);
            s.join_until(soon)?;
            return Ok(());
        }
        5 => thread::yield_now(),
        _ => {}
    }
    s.join()?;
    Ok(())
}

/// Runs a random scope.
fn at_random(seed: u64, depth: u32) -> Result<(), Failed> {
    let mut rng = Rng::new(seed);
    let alive = Alive::new();
    let mut builder = Builder::new();
    match rng.below(10) {
        0 => builder = builder.timeout(rng.micros(400)),
        1 => builder = builder.timeout(Duration::from_secs(1000)),
        2 => builder = builder.limit(1 + rng.below(4) as usize),
        _ => {}
    }
    let count = rng.below(6);
    let joiner = rng.below(5);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match joiner {
        0 => builder.open(|s| {
            let mut kept = Vec::new();
            for _ in 0..count {
                let seed = rng.below(u64::MAX);
                let alive = &alive;
                let subtask = s.fork(move || subtask(seed, alive, depth));
                if rng.below(2) == 0 {
                    kept.push(subtask);
                }
            }
            finish(s, &mut rng)
        }),
        1 => open(
            builder,
            scope::any_successful(),
            count,
            &alive,
            depth,
            &mut rng,
        ),
        2 => open(
            builder,
            scope::all_successful(),
            count,
            &alive,
            depth,
            &mut rng,
        ),
        3 => {
            let calls = AtomicUsize::new(0);
            let enough =
                |_: &scope::Completed<'_, Value<'_>, Interrupted>| calls.fetch_add(1, SeqCst) == 2;
            open(
                builder,
                scope::all_until(enough),
                count,
                &alive,
                depth,
                &mut rng,
            )
        }
        _ => open(builder, scope::await_all(), count, &alive, depth, &mut rng),
    }));
    thread::take_interrupt(); // may have interrupted itself, after its join
    result.unwrap_or(Ok(()))
}

fn open<'env, J>(
    builder: Builder,
    joiner: J,
    count: u64,
    alive: &'env Alive,
    depth: u32,
    rng: &mut Rng,
) -> Result<(), Failed>
where
    J: scope::JoinerFor<Value<'env>, Error = Interrupted>,
{
    builder.open_with(joiner, |s| {
        for _ in 0..count {
            let seed = rng.below(u64::MAX);
            s.fork(move || subtask(seed, alive, depth));
        }
        finish(s, rng)
    })
}

thread_local! {
    /// The seed of the platform thread, for its panics.
    static SEED: Cell<u64> = const { Cell::new(0) };
}

struct TellSeed;

impl Drop for TellSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed was {}", SEED.get());
        }
    }
}

/// Runs scopes with these seeds, some in sequence and some in parallel, while another thread
/// interrupts their owners.
fn scopes_at_random(seeds: std::ops::Range<u64>) {
    let _tell = TellSeed;
    for seed in seeds.clone().step_by(10) {
        SEED.set(seed);
        let owners: Vec<_> = (seed..seed + 10)
            .map(|seed| thread::spawn(move || drop(at_random(seed, 2))))
            .collect();
        let mut rng = Rng::new(seed);
        for owner in &owners {
            if rng.below(4) == 0 {
                owner.thread().interrupt();
            }
            if rng.below(8) == 0 {
                thread::yield_now();
            }
        }
        for owner in owners {
            owner.join().unwrap();
        }
        let _ = at_random(seed, 1); // and by a platform thread
        nothing_is_left();
    }
}

#[watched(limit = limit())]
fn ten_thousand_scopes_at_random() {
    child::with_carriers(&CARRIERS, || {
        let count = times(2500) as u64;
        let first = first_seed() * 1_000_000;
        scopes_at_random(first..first + count);
        let before = resident();
        for round in 1..=3 {
            let first = first + round * count;
            scopes_at_random(first..first + count);
        }
        let more = resident().saturating_sub(before);
        println!("{before} bytes, then {more} more");
        // The allowance is for stacks that more threads at once have touched, not for leaks per
        // scope.
        assert!(
            more < 8 << 20,
            "{more} bytes more than after the first of four rounds"
        );
    });
}

// --- forks and cancellation

/// One subtask fails while its owner still forks: each of the others is never started, or
/// interrupted, or done.
#[watched(limit = limit())]
fn forks_race_with_the_cancellation_by_a_sibling() {
    child::with_carriers(&CARRIERS, || {
        let mut rng = Rng::new(first_seed());
        for _ in 0..times(3000) {
            let place = rng.below(30);
            let alive = Alive::new();
            let result: Result<(), Failed> = pirn::scope::open(|s| {
                for i in 0..place + 20 {
                    let alive = &alive;
                    s.fork(move || {
                        let _one = One::of(&SUBTASKS);
                        if i == place {
                            return Err(Interrupted);
                        }
                        // Only the cancellation ends it.
                        thread::sleep_interruptible(FOREVER).map(|()| Value::new(alive))
                    });
                }
                s.join()?;
                Ok(())
            });
            assert!(
                matches!(result, Err(JoinError::Failed(Interrupted))),
                "{result:?}"
            );
        }
        nothing_is_left();
    });
}

/// Owner, clock, joiner and an interrupter, all at once: one of them wins, and every subtask is
/// interrupted once.
#[watched(limit = limit())]
fn many_cancel_at_once() {
    child::with_carriers(&CARRIERS, || {
        let mut rng = Rng::new(first_seed());
        for _ in 0..times(1000) {
            let (time, pause) = (rng.micros(400), rng.below(4));
            let owner = thread::spawn(move || {
                let alive = Alive::new();
                let result: Result<(), Failed> = Builder::new().timeout(time).open(|s| {
                    for i in 0..12 {
                        let alive = &alive;
                        s.fork(move || {
                            let _one = One::of(&SUBTASKS);
                            let _value = Value::new(alive);
                            // Two of them fail by themselves, or only the clock ends them.
                            let delay = if i < 2 && pause != 1 { time } else { FOREVER };
                            thread::sleep_interruptible(delay)?;
                            Err::<(), _>(Interrupted)
                        });
                    }
                    if pause == 0 {
                        thread::sleep(time);
                        s.cancel();
                    }
                    s.join()?;
                    Ok(())
                });
                result.unwrap_err()
            });
            if pause != 1 {
                thread::sleep(time);
                owner.thread().interrupt();
            }
            let error = owner.join().unwrap();
            match error {
                JoinError::TimedOut => {}
                JoinError::Failed(_) | JoinError::Interrupted => assert_ne!(pause, 1),
                JoinError::Cancelled => assert_eq!(pause, 0),
                other => panic!("{other:?}"),
            }
        }
        nothing_is_left();
    });
}

//! Known kinds of bugs: each broken program is found by the seeds of a test, and its repaired twin
//! passes.
//!
//! ```text
//! cargo pirn sim test -p pirn-sim --test bugs
//! PIRN_SIM_SEEDS=10000 cargo pirn sim test -p pirn-sim --test bugs                 every night
//! cargo pirn sim test -p pirn-sim --test bugs -- --ignored --nocapture numbers     for the docs
//! ```

mod disks;
mod locks;
mod memory;
mod network;

use pirn_sim::{Failure, Sim, Strategy};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// A program with a bug, and without it.
struct Bug {
    name: &'static str,
    /// Only points at atomic operations show it.
    atomics: bool,
    /// With its faults, if it needs some.
    sim: Sim,
    /// Whether the bug is mended is its argument.
    program: fn(bool),
}

/// Makes a table of the bugs, and a test for each.
macro_rules! bugs {
    ($($name:ident $kind:ident $program:path $(, $fault:ident($($with:expr),*))*;)*) => {
        fn bugs() -> Vec<Bug> {
            vec![$(Bug {
                name: stringify!($name),
                atomics: bugs!($kind),
                sim: Sim::new()$(.$fault($($with),*))*,
                program: $program,
            }),*]
        }
        $(
            #[test]
            fn $name() {
                let bug = bugs().into_iter().find(|bug| bug.name == stringify!($name));
                bug.unwrap().check();
            }
        )*
    };
    (atomics) => { true };
    (calls) => { false };
}

bugs! {
    a_lost_wake_up atomics locks::wake_up;
    two_locks_in_two_orders atomics locks::two_locks;
    an_if_for_a_while_around_a_wait atomics locks::queue;
    a_notify_one_for_a_notify_all calls locks::full_or_empty;
    a_lost_update atomics memory::update;
    a_cache_that_computes_twice atomics memory::cache;
    aba_in_a_stack atomics memory::stack;
    a_torn_read_of_two_atomics atomics memory::pair;
    a_lease_without_fencing calls network::lease, pauses(200, Duration::from_secs(30));
    a_retry_without_idempotence calls network::retry;
    a_split_brain calls network::election;
    a_write_without_fsync calls disks::log;
}

impl Bug {
    fn check(&self) {
        if self.atomics && !has_points() {
            println!("left out: not by `cargo pirn sim test`, so without points at atomics");
            return;
        }
        let failure = self.first(0..1000).expect("the bug is not found");
        let needed = failure.needed.as_ref().expect("its schedule shows it");
        let program = self.program;
        let [one, other] = [(); 2].map(|()| {
            let replay = Strategy::Replay(needed.clone());
            let sim = self.sim.clone().strategy(replay);
            sim.run(failure.report.seed, move || program(false))
        });
        let kind = std::mem::discriminant(&failure.report.outcome);
        assert_eq!(std::mem::discriminant(&one.outcome), kind, "{failure}");
        assert_eq!(one.hash, other.hash);
        assert!(needed.len() <= 12, "{failure}");
        let sim = self.sim.clone().seeds(0..500);
        sim.check(move || program(true));
    }

    /// Returns the first failure of the broken program.
    fn first(&self, seeds: Range<u64>) -> Option<Box<Failure>> {
        let program = self.program;
        let sim = self.sim.clone().seeds(seeds);
        sim.try_check(move || program(false)).err()
    }

    /// Prints its row of a table.
    fn measure(&self) {
        let until = |range: u64| {
            let seeds = range * 1000..(range + 1) * 1000;
            self.first(seeds).map_or(1000, |failure| failure.passed + 1)
        };
        let mean = (20..32).map(until).sum::<u64>() as f64 / 12.0;
        let (mut seed, mut failures) = (0, Vec::new());
        while failures.len() < 50
            && let Some(failure) = self.first(seed..1000)
        {
            seed = failure.report.seed + 1;
            failures.push(failure.needed.map(|it| it.len()));
        }
        let mut switches: Vec<_> = failures.iter().flatten().copied().collect();
        switches.sort_unstable();
        println!(
            "| {} | {mean:.1} | {} of {} | {:?}, {:?} | {} |",
            self.name,
            failures.len(),
            if failures.len() < 50 { 1000 } else { seed },
            switches.get(switches.len() / 2),
            switches.last(),
            failures.len() - switches.len(),
        );
    }
}

/// Returns whether this code is instrumented.
fn has_points() -> bool {
    let report = Sim::new().run(0, || {
        let value = AtomicU32::new(0);
        for _ in 0..10 {
            value.fetch_add(1, SeqCst);
        }
    });
    report.points >= 10
}

/// Runs `show` for each bug. Not on the test's thread, where each failure would be confirmed in a
/// fresh process.
fn for_each(show: fn(&Bug)) {
    let all = std::thread::spawn(move || bugs().iter().for_each(show));
    all.join().unwrap();
}

/// Prints what docs/simulation.md says about each.
#[test]
#[ignore = "no test: a table"]
fn numbers() {
    println!("| bug | first seed, mean of 12 | failing | switches: median, most | lost |");
    for_each(Bug::measure);
}

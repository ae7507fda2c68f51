//! Deterministic simulation of ordinary blocking code.
//!
//! A test of code that uses `std::thread`, `std::sync` and `std::time`, and crates above them, runs
//! under a seeded scheduler, in virtual time, with seeded randomness. A seed that fails, fails
//! again.
//!
//! ```
//! use pirn_sim::Sim;
//! use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
//! use std::{sync::Arc, thread, time::Duration};
//!
//! Sim::new().seeds(0..20).check(|| {
//!     let sum = Arc::new(AtomicU32::new(0));
//!     let threads: Vec<_> = (1..=3)
//!         .map(|n| {
//!             let sum = Arc::clone(&sum);
//!             thread::spawn(move || {
//!                 thread::sleep(Duration::from_secs(n * 3600)); // No time passes outside.
//!                 sum.fetch_add(1, SeqCst);
//!             })
//!         })
//!         .collect();
//!     threads.into_iter().for_each(|thread| thread.join().unwrap());
//!     assert_eq!(sum.load(SeqCst), 3);
//! });
//! ```

mod claims;
mod clock;
mod crash;
pub mod disk;
mod entropy;
mod failure;
mod fresh;
mod kernel;
pub mod net;
mod points;
#[doc(hidden)]
pub mod program;
mod random;
mod run;
mod schedule;
mod seeds;
mod sim;
mod stacks;
mod strategy;
mod timers;
mod trace;
mod world;

pub use claims::{Claim, always, sometimes};
pub use failure::Failure;
pub use pirn_macros::simulate as test;
pub use pirn_rt::sched::simulation::Point;
pub use run::{Panic, Report};
pub use schedule::Switch;
pub use sim::{Sim, Summary, chance, is_simulated};
pub use strategy::{Census, Strategy};
pub use world::{Outcome, Step, Thread};

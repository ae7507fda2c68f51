//! The memory budget of large answers: how much all answers may have together.
//!
//! A dump that lists a million threads is made at once, and takes some 200 MB until its client has
//! read it, up to a minute. So each answer reserves what it may need before it is made, and then
//! keeps what it has. An answer larger than the whole budget gets it when no other answer has any.
//!
//! A tool must not end a process whose memory is short: an allocation that fails would abort it. So
//! the allocator is asked beforehand for all that an answer may take. It does not know what the
//! program's other threads take meanwhile, nor what a cgroup refuses.

use super::request::Refusal;
use pirn_rt::alloc;
use pirn_rt::poison::locked;
use pirn_rt::sys;
use pirn_rt::time::Deadline;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The bytes of all answers together, unless one alone is larger.
pub const MOST_BYTES: u64 = 256 << 20;
/// How long an answer waits for its part. A client waits for longer.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two looks.
const PAUSE_NS: u64 = 10_000_000;

/// The memory that answers have at the moment.
static TAKEN: Taken = Taken(Mutex::new(0));

/// Bytes.
struct Taken(Mutex<u64>);

impl Taken {
    fn lock(&self) -> MutexGuard<'_, u64> {
        locked(&self.0)
    }

    /// Reserves memory, if enough is left.
    ///
    /// # Errors
    /// What others have.
    fn take(&'static self, bytes: u64) -> Result<Budget, u64> {
        let mut sum = self.lock();
        let fits = bytes == 0 || *sum == 0 || sum.saturating_add(bytes) <= MOST_BYTES;
        if !fits {
            return Err(*sum);
        }
        *sum = sum.saturating_add(bytes);
        Ok(Budget { taken: self, bytes })
    }
}

/// Budget for an answer, until this is dropped.
pub struct Budget {
    taken: &'static Taken,
    bytes: u64,
}

impl Budget {
    /// Reserves memory for an answer of this size, as soon as enough is left.
    ///
    /// # Errors
    /// There was none for the whole time: what to tell the client.
    pub fn take(bytes: u64, patience: Duration) -> Result<Budget, Refusal> {
        Budget::take_of(&TAKEN, bytes, patience)
    }

    fn take_of(taken: &'static Taken, bytes: u64, patience: Duration) -> Result<Budget, Refusal> {
        let deadline = Deadline::after(patience);
        loop {
            match taken.take(bytes) {
                Ok(budget) => return Ok(budget),
                Err(sum) if deadline.has_passed() => return Err(busy(sum, bytes)),
                Err(_) => sys::nap(PAUSE_NS),
            }
        }
    }

    /// Makes sure that the process can allocate it, and what is needed beside it.
    ///
    /// # Errors
    /// It cannot: what to tell the client.
    pub fn is_free(&self) -> Result<(), Refusal> {
        let bytes = self.bytes.saturating_add(BESIDE);
        match usize::try_from(bytes).map(alloc::probe) {
            Ok(Ok(())) => Ok(()),
            _ => Err(short(bytes)),
        }
    }

    /// Notes how much the answer really has: that is not refused any more.
    pub fn resize(&mut self, bytes: u64) {
        let mut sum = self.taken.lock();
        *sum = (*sum - self.bytes).saturating_add(bytes);
        self.bytes = bytes;
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        *self.taken.lock() -= self.bytes;
    }
}

/// What a dump needs beside its list of threads: stacks by their addresses, groups, modules, the
/// encoded answer. A million threads in a hundred groups took less.
const BESIDE: u64 = 24 << 20;

fn short(bytes: u64) -> Refusal {
    let own = bytes.div_ceil(1 << 20);
    Refusal(format!(
        "the process has no memory for this dump, which may need {own} MiB: raise its limit (`prlimit \
         --as`, `--data`), ask for groups only, or take a core file (gcore) and look at that"
    ))
}

fn busy(sum: u64, bytes: u64) -> Refusal {
    let [sum, own, most] = [sum, bytes, MOST_BYTES].map(|bytes| bytes.div_ceil(1 << 20));
    Refusal(format!(
        "busy: dumps that are under way have {sum} MiB, this one may need {own} MiB, and together \
         they may have {most}: try again, or ask for groups only"
    ))
}

#[cfg(test)]
mod tests;

//! A full pool: calls wait for one of its threads, and there can be no more.
//!
//! Calls are taken in the order in which they came. So if fewer have been taken since a look than
//! waited then, one of those has waited ever since.

use super::in_kernel;
use super::report::Report;
use super::{Context, Look};
use crate::findings::Kind;
use pirn_rt::blocking::pool::jobs::Load;
use std::fmt::Write;

/// See the module's documentation.
pub(super) struct Pool {
    limit: u64,
    /// How many had been taken, and how many waited, when the wait that is watched was first seen.
    mark: Option<(u32, usize)>,
    /// For how long it has lasted.
    waited: u64,
    /// It has been reported.
    reported: bool,
}

impl Pool {
    pub(super) fn new(limit: u64) -> Pool {
        Pool {
            limit,
            mark: None,
            waited: 0,
            reported: false,
        }
    }

    /// Takes note of a look, `step` ns after the last. Returns whether to report it.
    fn note(&mut self, load: &Load, step: u64) -> bool {
        if load.busy < load.limit || load.waiting == 0 {
            (self.mark, self.waited, self.reported) = (None, 0, false);
            return false;
        }
        match self.mark {
            Some((taken, waiting)) if (load.taken.wrapping_sub(taken) as usize) < waiting => {
                self.waited += step;
            }
            _ => {
                self.mark = Some((load.taken, load.waiting));
                (self.waited, self.reported) = (0, false);
            }
        }
        let late = self.waited >= self.limit && !self.reported;
        self.reported |= late;
        late
    }
}

impl Look for Pool {
    fn look(&mut self, context: &mut Context<'_>) {
        let load = context.runtime.pool.load();
        if self.note(&load, context.step) {
            let text = text(&load, self.waited);
            context
                .reporter
                .report(Report::new(Kind::PoolFull, (), text));
        }
    }
}

fn text(load: &Load, waited: u64) -> String {
    let ids = &load.some[..load.busy.min(load.some.len())];
    let mut calls: Vec<String> = ids
        .iter()
        .filter_map(|&id| in_kernel::place(id))
        .map(|place| in_kernel::name(place.call))
        .collect();
    calls.sort_unstable();
    let mut text = format!(
        "a call has waited for a thread of the pool for {:.1} s: all {} threads make calls",
        waited as f64 / 1e9,
        load.limit,
    );
    let most = calls.chunk_by(|a, b| a == b).max_by_key(|same| same.len());
    if let Some(same) = most {
        // Writing to a string does not fail.
        let _ = write!(text, ", {} of {} in {}", same.len(), ids.len(), same[0]);
    }
    let _ = write!(
        text,
        ", and {} calls wait; raise PIRN_MAX_BLOCKING_THREADS={}, or find out why these calls take \
         so long",
        load.waiting, load.limit
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(busy: usize, waiting: usize, taken: u32) -> Load {
        Load {
            waiting,
            busy,
            some: [0; _],
            limit: 2,
            taken,
        }
    }

    #[test]
    fn only_a_call_that_has_waited_all_the_time_counts() {
        let mut pool = Pool::new(10);
        assert!(!pool.note(&load(1, 5, 0), 10), "threads are on their way");
        assert!(!pool.note(&load(2, 5, 3), 10));
        assert!(!pool.note(&load(2, 5, 8), 10), "those five have been taken");
        assert!(pool.note(&load(2, 9, 12), 10), "the fifth has not");
        assert!(!pool.note(&load(2, 9, 12), 10), "that is known");
        assert!(!pool.note(&load(2, 9, 13), 10));
        assert!(pool.note(&load(2, 9, 14), 10), "another one");
        assert!(!pool.note(&load(2, 0, 30), 10));
    }
}

//! The sizes and the numbers of the workload `scope`: the same for every peer in Rust.

use crate::{Params, Round, nanos_per, sum_below};
use anyhow::{Result, ensure};
use std::time::Duration;

/// How long those wait that are to be cancelled, unless they are.
pub const LONG: Duration = Duration::from_secs(10);

/// How many scopes of each kind, and how large.
#[derive(Clone, Copy, Debug)]
pub struct Scopes {
    /// Scopes with two forks.
    pub two: u64,
    /// Scopes with many forks.
    pub many: u64,
    /// Forks of each of these.
    pub forks: u64,
    /// Scopes of which the first result is taken.
    pub first: u64,
    /// Forks of each of these.
    pub tasks: u64,
}

impl Scopes {
    /// # Errors
    ///
    /// If a size is missing, or a scope would have no fork.
    pub fn of(params: &Params) -> Result<Scopes> {
        let scopes = Scopes {
            two: params.get("two")?,
            many: params.get("many")?,
            forks: params.get("forks")?,
            first: params.get("first")?,
            tasks: params.get("tasks")?,
        };
        ensure!(scopes.forks > 0, "forks must not be 0");
        ensure!(scopes.tasks > 0, "tasks must not be 0");
        Ok(scopes)
    }

    /// Reports the time that the scopes with two forks took, and the sum of what these returned.
    pub fn report_two(&self, round: &mut Round, (elapsed, sum): (Duration, u64)) {
        let value = nanos_per(elapsed, self.two);
        round.metric("two", value, "ns/scope", sum, sum_below(2 * self.two));
    }

    /// Reports the time that the scopes with many forks took, and the sum of what these returned.
    pub fn report_many(&self, round: &mut Round, (elapsed, sum): (Duration, u64)) {
        let forks = self.many * self.forks;
        let value = nanos_per(elapsed, forks);
        round.metric("many", value, "ns/fork", sum, sum_below(forks));
    }

    /// Reports the time that the scopes with a first result took, and how many of their threads
    /// ended as they must.
    pub fn report_first(&self, round: &mut Round, (elapsed, ended): (Duration, u64)) {
        let value = nanos_per(elapsed, self.first) / 1e3;
        round.metric("first", value, "µs/scope", ended, self.first * self.tasks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &str) -> Result<Scopes> {
        Scopes::of(&Params::parse(args.split(' ').map(str::to_owned))?)
    }

    #[test]
    fn a_scope_has_forks() {
        let scopes = of("two=1 many=2 forks=3 first=4 tasks=5").unwrap();
        assert_eq!((scopes.many, scopes.forks, scopes.tasks), (2, 3, 5));
        for bad in [
            "two=1 many=2 forks=0 first=4 tasks=5",
            "two=1 many=2 forks=3 first=4 tasks=0",
            "two=1 many=2 forks=3 first=4",
        ] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}

//! The workloads. To add one: write its file, and name it here.

mod malloc;
mod mutex_uncontended;
mod parked_memory;
mod pingpong_mpsc;
mod pingpong_park;
mod sleepers;
mod spawn_burst;
mod spawn_join;
mod tcp_echo;
mod yield_two;

use crate::workload::Workload;
use anyhow::{Context, Result};

/// All of them, in the order of the table.
pub const ALL: &[&dyn Workload] = &[
    &spawn_burst::SpawnBurst,
    &spawn_join::SpawnJoin::Inside,
    &spawn_join::SpawnJoin::Main,
    &yield_two::YieldTwo,
    &pingpong_mpsc::PingpongMpsc,
    &pingpong_park::PingpongPark,
    &sleepers::Sleepers,
    &parked_memory::ParkedMemory,
    &mutex_uncontended::MutexUncontended,
    &malloc::Malloc,
    &tcp_echo::TcpEcho,
];

/// Their names, in the same order.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|workload| workload.name()).collect()
}

/// The workload of this name.
pub fn find(name: &str) -> Result<&'static dyn Workload> {
    let found = ALL.iter().find(|workload| workload.name() == name);
    found
        .copied()
        .with_context(|| format!("no workload is named {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names = names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}

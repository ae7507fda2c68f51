//! What a dump says beside the threads: the process, its carriers, modules and open scopes.

use super::modules::Modules;
use crate::hooks::hooks;
use crate::metrics::Metrics;
use core::sync::atomic::Ordering::Relaxed;
use pirn_dump::{Carrier, CarrierState, Memory, Module, Process, Scope};
use pirn_rt::runtime::{self, Runtime};
use pirn_rt::vthread::table::{self, Carrying};
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time in nanoseconds since 1970.
pub(super) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_nanos() as u64
}

/// Describes the process, for a dump that was begun at this time and ends now.
pub(super) fn process(begin: u64) -> Process {
    let parallelism = runtime::get().map_or(0, |runtime| runtime.settings.parallelism);
    Process {
        pid: std::process::id(),
        started: own_start().unwrap_or(0),
        program: program(),
        version: concat!("pirn ", env!("CARGO_PKG_VERSION")).into(),
        begin,
        end: now(),
        parallelism: parallelism as u32,
    }
}

fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.to_string_lossy().into_owned()
}

/// Lists the modules.
pub(super) fn modules(modules: &Modules) -> Vec<Module> {
    let program = program();
    let modules = modules.all.iter().map(|module| Module {
        path: match module.path.is_empty() {
            true => program.as_bytes().to_vec(),
            false => module.path.clone(),
        },
        build_id: module.build_id.clone(),
        bias: module.bias as u64,
        start: module.code.start as u64,
        end: module.code.end as u64,
        offset: module.offset,
    });
    modules.collect()
}

/// Says what memory is used for.
pub(super) fn memory(metrics: &Metrics) -> Vec<Memory> {
    let kinds = metrics.memory.by_kind().into_iter();
    let memory = kinds.map(|(name, bytes)| Memory {
        name: name.replace('_', "-"),
        bytes,
    });
    memory.collect()
}

/// Lists the carriers, with the threads that were seen `mounted` on them, and the platform threads
/// of the program that carry a thread just now.
pub(super) fn carriers(mounted: &HashMap<u32, u64>) -> Vec<Carrier> {
    let Some(runtime) = runtime::get() else {
        return Vec::new();
    };
    let regular = |number: u32| runtime.processors.used().get(number as usize);
    let carriers = table::carriers().filter(|it| it.busy || regular(it.number).is_some());
    let mut carriers: Vec<Carrier> = carriers
        .map(|carrying| Carrier {
            number: carrying.number,
            tid: carrying.platform,
            state: state(runtime, carrying),
            thread: mounted.get(&carrying.number).copied(),
            spare: regular(carrying.number).is_some_and(|it| it.spare.is_some()),
        })
        .collect();
    carriers.sort_by_key(|carrier| carrier.number);
    carriers
}

fn state(runtime: &Runtime, carrying: Carrying) -> CarrierState {
    let mut used = runtime.processors.used().iter();
    // Relaxed: a hint.
    let holds = used.any(|processor| processor.holder.load(Relaxed) == carrying.platform);
    let mut stuck = runtime.stuck.episodes();
    match carrying.busy {
        true if stuck.any(|it| it.holder == carrying.platform) => CarrierState::Stuck,
        true => CarrierState::Running,
        false if holds => CarrierState::Searching,
        false => CarrierState::Sleeping,
    }
}

/// Lists the open scopes, in the order in which they were opened.
pub(super) fn scopes() -> Vec<Scope> {
    let mut scopes = (hooks().scopes)();
    scopes.sort_by_key(|scope| scope.id);
    scopes
}

/// Returns when this process began, in ticks.
pub fn own_start() -> Option<u64> {
    start_time("/proc/self/stat")
}

/// Returns when a process began, in ticks, by its `stat` file.
pub fn start_time(path: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    start_in(&text)
}

fn start_in(stat: &str) -> Option<u64> {
    let (_, after_the_name) = stat.rsplit_once(')')?;
    after_the_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_behind_any_name() {
        let rest = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 1 1";
        assert_eq!(start_in(rest), Some(98765));
        assert_eq!(start_in("7 (a) S 1"), None);
        let pid = std::process::id();
        assert_eq!(start_time(&format!("/proc/{pid}/stat")), own_start());
    }
}

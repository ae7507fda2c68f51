//! The child of a fork inherits all statics of a runtime that it does not have. Each one is reset,
//! by a function `after_fork` or `stop` of its file, or is listed here with the reason why the
//! child keeps it. So a new static cannot be forgotten.

use pirn_api::rust_files;
use std::fs;
use std::path::Path;

const CRATES: [&str; 5] = ["pirn-rt", "pirn-libc", "pirn-posix", "pirn-observe", "pirn"];

/// The statics that a child keeps: the reason, and files with names. `*`: all of a file.
const KEPT: [(&str, &[(&str, &str)]); 3] = [
    (
        "found, decided or installed once; true for the child as well",
        &[
            ("pirn-rt/arch/", "*"),
            ("pirn-rt/reactor/epoll.rs", "MILLISECONDS_ONLY"),
            ("pirn-rt/blocking/fds/mod.rs", "LOW_WATER_BEFORE"),
            ("pirn-rt/blocking/pool.rs", "SAID"),
            ("pirn-rt/glibc/code.rs", "TABLE"),
            ("pirn-rt/glibc/thread.rs", "*"),
            ("pirn-rt/glibc/malloc.rs", "*"),
            ("pirn-rt/glibc/symbols.rs", "*"),
            ("pirn-rt/glibc/tls.rs", "*"),
            ("pirn-rt/environment.rs", "NO_NOTICES"),
            ("pirn-rt/recorder/mod.rs", "COUNTER"),
            ("pirn-rt/sanitizer/", "*"),
            ("pirn-rt/sched/foreign.rs", "NEVER_INLINE"),
            ("pirn-rt/sched/preempt/mod.rs", "PREPARED"),
            ("pirn-rt/sched/simulation.rs", "*"),
            ("pirn-rt/stack/class.rs", "PAGES"),
            ("pirn-rt/stack/region.rs", "USE_MPROTECT"),
            ("pirn-rt/sys/memory.rs", "SIZE"),
            ("pirn-rt/time.rs", "*"),
            ("pirn-rt/vthread/extra_state.rs", "*"),
            ("pirn-rt/vthread/keys.rs", "KEYS"),
            ("pirn-rt/sched/life.rs", "*"),
            ("pirn-rt/vthread/join.rs", "DETACHED"),
            ("pirn-rt/vthread/overflow.rs", "*"),
            ("pirn-rt/sched/safepoint.rs", "*"),
            ("pirn-libc/", "FAMILIES"),
            ("pirn-libc/fs/cached.rs", "DEVICES"),
            ("pirn-libc/fs/open.rs", "CONSTANT"),
            ("pirn-libc/futex.rs", "SAID"),
            ("pirn-libc/posix.rs", "*"),
            ("pirn-libc/process/credentials.rs", "*"),
            ("pirn-libc/process/fork.rs", "*"),
            ("pirn-libc/process/linker.rs", "*"),
            ("pirn-libc/process/os_thread.rs", "SAID"),
            ("pirn-libc/process/sysv.rs", "NOW"),
            ("pirn-libc/signals/default.rs", "STANDS_IN"),
            ("pirn-libc/signals/handler.rs", "*"),
            ("pirn-libc/signals/jumps.rs", "*"),
            ("pirn-libc/signals/process_wide.rs", "SAID"),
            ("pirn-libc/signals/urgent.rs", "*"),
            ("pirn-libc/simulated.rs", "*"),
            ("pirn-libc/startup.rs", "*"),
            ("pirn-libc/sync/layout.rs", "FLAG"),
            ("pirn-libc/sync/robust.rs", "HEAD"),
            ("pirn-libc/sync/rwlock.rs", "SAID"),
            ("pirn-libc/sync/semaphore.rs", "POST"),
            ("pirn-posix/chosen.rs", "*"),
            ("pirn-posix/create.rs", "DEFAULT"),
            ("pirn-posix/leaving.rs", "KEY"),
            ("pirn-posix/lib.rs", "OF_VIRTUAL_ONLY"),
            ("pirn-observe/debug_table.rs", "PIRN_DEBUG"),
            ("pirn-observe/diagnostics/settings.rs", "ARE_ON"),
            ("pirn-observe/events/mod.rs", "NONE"),
            ("pirn-observe/events/trace_writer.rs", "*"),
            ("pirn-observe/hooks.rs", "HOOKS"),
            ("pirn-observe/server/mod.rs", "ALLOWED"),
            ("pirn-observe/server/mod.rs", "FOR_GOOD"),
            ("pirn-observe/server/socket.rs", "REGISTERED"),
            ("pirn/config.rs", "STORE"),
            ("pirn/start.rs", "SIMULATOR"),
        ],
    ),
    (
        "a count or a time for which a stale value does no harm",
        &[
            ("pirn-rt/blocking/parking_lot/hand_over.rs", "LAST"),
            ("pirn-rt/blocking/parking_lot/queues.rs", "BYTES"),
            ("pirn-rt/recorder/carrier_ring.rs", "TICK"),
            ("pirn-rt/recorder/mod.rs", "SESSION"),
            ("pirn-rt/recorder/mod.rs", "FIRED"),
            ("pirn-rt/recorder/mod.rs", "WANTED"),
            ("pirn-rt/recorder/mod.rs", "THREAD"),
            ("pirn-rt/recorder/mod.rs", "LIMIT"),
            ("pirn-rt/stack/depth.rs", "*"),
            ("pirn-rt/stack/slots.rs", "GUARDED"),
            ("pirn-rt/vthread/identity.rs", "NEXT"),
            ("pirn-libc/fs/open.rs", "LONELY"),
            ("pirn-libc/fs/lock.rs", "CONTENDERS"),
            ("pirn-libc/io/pieces.rs", "SENDERS"),
            ("pirn-libc/io/tty.rs", "READERS"),
            ("pirn-libc/net/connect.rs", "CALLERS"),
            ("pirn-posix/account.rs", "*"),
            ("pirn-libc/signals/stand_in.rs", "KEYS"),
            ("pirn-libc/signals/information.rs", "*"),
            ("pirn-libc/signals/default.rs", "LAST"),
            ("pirn-libc/signals/stand_in.rs", "TP"),
            ("pirn-posix/leaving.rs", "MOST"),
            ("pirn-observe/events/stream.rs", "LOST"),
        ],
    ),
    (
        "addresses of memory that is never freed, or used again",
        &[
            ("pirn-rt/stack/region.rs", "LISTS"),
            ("pirn-rt/stack/region.rs", "REGIONS"),
            ("pirn-rt/stack/region.rs", "REGION_COUNT"),
            ("pirn-rt/sched/carrier.rs", "UNLISTED"),
            ("pirn-rt/glibc/code.rs", "OWN"),
        ],
    ),
];

#[test]
fn every_static_is_reset_in_the_child_of_a_fork_or_kept_for_a_reason() {
    let mut forgotten = Vec::new();
    for name in CRATES {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{name}/src"));
        for file in rust_files(&source) {
            let path = format!("{name}/{}", file.strip_prefix(&source).unwrap().display());
            if path.contains("test") {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            let reset = functions(&text, &["fn after_fork(", "fn stop("]);
            for found in statics(&text) {
                let is_reset = words(&reset).any(|word| word == found);
                if !is_reset && !is_kept(&path, &found) {
                    forgotten.push(format!("{path}: {found}"));
                }
            }
        }
    }
    assert!(
        forgotten.is_empty(),
        "neither reset after a fork nor listed as kept:\n{}",
        forgotten.join("\n")
    );
}

fn is_kept(path: &str, name: &str) -> bool {
    let mut kept = KEPT.iter().flat_map(|(_, entries)| entries.iter());
    kept.any(|(place, names)| path.starts_with(place) && ["*", name].contains(names))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Returns the names of the statics of a file, without thread-locals.
fn statics(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut end_of_thread_locals: Option<String> = None;
    for line in text.lines().take_while(|line| *line != "#[cfg(test)]") {
        let indent = &line[..line.len() - line.trim_start().len()];
        if end_of_thread_locals.as_deref() == Some(line) {
            end_of_thread_locals = None;
        } else if line.trim_start().starts_with("thread_local!") {
            end_of_thread_locals = Some(format!("{indent}}}"));
        } else if end_of_thread_locals.is_none()
            && let Some((_, rest)) = line.split_once("static ")
            && (line.trim_start().starts_with("static ") || line.trim_start().starts_with("pub"))
            && let Some((name, _)) = rest.split_once(':')
            && name
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Returns the bodies of the functions that begin in one of these ways.
fn functions(text: &str, beginnings: &[&str]) -> String {
    let mut bodies = String::new();
    let mut end = None;
    for line in text.lines() {
        if end.is_none() && beginnings.iter().any(|it| line.contains(it)) {
            let indent = &line[..line.len() - line.trim_start().len()];
            end = Some(format!("{indent}}}"));
        }
        if let Some(last) = &end {
            bodies.push_str(line);
            bodies.push('\n');
            if line == last {
                end = None;
            }
        }
    }
    bodies
}

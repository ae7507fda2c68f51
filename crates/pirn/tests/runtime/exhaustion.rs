//! If memory or mappings run out, `spawn` reports it, and the existing threads go on.

use crate::common::kernel::limits_address_space;
use crate::common::{child, watched};
use pirn::thread::{self, Builder, JoinHandle};
use std::io::{self, ErrorKind, Write};

/// Spawns threads that park until `spawn` fails, or there are `limit` of them.
fn spawn_until_it_fails(limit: usize) -> (Vec<JoinHandle<usize>>, Option<io::Error>) {
    let mut handles = Vec::with_capacity(limit);
    while handles.len() < limit {
        let number = handles.len();
        let spawned = Builder::new().spawn(move || {
            thread::park();
            number
        });
        match spawned {
            Ok(handle) => handles.push(handle),
            Err(error) => return (handles, Some(error)),
        }
    }
    (handles, None)
}

/// Asserts what an error says, without allocating: there may be no memory.
#[track_caller]
fn assert_says(error: &io::Error, advice: &str) {
    let mut text = [0; 512];
    let mut rest = &mut text[..];
    write!(rest, "{error}").unwrap();
    let text = str::from_utf8(&text).unwrap().trim_end_matches('\0');
    assert!(text.contains(advice), "{text}");
}

/// Wakes them all and checks that each is still itself.
fn all_go_on(handles: Vec<JoinHandle<usize>>) {
    for handle in &handles {
        handle.thread().unpark();
    }
    for (number, handle) in handles.into_iter().enumerate() {
        assert_eq!(handle.join().unwrap(), number);
    }
}

#[watched]
fn without_address_space_spawn_fails_and_the_others_go_on() {
    if !limits_address_space() {
        return;
    }
    child::isolated(&[], || {
        let limit = libc::rlimit {
            rlim_cur: 6 << 30,
            rlim_max: 6 << 30,
        };
        // SAFETY: a valid limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
        let (handles, error) = spawn_until_it_fails(200_000);
        let error = error.expect("six gigabytes hold fewer than 200,000 stacks");
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert_says(&error, "ulimit -v");
        assert!(handles.len() > 1000, "only {} threads", handles.len());
        // The rest of the program is well: it allocates, and makes platform threads.
        drop(vec![1_u8; 8 << 20]);
        std::thread::spawn(|| ()).join().unwrap();
        all_go_on(handles);
        // Memory that was given back is available again.
        let (handles, error) = spawn_until_it_fails(1000);
        assert!(error.is_none(), "{error:?}");
        all_go_on(handles);
    });
}

#[watched]
fn without_mappings_spawn_fails_and_names_the_sysctl() {
    let allowed = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    let allowed: usize = allowed.trim().parse().unwrap();
    if allowed > 200_000 {
        eprintln!("skipped: vm.max_map_count is {allowed}, more than this test wants to use up");
        return;
    }
    child::isolated(&[("PIRN_NO_GUARD_MARKERS", "1")], move || {
        let (handles, error) = spawn_until_it_fails(allowed);
        let error = error.expect("each stack takes two mappings");
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert_says(&error, "vm.max_map_count");
        assert!(
            handles.len() > allowed / 4,
            "only {} threads",
            handles.len()
        );
        // The rest of the program still works: it maps memory, and makes platform threads.
        drop(vec![1_u8; 64 << 20]);
        std::thread::spawn(|| ()).join().unwrap();
        all_go_on(handles);
    });
}

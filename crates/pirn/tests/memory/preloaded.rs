//! Programs whose `malloc` comes from another library.

use std::path::Path;
use std::sync::Mutex;

use crate::common::{child, skip, watched};
use pirn::thread;

/// Runs `body` in a child with the first of these libraries that exists.
fn preloading(names: &[&str], body: impl Fn()) {
    // Where Debian and Fedora have them.
    let folders = [
        format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH),
        "/usr/lib64".to_owned(),
    ];
    let paths = folders
        .iter()
        .flat_map(|folder| names.iter().map(|name| Path::new(folder).join(name)));
    match { paths }.find(|path| path.exists()) {
        Some(path) => child::isolated(&[("LD_PRELOAD", path.to_str().unwrap())], body),
        None if child::is_here() => body(),
        None => skip(&format!("there is no {}", names.join(" or "))),
    }
}

/// Allocates on many threads at once, and frees the memory on other threads.
fn allocate_everywhere() {
    const THREADS: usize = 500;
    for _ in 0..10 {
        let shared = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for i in 0..THREADS {
                let shared = &shared;
                scope.spawn(move || {
                    let mut mine: Vec<_> = (0..100).map(|n| vec![i as u8; 1 + n * 7]).collect();
                    thread::yield_now();
                    assert!(mine.iter().flatten().all(|&byte| byte == i as u8));
                    let theirs = {
                        let mut shared = shared.lock().unwrap();
                        shared.push((i, mine.split_off(50)));
                        let n = shared.len();
                        shared.swap_remove((i * 31) % n)
                    };
                    assert!(
                        theirs
                            .1
                            .iter()
                            .flatten()
                            .all(|&byte| byte == theirs.0 as u8)
                    );
                });
            }
        });
        // A panic allocates, and a thread that has ended has run the allocator's destructor.
        let panics = (0..50).map(|_| thread::spawn(|| panic!("{}", "on purpose".repeat(10))));
        let ended: Vec<_> = panics
            .collect::<Vec<_>>()
            .into_iter()
            .map(|t| t.join())
            .collect();
        assert!(ended.iter().all(Result::is_err));
    }
}

#[watched]
fn jemalloc_serves_virtual_threads() {
    preloading(&["libjemalloc.so.2"], allocate_everywhere);
}

#[watched]
fn mimalloc_serves_virtual_threads() {
    preloading(&["libmimalloc.so.2"], allocate_everywhere);
}

/// Its spin locks wait in futex calls with a timeout, in the middle of an allocation.
#[watched]
fn tcmalloc_serves_virtual_threads() {
    preloading(
        &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"],
        allocate_everywhere,
    );
}

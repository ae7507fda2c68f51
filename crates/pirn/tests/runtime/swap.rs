//! The stacks of threads that have been parked for long go to swap, where there is any.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::mpsc;

use crate::common::{child, skip, watched};
use pirn::thread;

const PAGE: usize = 4096;

fn has_swap() -> bool {
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    swaps.lines().count() > 1 // The first line is a heading.
}

/// Returns whether the page at an address has been written to swap.
fn is_swapped(address: usize) -> bool {
    let mut entry = [0; 8];
    let map = File::open("/proc/self/pagemap").unwrap();
    let offset = (address / PAGE * 8) as u64;
    map.read_exact_at(&mut entry, offset).unwrap();
    u64::from_le_bytes(entry) >> 62 & 1 == 1
}

/// Parks threads until their stacks are in swap, if there is swap, and wakes them.
fn park_for_long() {
    let (tell, told) = mpsc::channel();
    let threads = Vec::from_iter((0..10).map(|i| {
        let tell = tell.clone();
        thread::spawn(move || {
            let local = [i; 10];
            tell.send(local.as_ptr() as usize).unwrap();
            thread::park();
            assert_eq!(local, [i; 10]);
        })
    }));
    for address in told.iter().take(threads.len()) {
        // The watchdog ends this.
        while has_swap() && !is_swapped(address) {
            std::thread::yield_now();
        }
    }
    for thread in threads {
        thread.thread().unpark();
        thread.join().unwrap();
    }
}

#[watched]
fn the_stacks_of_parked_threads_are_paged_out() {
    if child::is_here() {
        return park_for_long();
    }
    let lines = |variables: &[(&str, &str)]| {
        let output = child::run(variables);
        assert!(output.status.success(), "{}", child::report(&output));
        let text = String::from_utf8(output.stderr).unwrap();
        let ours = text.lines().filter(|line| line.starts_with("pirn: "));
        Vec::from_iter(ours.map(str::to_owned))
    };
    const COLD: (&str, &str) = ("PIRN_SWAP_COLD", "1");
    let reported = lines(&[COLD]);
    if has_swap() {
        assert!(reported.is_empty(), "{reported:?}");
        return;
    }
    skip("there is no swap, so only the message is checked");
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0].contains("PIRN_SWAP_COLD has no effect"),
        "{reported:?}"
    );
    assert!(lines(&[COLD, ("PIRN_QUIET", "1")]).is_empty());
    assert!(lines(&[]).is_empty());
}

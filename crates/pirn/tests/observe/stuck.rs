//! Threads that keep their carriers, while dumps look at them.

use std::os::fd::AsRawFd;
use std::time::Duration;

use crate::common::{child, sys, watched};
use pirn::thread;

#[watched]
fn dumps_of_stuck_threads_find_nothing_new() {
    let limits = (
        "PIRN_DIAGNOSTICS",
        "stuck-carrier=20ms,spares-exhausted=20ms",
    );
    let few = [("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "1")];
    child::isolated(&[few[0], few[1], limits, ("PIRN_QUIET", "")], || {
        let (reader, writer) = std::io::pipe().unwrap();
        let fd = reader.as_raw_fd() as usize;
        // Without libc.
        let read = move || {
            let mut byte = 0_u8;
            sys::inline(libc::SYS_read, fd, (&raw mut byte).addr(), 1, 0, 0);
        };
        let mut threads = vec![thread::spawn(read), thread::spawn(read)];
        let counts = || {
            let metrics = pirn::metrics::snapshot();
            let stuck = metrics.carriers().iter();
            let stuck = stuck.map(|it| it.get("stuck_ns").unwrap()).min();
            let found = ["stuck-carrier", "spares-exhausted"];
            let found = found.map(|kind| metrics[&*format!("diagnostics.{kind}")]);
            let stuck = Duration::from_nanos(stuck.unwrap());
            (found, metrics["stuck_episodes"], stuck)
        };
        let wait_for = |kind: usize, count| {
            while counts().0[kind] < count {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        wait_for(0, 2);
        // Only now: a thread that comes earlier may have a carrier before the two.
        let waits_for_a_carrier = || ();
        threads.push(thread::spawn(waits_for_a_carrier));
        wait_for(1, 1);
        for _ in 0..10 {
            pirn::dump::take();
            // A new stay would have been reported by then.
            let end = counts().2 + Duration::from_millis(50);
            while counts().2 < end {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        // Not one more of each thread per dump. On a busy machine a thread may wait for a processor
        // in the middle of it, and be preempted: that is an end of its stay.
        let ([stuck, exhausted], episodes, _) = counts();
        assert!(
            stuck < 7 && exhausted < 4 && episodes < 7,
            "{stuck} {exhausted} {episodes}"
        );
        drop(writer);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

//! Asking a thread to give way: the monitor writes, and the processor's holder reads.

use loom::sync::Arc;
use loom::thread;

use crate::check;
use crate::preempt_request::{Reason, Request, Resumed};

#[test]
fn a_request_comes_with_its_time_and_is_for_one_switch() {
    check(3, || {
        let request = Arc::new(Request::new());
        let monitor = {
            let request = request.clone();
            thread::spawn(move || {
                request.ask(1, 10, Reason::Urgent);
                request.ask(2, 20, Reason::Slice);
            })
        };
        // The thread of switch 1 may read the time of the second request, never an older one.
        if let Some((reason, since)) = request.asked(1) {
            assert_eq!(reason, Reason::Urgent);
            assert!(since == 10 || since == 20);
        }
        if let Some(request) = request.asked(2) {
            assert_eq!(request, (Reason::Slice, 20));
        }
        assert_eq!(request.asked(3), None);
        monitor.join().unwrap();
        assert_eq!(request.asked(1), None);
    });
}

#[test]
fn a_resumed_slice_comes_with_its_beginning() {
    check(3, || {
        let request = Arc::new(Request::new());
        let resumed = Resumed {
            since: 40,
            computes: true,
        };
        let holder = {
            let request = request.clone();
            thread::spawn(move || request.resume(7, resumed))
        };
        assert!(request.resumed(7).is_none_or(|seen| seen == resumed));
        assert_eq!(request.resumed(8), None);
        holder.join().unwrap();
        assert_eq!(request.resumed(7), Some(resumed));
    });
}

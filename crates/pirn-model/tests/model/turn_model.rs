//! Asking a thread to give way: the monitor writes, and the processor's holder reads.

use loom::sync::Arc;
use loom::thread;

use crate::check;
use crate::turn::{Reason, Resumed, Turn};

#[test]
fn a_request_comes_with_its_time_and_is_for_one_turn() {
    check(3, || {
        let turn = Arc::new(Turn::new());
        let monitor = {
            let turn = turn.clone();
            thread::spawn(move || {
                turn.ask(1, 10, Reason::Urgent);
                turn.ask(2, 20, Reason::Slice);
            })
        };
        // The thread of switch 1 may read the time of the second request, never an older one.
        if let Some((reason, since)) = turn.asked(1) {
            assert_eq!(reason, Reason::Urgent);
            assert!(since == 10 || since == 20);
        }
        if let Some(request) = turn.asked(2) {
            assert_eq!(request, (Reason::Slice, 20));
        }
        assert_eq!(turn.asked(3), None);
        monitor.join().unwrap();
        assert_eq!(turn.asked(1), None);
    });
}

#[test]
fn a_resumed_turn_comes_with_its_beginning() {
    check(3, || {
        let turn = Arc::new(Turn::new());
        let resumed = Resumed {
            since: 40,
            computes: true,
        };
        let holder = {
            let turn = turn.clone();
            thread::spawn(move || turn.resume(7, resumed))
        };
        assert!(turn.resumed(7).is_none_or(|seen| seen == resumed));
        assert_eq!(turn.resumed(8), None);
        holder.join().unwrap();
        assert_eq!(turn.resumed(7), Some(resumed));
    });
}

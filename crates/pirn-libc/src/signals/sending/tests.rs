use super::*;
use pirn_rt::sched::{self, Cause};
use pirn_rt::vthread::signals::mask;
use pirn_rt::{sched::runtime::Runtime, testing};
use std::io;
use std::sync::mpsc;

/// Runs a function on a virtual thread that blocks all signals, so that nothing is delivered.
fn on_a_thread_that_blocks_all(f: impl FnOnce(&Core) + Send + 'static) {
    let runtime = testing::make_with(testing::few(1));
    pirn_rt::carriers::start(runtime).unwrap();
    let (done, is_done) = mpsc::channel();
    let (_thread, ready) = testing::ready(runtime, move || {
        let own = vthread::current().unwrap();
        own.signals.mask.store(u64::MAX, SeqCst);
        f(&own);
        assert_eq!(mask(), u64::MAX);
        done.send(()).unwrap();
    });
    sched::schedule(ready, Cause::Start);
    is_done.recv().expect("the thread panicked");
}

#[unsafe(no_mangle)]
fn pirn_start_runtime() -> io::Result<&'static Runtime> {
    testing::start()
}

#[test]
fn a_signal_is_taken_once_though_its_sender_says_late_that_it_is_there() {
    on_a_thread_that_blocks_all(|thread| {
        for signal in [libc::SIGUSR1, libc::SIGRTMIN()] {
            post(thread, &plain(signal), false).unwrap();
            assert_eq!(take(thread, signal).unwrap().si_signo, signal);
            thread.signals.pending.fetch_or(bit(signal), SeqCst);
            assert!(take(thread, signal).is_none());
            assert_eq!(thread.signals.pending.load(SeqCst), 0);
        }
    });
}

#[test]
fn signals_from_the_33rd_on_are_queued() {
    on_a_thread_that_blocks_all(|thread| {
        let signal = libc::SIGRTMIN();
        for value in 1..4 {
            let info = information_of(signal, libc::SI_QUEUE, value);
            post(thread, &info, false).unwrap();
        }
        for value in 1..4 {
            let info = take(thread, signal).unwrap();
            // SAFETY: of a signal that was queued.
            assert_eq!(unsafe { info.si_value() }.sival_ptr.addr(), value);
        }
        assert!(take(thread, signal).is_none());
    });
}

#[test]
fn giving_a_signal_back_hides_no_other() {
    on_a_thread_that_blocks_all(|thread| {
        post(thread, &plain(libc::SIGUSR1), true).unwrap();
        post(thread, &plain(libc::SIGUSR2), false).unwrap();
        let mut other = None;
        let look = |_: &_| other = take(thread, libc::SIGUSR2);
        information::take_of_process(thread, bit(libc::SIGUSR1), look);
        assert_eq!(other.expect("it was hidden").si_signo, libc::SIGUSR2);
        assert!(take(thread, libc::SIGUSR1).is_none());
    });
}

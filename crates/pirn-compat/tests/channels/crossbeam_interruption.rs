//! An interrupt as an arm of `crossbeam-channel`'s `select!`: a channel whose only sender
//! `thread::on_interrupt` drops.

use crossbeam_channel::{Receiver, Select, bounded, never, select};
use pirn::thread::{self, OnInterrupt};
use pirn_compat::{Latch, THREADS, on_threads, watched};
use std::convert::Infallible;

/// Returns a receiver that becomes ready when the running thread is interrupted.
fn interruption() -> (Receiver<Infallible>, OnInterrupt) {
    let (sender, receiver) = bounded(0);
    (receiver, thread::on_interrupt(move || drop(sender)))
}

/// Waits for a message that no thread sends, or an interrupt.
fn select_until_interrupted(arrived: &Latch) -> bool {
    let (interruption, _listens) = interruption();
    arrived.arrive();
    select! {
        recv(never::<()>()) -> _ => false,
        recv(interruption) -> message => message.is_err() && thread::is_interrupted(),
    }
}

#[watched]
fn all_selecting_threads_are_interrupted() {
    let selecting = Latch::new(THREADS);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| select_until_interrupted(&selecting)))
            .collect();
        selecting.wait();
        for handle in &handles {
            handle.thread().interrupt();
        }
        assert!(handles.into_iter().all(|handle| handle.join().unwrap()));
    });
}

#[watched]
fn a_platform_thread_is_interrupted() {
    let (sender, receiver) = bounded(1);
    let selecting = Latch::new(1);
    std::thread::scope(|scope| {
        let selecting = &selecting;
        let handle = scope.spawn(move || {
            sender.send(thread::current()).unwrap();
            select_until_interrupted(selecting)
        });
        selecting.wait();
        receiver.recv().unwrap().interrupt();
        assert!(handle.join().unwrap());
    });
}

#[watched]
fn messages_come_until_the_interrupt() {
    fn sum(numbers: Receiver<usize>) -> usize {
        let (interruption, _listens) = interruption();
        let mut sum = 0;
        loop {
            select! {
                recv(numbers) -> number => sum += number.unwrap(),
                recv(interruption) -> _ => return sum,
            }
        }
    }
    on_threads(THREADS, |index| {
        let (sender, numbers) = bounded(0);
        let summing = thread::spawn(|| sum(numbers));
        // The channel has no room: each has been received when it has been sent.
        (0..10).for_each(|_| sender.send(index).unwrap());
        summing.thread().interrupt();
        assert_eq!(summing.join().unwrap(), 10 * index);
    });
}

#[watched]
fn selects_that_are_built_at_run_time() {
    on_threads(THREADS, |_| {
        let selecting = thread::spawn(|| {
            let ((interruption, _listens), nothing) = (interruption(), never::<()>());
            let mut select = Select::new();
            select.recv(&nothing);
            let interrupted = select.recv(&interruption);
            select.ready() == interrupted
        });
        selecting.thread().interrupt();
        assert!(selecting.join().unwrap());
    });
}

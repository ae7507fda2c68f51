//! `pirn::interruption()` in `crossbeam-channel`'s `select!`: an arm for being interrupted.

use crossbeam_channel::{Receiver, Select, TryRecvError, bounded, never, select};
use pirn::thread;
use pirn_compat::{Latch, THREADS, on_threads, watched};

/// Waits for a message that nobody sends, or an interrupt.
fn select_until_interrupted(arrived: &Latch) -> bool {
    let interruption = pirn::interruption();
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
        let interruption = pirn::interruption();
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
fn ready_at_once_and_for_good() {
    on_threads(THREADS, |_| {
        let before = pirn::interruption();
        assert_eq!(before.try_recv(), Err(TryRecvError::Empty));
        thread::current().interrupt();
        let after = pirn::interruption();
        for _ in 0..3 {
            assert_eq!(before.try_recv(), Err(TryRecvError::Disconnected));
            assert_eq!(after.try_recv(), Err(TryRecvError::Disconnected));
        }
        assert!(thread::take_interrupt());
        assert!(before.recv().is_err());
        let next = pirn::interruption();
        assert_eq!(next.try_recv(), Err(TryRecvError::Empty));
    });
}

#[watched]
fn selects_that_are_built_at_run_time() {
    on_threads(THREADS, |_| {
        let selecting = thread::spawn(|| {
            let (interruption, nothing) = (pirn::interruption(), never::<()>());
            let mut select = Select::new();
            select.recv(&nothing);
            let interrupted = select.recv(&interruption);
            select.ready() == interrupted
        });
        selecting.thread().interrupt();
        assert!(selecting.join().unwrap());
    });
}

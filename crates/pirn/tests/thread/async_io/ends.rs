//! What ends a wait of a task other than an event: drops, closes, forks, panics.

use std::io::{self, PipeReader, Read, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use super::{Bell, pair, poll_once, poll_readable, receive};
use crate::common::{child, crowd, sys, until, virtual_crowd, watched};
use pirn::{AsyncIo, block_on, thread};

#[watched]
fn a_future_that_is_dropped_is_not_woken() {
    let (ours, mut theirs) = pair();
    let [dropped, kept] = [(); 2].map(|()| Bell::new());
    {
        let mut future = pin!(ours.readable());
        assert!(poll_once(future.as_mut(), &dropped).is_pending());
        assert_eq!(Arc::strong_count(&dropped), 2);
    }
    assert_eq!(Arc::strong_count(&dropped), 1);
    let mut future = pin!(ours.readable());
    assert!(poll_once(future.as_mut(), &kept).is_pending());
    theirs.write_all(b"x").unwrap();
    kept.wait(1);
    assert_eq!(dropped.rings(), 0);
}

/// The memory of the dropped ones is in use for something else when the event comes.
#[watched(alone)]
fn futures_that_are_dropped_leave_the_list() {
    let (ours, mut theirs) = pair();
    let bell = Bell::new();
    let mut kept = pin!(ours.readable());
    for round in 0..100 {
        let mut futures: Vec<_> = (0..10).map(|_| Box::pin(ours.readable())).collect();
        for future in &mut futures {
            assert!(poll_once(future.as_mut(), &bell).is_pending());
        }
        if round == 50 {
            assert!(poll_once(kept.as_mut(), &bell).is_pending());
        }
    }
    assert_eq!(Arc::strong_count(&bell), 2);
    let others: Vec<_> = (0..10_000)
        .map(|i| vec![0xAA_u8; 32 + i % 16 * 8])
        .collect();
    theirs.write_all(b"x").unwrap();
    bell.wait(1);
    assert!(poll_once(kept.as_mut(), &bell).is_ready());
    assert_eq!(bell.rings(), 1);
    assert!(others.iter().flatten().all(|byte| *byte == 0xAA));
}

/// Futures come and go while events arrive.
#[watched]
fn cancellations_race_with_events() {
    virtual_crowd(|i| {
        let (ours, mut theirs) = pair();
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..200 {
                    theirs.write_all(&[round]).unwrap();
                    thread::yield_now();
                }
                done.store(1, SeqCst);
            });
            let bell = Bell::new();
            while done.load(SeqCst) == 0 {
                let mut future = pin!(ours.readable());
                if poll_once(future.as_mut(), &bell).is_ready() {
                    let _ = receive(&ours, &mut [0; 3]);
                }
                if i % 2 == 0 {
                    thread::yield_now();
                }
            }
            // An event that has come just before a future was dropped may still ring it.
            until(|| Arc::strong_count(&bell) == 1);
        });
    });
}

#[watched]
fn it_is_dropped_while_another_thread_reads() {
    crowd(|_| {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let io = AsyncIo::new(ours.try_clone().unwrap()).unwrap();
        let same = AsyncIo::new(ours.as_fd()).unwrap();
        let bell = Bell::new();
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut byte = [0];
                (&ours).read_exact(&mut byte).unwrap();
                byte[0]
            });
            assert!(poll_readable(&io, &bell).is_pending());
            assert!(poll_readable(&same, &bell).is_pending());
            drop((io, same));
            assert_eq!(Arc::strong_count(&bell), 1);
            theirs.write_all(&[7]).unwrap();
            assert_eq!(reader.join().unwrap(), 7);
        });
        assert_eq!(bell.rings(), 0);
    });
}

#[watched]
fn what_it_was_made_of_comes_back_unchanged() {
    let (mut ours, mut theirs) = pair();
    let bell = Bell::new();
    assert!(poll_readable(&ours, &bell).is_pending());
    assert!(ours.get_mut().peer_addr().unwrap().is_unnamed());
    let mut ours = ours.into_inner();
    assert_eq!(Arc::strong_count(&bell), 1);
    let reader = thread::spawn(move || {
        let mut buffer = [0; 4];
        ours.read_exact(&mut buffer).unwrap();
        buffer
    });
    theirs.write_all(b"weft").unwrap();
    assert_eq!(&reader.join().unwrap(), b"weft");
}

/// The owner may put another descriptor there while a task waits for the first.
#[watched]
fn the_descriptor_is_exchanged_while_a_task_waits() {
    let (first, mut to_first) = pipe().unwrap();
    let (second, mut to_second) = pipe().unwrap();
    let mut io: AsyncIo<PipeReader> = AsyncIo::new(first).unwrap();
    let bell = Bell::new();
    assert!(poll_readable(&io, &bell).is_pending());
    let first = std::mem::replace(io.get_mut(), second);
    assert!(poll_readable(&io, &bell).is_pending());
    to_first.write_all(b"x").unwrap();
    // The event of the first has been taken when another task has got it.
    block_on(AsyncIo::new(first).unwrap().readable()).unwrap();
    assert_eq!(bell.rings(), 0);
    to_second.write_all(b"x").unwrap();
    bell.wait(1);
    assert!(poll_readable(&io, &bell).is_ready());
}

/// The number of a descriptor that another thread closes.
#[derive(Debug)]
struct Number(RawFd);

impl AsFd for Number {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: not so after the close; that is what the test is about.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

#[watched(alone)]
fn a_close_wakes_the_tasks_that_wait() {
    let (reader, _writer) = pipe().unwrap();
    let io = AsyncIo::new(Number(reader.into_raw_fd())).unwrap();
    let bell = Bell::new();
    assert!(poll_readable(&io, &bell).is_pending());
    sys::close(io.get_ref().0).unwrap();
    bell.wait(1);
    // `poll` reports a bad number at once.
    assert!(poll_readable(&io, &bell).is_ready());
    let refused = AsyncIo::new(Number(io.get_ref().0)).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EBADF));
}

/// The child has no poller, and the locks of the parent's may be held for ever.
#[watched(alone)]
fn the_child_of_a_fork_gets_an_error() {
    let (ours, _theirs) = pair();
    let bell = Bell::new();
    assert!(poll_readable(&ours, &bell).is_pending());
    // SAFETY: the child polls, drops and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let polled = poll_readable(&ours, &bell);
        let refused =
            matches!(polled, Poll::Ready(Err(e)) if e.kind() == io::ErrorKind::Unsupported);
        drop(ours);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if refused { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the status is valid for writes.
    sys::check(unsafe { libc::waitpid(child, &raw mut status, 0) }).unwrap();
    assert_eq!(status, 0);
}

struct Broken;

impl Wake for Broken {
    fn wake(self: Arc<Broken>) {
        std::panic::panic_any(Broken); // Which panics, too, when it is dropped.
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("snap");
        }
    }
}

#[watched]
fn a_waker_that_panics_ends_the_process_and_says_why() {
    if child::is_here() {
        let (ours, mut theirs) = pair();
        let waker = Waker::from(Arc::new(Broken));
        let polled = ours.poll_readable(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        theirs.write_all(b"x").unwrap();
        loop {
            thread::park();
        }
    }
    let output = child::run(&[]);
    assert!(!output.status.success());
    let report = child::report(&output);
    assert!(report.contains("a waker panicked"), "{report}");
}

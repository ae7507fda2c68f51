//! Each operation of the system call `futex`, and the newer calls, between threads of both kinds.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use libc::{
    EAGAIN, EINVAL, ENOSYS, EPERM, ETIMEDOUT, FUTEX_CMP_REQUEUE_PI, FUTEX_LOCK_PI, FUTEX_OP_CMP_EQ,
    FUTEX_OP_SET, FUTEX_PRIVATE_FLAG, FUTEX_TID_MASK, FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI,
    FUTEX_WAIT, FUTEX_WAIT_REQUEUE_PI, FUTEX_WAITERS, FUTEX_WAKE_OP,
};
use pirn::thread;

use crate::common::kernel::sleeps_in;
use crate::common::sys::{check, errno, timespec};
use crate::common::{child, crowd, crowd_size, on_virtual, watched};

const SYS_FUTEX_WAKE: i64 = 454;
const SYS_FUTEX_WAIT: i64 = 455;
const SYS_FUTEX_REQUEUE: i64 = 456;
/// A private word of 32 bits.
const FLAGS: usize = 2 | FUTEX_PRIVATE_FLAG as usize;

/// Makes a system call. Returns its result, or the error number as a negative one.
fn call(number: i64, args: [usize; 6]) -> i64 {
    let [a, b, c, d, e, f] = args;
    // SAFETY: the words and the times that the callers pass stay until the end of the call.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    check(result).unwrap_or_else(|_| -i64::from(errno()))
}

fn futex(word: &AtomicU32, operation: i32, value: u32, rest: [usize; 3]) -> i64 {
    let [fourth, second, last] = rest;
    let word = word.as_ptr().addr();
    let args = [
        word,
        operation as usize,
        value as usize,
        fourth,
        second,
        last,
    ];
    call(libc::SYS_futex, args)
}

fn private(word: &AtomicU32, operation: i32, value: u32, rest: [usize; 3]) -> i64 {
    futex(word, operation | FUTEX_PRIVATE_FLAG, value, rest)
}

/// Returns the operation of a `FUTEX_WAKE_OP`.
fn change(op: i32, argument: i32, compare: i32, other: i32) -> usize {
    let twelve_bits = |value: i32| value as u32 & 0xfff;
    let change = (op as u32) << 28 | (compare as u32) << 24;
    (change | twelve_bits(argument) << 12 | twelve_bits(other)) as usize
}

/// Runs `wait` on a virtual and on a platform thread, and `wake` until both have returned.
fn both_wait(wait: impl Fn() + Sync, wake: impl Fn() -> i64) {
    let mut woken = 0;
    std::thread::scope(|platform| {
        platform.spawn(&wait);
        thread::scope(|scope| {
            scope.spawn(&wait);
            while woken < 2 {
                let count = wake();
                assert!(count >= 0, "{count}");
                woken += count;
                thread::yield_now();
            }
        });
    });
}

/// A wake of the shared kind is the kernel's own.
#[watched]
fn a_wake_with_an_operation_changes_the_word_as_the_kernel_does() {
    on_virtual(|| {
        let first = AtomicU32::new(0);
        for op in 0..16 {
            for compare in 0..8 {
                for (before, argument, other) in
                    [(5, 3, 5), (u32::MAX, -2, -1), (7, 40, 6), (0, 0, 0)]
                {
                    let change = change(op, argument, compare, other);
                    let [ours, kernels] = [FUTEX_PRIVATE_FLAG, 0].map(|flag| {
                        let second = AtomicU32::new(before);
                        let rest = [1, second.as_ptr().addr(), change];
                        let result = futex(&first, FUTEX_WAKE_OP | flag, 1, rest);
                        (result, second.into_inner())
                    });
                    assert_eq!(ours, kernels, "{op} {compare} {before} {argument} {other}");
                }
            }
        }
        let odd = first.as_ptr().addr() + 1;
        let result = private(&first, FUTEX_WAKE_OP, 1, [1, odd, 0]);
        assert_eq!(result, -i64::from(EINVAL));
    });
}

#[watched]
fn a_wake_with_an_operation_wakes_threads_of_both_words() {
    static FIRST: AtomicU32 = AtomicU32::new(0);
    static SECOND: AtomicU32 = AtomicU32::new(0);
    let change = change(FUTEX_OP_SET, 0, FUTEX_OP_CMP_EQ, 0);
    for word in [&FIRST, &SECOND] {
        let wait = || assert_eq!(private(word, FUTEX_WAIT, 0, [0; 3]), 0);
        both_wait(wait, || {
            private(
                &FIRST,
                FUTEX_WAKE_OP,
                2,
                [2, SECOND.as_ptr().addr(), change],
            )
        });
    }
}

#[watched]
fn a_word_with_priority_inheritance_is_locked_by_one_at_a_time() {
    let word = AtomicU32::new(0);
    let (inside, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
    crowd(|i| {
        for _ in 0..20 {
            let result = match i % 3 {
                // As programs do that try the word by themselves first.
                0 if word.compare_exchange(0, own_id(), SeqCst, SeqCst).is_ok() => 0,
                _ => private(&word, FUTEX_LOCK_PI, 0, [0; 3]),
            };
            assert_eq!(result, 0);
            assert_eq!(inside.fetch_add(1, SeqCst), 0);
            sum.fetch_add(1, SeqCst);
            thread::yield_now();
            inside.fetch_sub(1, SeqCst);
            assert_eq!(private(&word, FUTEX_UNLOCK_PI, 0, [0; 3]), 0);
        }
    });
    assert_eq!(sum.into_inner(), 20 * crowd_size());
    assert_eq!(word.into_inner() & FUTEX_TID_MASK, 0);
}

fn own_id() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::gettid() as u32 }
}

#[watched]
fn what_is_wrong_with_a_word_with_priority_inheritance() {
    let check = || {
        let word = AtomicU32::new(0);
        let call = |operation, time| private(&word, operation, 0, [time, 0, 0]);
        assert_eq!(call(FUTEX_UNLOCK_PI, 0), -i64::from(EPERM), "not locked");
        assert_eq!(call(FUTEX_TRYLOCK_PI, 0), 0);
        std::thread::scope(|scope| {
            let other = || {
                assert_eq!(call(FUTEX_TRYLOCK_PI, 0), -i64::from(EAGAIN));
                let past = timespec(Duration::from_millis(1));
                let result = call(FUTEX_LOCK_PI, (&raw const past).addr());
                assert_eq!(result, -i64::from(ETIMEDOUT));
                assert_ne!(word.load(SeqCst) & FUTEX_WAITERS, 0);
            };
            scope.spawn(other);
        });
        assert_eq!(call(FUTEX_UNLOCK_PI, 0), 0);
        assert_eq!(word.load(SeqCst), 0);
        let [first, second] = [const { AtomicU32::new(0) }; 2];
        let result = private(
            &first,
            FUTEX_CMP_REQUEUE_PI,
            1,
            [1, second.as_ptr().addr(), 0],
        );
        let waiting = private(
            &first,
            FUTEX_WAIT_REQUEUE_PI,
            1,
            [0, second.as_ptr().addr(), 0],
        );
        [result, waiting]
    };
    assert_eq!(on_virtual(check), [-i64::from(ENOSYS); 2]);
    assert_eq!(check(), [-i64::from(ENOSYS); 2]);
}

/// The runtime starts while platform threads wait: the kernel has queued none of them in a way that
/// the later wakes do not reach.
#[watched]
fn waits_from_before_the_start_of_the_runtime_are_woken() {
    child::isolated(&[], || {
        let (word, newer) = (AtomicU32::new(0), AtomicU32::new(0));
        let (here, arrived) = mpsc::channel();
        let lock = || {
            assert_eq!(private(&word, FUTEX_LOCK_PI, 0, [0; 3]), 0);
            assert_eq!(private(&word, FUTEX_UNLOCK_PI, 0, [0; 3]), 0);
        };
        let wait = || {
            let (address, bits) = (newer.as_ptr().addr(), u32::MAX as usize);
            let clock = libc::CLOCK_MONOTONIC as usize;
            while newer.load(SeqCst) == 0 {
                call(SYS_FUTEX_WAIT, [address, 0, bits, FLAGS, 0, clock]);
            }
        };
        assert_eq!(private(&word, FUTEX_TRYLOCK_PI, 0, [0; 3]), 0);
        std::thread::scope(|platform| {
            let waiters: [&(dyn Fn() + Sync); 2] = [&lock, &wait];
            for waiter in waiters {
                let here = here.clone();
                platform.spawn(move || {
                    here.send(own_id()).unwrap();
                    waiter();
                });
                until_in_futex(arrived.recv().unwrap());
            }
            thread::spawn(|| ()).join().unwrap();
            assert_eq!(private(&word, FUTEX_UNLOCK_PI, 0, [0; 3]), 0);
            newer.store(1, SeqCst);
            private(&newer, libc::FUTEX_WAKE, 1, [0; 3]);
        });
        assert_eq!(word.into_inner(), 0);
    });
}

/// Waits until a platform thread waits in the kernel for a futex.
fn until_in_futex(id: u32) {
    while !sleeps_in(id, &[libc::SYS_futex, SYS_FUTEX_WAIT]) {
        std::thread::yield_now();
    }
}

#[watched]
fn the_newer_calls_wake_and_wait_as_the_old_one_does() {
    static WORD: AtomicU32 = AtomicU32::new(0);
    static OTHER: AtomicU32 = AtomicU32::new(0);
    let word = WORD.as_ptr().addr();
    let newer = move |value: usize| {
        let bits = u32::MAX as usize;
        call(
            SYS_FUTEX_WAIT,
            [word, value, bits, FLAGS, 0, libc::CLOCK_MONOTONIC as usize],
        )
    };
    let wake = |count| {
        call(
            SYS_FUTEX_WAKE,
            [word, u32::MAX as usize, count, FLAGS, 0, 0],
        )
    };
    assert_eq!(on_virtual(move || newer(1)), -i64::from(EAGAIN));
    both_wait(|| assert_eq!(newer(0), 0), || wake(2));
    both_wait(
        || assert_eq!(newer(0), 0),
        || private(&WORD, libc::FUTEX_WAKE, 2, [0; 3]),
    );
    both_wait(
        || assert_eq!(private(&WORD, FUTEX_WAIT, 0, [0; 3]), 0),
        || wake(2),
    );
    let entry = |word: &AtomicU32| [0, word.as_ptr().addr(), FLAGS];
    let entries = [entry(&WORD), entry(&OTHER)];
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(newer(0), 0));
        }
        let mut moved = 0;
        while moved < 2 {
            let entries = (&raw const entries).addr();
            moved += call(SYS_FUTEX_REQUEUE, [entries, 0, 0, 2, 0, 0]);
            thread::yield_now();
        }
        assert_eq!(wake(2), 0);
        assert_eq!(private(&OTHER, libc::FUTEX_WAKE, 2, [0; 3]), 2);
    });
}

//! The system call `futex` itself, with crowds of waiters: requeues, wakes of all, time-outs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use libc::{
    FUTEX_CMP_REQUEUE, FUTEX_PRIVATE_FLAG, FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_WAKE,
    FUTEX_WAKE_BITSET,
};
use pirn::thread;

use crate::common::memory::threads_of;
use crate::common::sys::{check, errno, timespec};
use crate::common::{many, on_virtual, watched};

/// Calls `futex` for a private futex. Returns its result, or the error number as a negative one.
fn futex(
    word: &AtomicU32,
    operation: i32,
    value: u32,
    fourth: usize,
    second: usize,
    last: u32,
) -> i64 {
    let operation = operation | FUTEX_PRIVATE_FLAG;
    // SAFETY: the words and the times that the callers pass stay until the end of the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            value,
            fourth,
            second,
            last,
        )
    };
    check(result).unwrap_or_else(|_| -i64::from(errno()))
}

fn wait(word: &AtomicU32) {
    assert_eq!(futex(word, FUTEX_WAIT, 0, 0, 0, 0), 0);
}

fn wake(word: &AtomicU32, count: usize) -> usize {
    futex(word, FUTEX_WAKE, count as u32, 0, 0, 0) as usize
}

/// Wakes so many waiters, as they arrive.
fn wake_all(word: &AtomicU32, count: usize) {
    let mut woken = 0;
    while woken < count {
        woken += wake(word, count - woken);
        thread::yield_now();
    }
    assert_eq!(wake(word, MOST), 0);
}

/// Wakes so many waiters of one word and moves so many others to another word. Returns the sum.
fn requeue(from: &AtomicU32, count: usize, to: &AtomicU32, limit: usize) -> i64 {
    let to = to.as_ptr().addr();
    futex(
        from,
        FUTEX_CMP_REQUEUE,
        count as u32,
        limit,
        to,
        from.load(SeqCst),
    )
}

fn words(count: usize) -> Vec<AtomicU32> {
    (0..count).map(|_| AtomicU32::new(0)).collect()
}

/// Words enough that many of them share a bucket of the parking lot.
fn crowd_size() -> usize {
    threads_of(20_000)
}
/// The maximum number of threads to wake or to move.
const MOST: usize = i32::MAX as usize;

#[watched]
fn each_of_a_crowd_is_found_by_its_word() {
    let crowd = crowd_size();
    let words = words(crowd);
    let awake = AtomicUsize::new(0);
    thread::scope(|scope| {
        for word in &words {
            scope.spawn(|| {
                wait(word);
                awake.fetch_add(1, SeqCst);
            });
        }
        for word in words.iter().rev() {
            wake_all(word, 1);
        }
    });
    assert_eq!(awake.into_inner(), crowd);
}

#[watched]
fn a_crowd_of_many_words_moves_to_one_word_and_is_woken_there() {
    let crowd = crowd_size();
    let words = words(crowd);
    let last = AtomicU32::new(0);
    thread::scope(|scope| {
        for word in &words {
            scope.spawn(|| wait(word));
        }
        let gather = || {
            for word in &words {
                while requeue(word, 0, &last, 7) == 0 {
                    thread::yield_now();
                }
                assert_eq!(wake(word, 1), 0, "no thread is left there");
            }
            assert_eq!(wake(&last, crowd), crowd);
        };
        scope.spawn(gather);
    });
}

#[watched]
fn a_requeue_wakes_the_first_and_moves_the_next_in_order() {
    let [from, queue, to] = [const { AtomicU32::new(0) }; 3];
    let woken = Mutex::new(Vec::new());
    let count = many();
    thread::scope(|scope| {
        for number in 0..count {
            let (from, woken) = (&from, &woken);
            scope.spawn(move || {
                wait(from);
                woken.lock().unwrap().push(number);
            });
            // So the order of arrival in `queue` is known.
            while requeue(from, 0, &queue, 1) == 0 {
                thread::yield_now();
            }
        }
        let await_woken = |count| {
            while woken.lock().unwrap().len() < count {
                thread::yield_now();
            }
        };
        let half = count / 2;
        let other_value = futex(&queue, FUTEX_CMP_REQUEUE, 1, 1, (&raw const to).addr(), 1);
        assert_eq!(other_value, -i64::from(libc::EAGAIN));
        assert_eq!(requeue(&queue, 0, &queue, MOST), count as i64, "to itself");
        assert_eq!(requeue(&queue, 1, &to, half), 1 + half as i64);
        await_woken(1);
        for number in 1..count {
            let word = if number <= half { &to } else { &queue };
            assert_eq!(wake(word, 1), 1);
            await_woken(number + 1);
        }
    });
    assert!(woken.into_inner().unwrap().into_iter().eq(0..count));
}

#[watched]
fn those_whose_time_is_up_leave_a_crowd_and_the_others_stay() {
    let crowd = crowd_size();
    let words = words(crowd / 10);
    let timed_out = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..crowd {
            let (word, timed_out) = (&words[number % words.len()], &timed_out);
            scope.spawn(move || {
                if number < crowd / 2 {
                    return wait(word);
                }
                let time = timespec(Duration::from_millis(1 + number as u64 % 20));
                let time = (&raw const time).addr();
                assert_eq!(
                    futex(word, FUTEX_WAIT, 0, time, 0, 0),
                    -i64::from(libc::ETIMEDOUT)
                );
                timed_out.fetch_add(1, SeqCst);
            });
        }
        while timed_out.load(SeqCst) < crowd / 2 {
            thread::yield_now();
        }
        for word in &words {
            wake_all(word, 5);
        }
    });
}

#[watched]
fn a_wake_of_all_passes_those_by_that_wait_for_other_bits() {
    let word = AtomicU32::new(0);
    let count = many();
    on_virtual(move || {
        thread::scope(|scope| {
            for number in 0..2 * count {
                let word = &word;
                scope.spawn(move || {
                    let bit = 1 << (number % 2);
                    assert_eq!(futex(word, FUTEX_WAIT_BITSET, 0, 0, 0, bit), 0);
                });
            }
            for bit in [2, 1] {
                let mut woken = 0;
                while woken < count {
                    woken += futex(&word, FUTEX_WAKE_BITSET, MOST as u32, 0, 0, bit) as usize;
                    thread::yield_now();
                }
                assert_eq!(woken, count);
            }
        });
    });
}

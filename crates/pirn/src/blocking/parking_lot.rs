//! A parking lot: virtual threads that wait for an address.
//!
//! The caller defines the meaning of an address: a futex word, a `pthread_mutex_t`. The lot has
//! hashed buckets, each a lock and [lists](super::keyed_lists) in order of arrival. The check that
//! decides whether to wait runs under the bucket's lock, and wakers take that lock too, so no
//! wake-up is lost (Drepper's futexes, WebKit's ParkingLot).
//!
//! A process has one lot for all runtimes: their threads share locks with each other and with
//! platform threads, and platform threads announce their waits from the start of the process on.

use super::keyed_lists::{Hash, Keyed, KeyedLists};
use super::list::{Linked, Links, List};
use super::posted;
use super::wait::{Outcome, Wait, WakeList};
use crate::lock::Lock;
use crate::mark;
use crate::runtime;
use crate::time::Deadline;
use crate::vthread::wait_word::Hearing;
use core::cell::Cell;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

pub(crate) const BUCKETS: usize = 4096;

#[repr(align(64))]
struct Bucket {
    waiters: Lock<KeyedLists<LotWaiter>>,
    /// The number of waiting virtual threads, readable without the lock.
    waiting: AtomicU32,
    /// The number of platform threads in the kernel's queue of an address that hashes here, or on
    /// their way into it.
    platform: AtomicU32,
}

static LOT: [Bucket; BUCKETS] = [const {
    Bucket {
        waiters: Lock::new(KeyedLists::new()),
        waiting: AtomicU32::new(0),
        platform: AtomicU32::new(0),
    }
}; BUCKETS];

/// A waiting thread, on its own stack.
struct LotWaiter {
    key: Cell<usize>,
    bits: u32,
    wait: Wait,
    /// The bucket whose list this is in (a requeue changes it); `BUCKETS`: none.
    bucket: AtomicUsize,
    links: Links<LotWaiter>,
}

impl Linked for LotWaiter {
    fn links(&self) -> &Links<LotWaiter> {
        &self.links
    }
}

impl Keyed for LotWaiter {
    fn key(&self) -> usize {
        self.key.get()
    }
}

/// Returns the number of the bucket that `key` belongs to.
#[inline]
pub(crate) fn bucket_of(key: usize) -> usize {
    Hash::of(key).bucket::<BUCKETS>()
}

/// How a call of [`park`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Parked {
    /// Woken by [`unpark`].
    Woken,
    /// The check returned false.
    Invalid,
    /// The deadline came first.
    TimedOut,
    /// The thread was interrupted, and had not heard of it before.
    Interrupted,
}

/// Parks the running virtual thread on `key`, unless `check` returns false. Returns on a wake whose
/// bits intersect `bits`, at the deadline, or, if `hearing` is given, on an interrupt.
///
/// `check` runs under the bucket's lock: short, no parking.
pub(crate) fn park(
    key: usize,
    bits: u32,
    deadline: Deadline,
    hearing: Option<Hearing>,
    check: impl FnOnce() -> bool,
) -> Parked {
    let home = bucket_of(key);
    let bucket = &LOT[home];
    let mut waiters = bucket.waiters.lock();
    // SeqCst: pairs with the fence in `unpark`: either the waker sees the count, or `check` sees
    // what the waker wrote before it.
    let others = bucket.waiting.fetch_add(1, Ordering::SeqCst);
    if !check() {
        bucket.waiting.fetch_sub(1, Ordering::Relaxed); // Relaxed: a hint going down.
        return Parked::Invalid;
    }
    let Some(wait) = Wait::hearing(hearing) else {
        bucket.waiting.fetch_sub(1, Ordering::Relaxed); // Relaxed: a hint going down.
        return Parked::Interrupted;
    };
    let waiter = LotWaiter {
        key: Cell::new(key),
        bits,
        wait,
        bucket: AtomicUsize::new(home),
        links: Links::new(),
    };
    // SAFETY: it stays here, on the stack, until a waker or `leave` below has taken it out.
    unsafe { waiters.append(&waiter, others as usize + 1) };
    drop(waiters);
    match waiter.wait.block_until(deadline) {
        Outcome::TimedOut => {
            leave(&waiter);
            Parked::TimedOut
        }
        Outcome::Interrupted => {
            leave(&waiter);
            Parked::Interrupted
        }
        _ => Parked::Woken, // The waker took us off its list.
    }
}

/// Removes a waiter that was not woken from its list, if it is in one.
fn leave(waiter: &LotWaiter) {
    loop {
        let home = waiter.bucket.load(Ordering::Relaxed); // Relaxed: checked under the lock.
        let mut waiters = LOT[home].waiters.lock();
        if waiter.bucket.load(Ordering::Relaxed) == home {
            // SAFETY: the list of its key, under the lock of its bucket: there, or nowhere.
            unsafe { waiters.list(waiter.key.get()).remove(waiter) };
            LOT[home].waiting.fetch_sub(1, Ordering::Relaxed); // Relaxed: a hint going down.
            return;
        }
    }
}

/// Wakes up to `count` threads that wait for `key` with a bit of `bits`, in order of arrival.
/// Returns the number woken; in a signal handler, 0: they are woken soon.
pub(crate) fn unpark(key: usize, count: usize, bits: u32) -> usize {
    let bucket = &LOT[bucket_of(key)];
    // The caller's write (of the futex word) must be visible before the count of waiters is read;
    // pairs with the SeqCst addition in `park`.
    crate::arch::full_fence();
    // Threads that come later need not be woken. Without this bound, woken threads that wait again
    // at once could keep us here.
    let count = count.min(bucket.waiting.load(Ordering::Relaxed) as usize);
    if count > 0 && mark::in_handler() {
        posted::post(bucket_of(key));
        return 0;
    }
    let mut woken = 0;
    while woken < count {
        if runtime::has_forked() {
            break; // The listed threads are in the parent process.
        }
        let mut wakes = WakeList::new();
        let more = collect(bucket, key, bits, count - woken, &mut wakes);
        woken += wakes.perform();
        if !more {
            break;
        }
    }
    woken
}

/// Returns whether anybody may be waiting for `key`. To be called after a full barrier, which
/// follows the write that the waiters' checks read.
#[inline]
pub(crate) fn any_waiting(key: usize) -> bool {
    // Relaxed: ordered by the caller's barrier, which pairs with the SeqCst addition in `park`.
    LOT[bucket_of(key)].waiting.load(Ordering::Relaxed) > 0
}

/// Wakes all threads that wait in a bucket: a spurious wake-up for those whose key nobody has
/// woken.
pub(super) fn wake_all(bucket: usize) {
    let bucket = &LOT[bucket];
    // Relaxed: the caller has synchronised with the wakers. Threads that come later need not be
    // woken, as in `unpark`.
    let mut left = bucket.waiting.load(Ordering::Relaxed) as usize;
    while left > 0 {
        let mut wakes = WakeList::new();
        for list in bucket.waiters.lock().lists() {
            let _ = list.walk(|list, waiter| {
                if left == 0 || wakes.is_full() {
                    return ControlFlow::Break(());
                }
                if let Some(wakeup) = claim(bucket, list, waiter) {
                    wakes.push(wakeup);
                    left -= 1;
                }
                ControlFlow::Continue(())
            });
        }
        if wakes.perform() < WakeList::CAPACITY {
            return;
        }
    }
}

/// Claims waiters. Returns whether the list of wakes was too short for all of them.
fn collect(bucket: &Bucket, key: usize, bits: u32, count: usize, wakes: &mut WakeList) -> bool {
    let mut waiters = bucket.waiters.lock();
    let stopped = waiters.list(key).walk(|list, waiter| {
        if waiter.key.get() == key
            && waiter.bits & bits != 0
            && let Some(wakeup) = claim(bucket, list, waiter)
        {
            wakes.push(wakeup);
            // Stop here: even a look at the next waiter is a cache miss.
            if wakes.len() == count || wakes.is_full() {
                return ControlFlow::Break(wakes.len() < count);
            }
        }
        ControlFlow::Continue(())
    });
    stopped.break_value().unwrap_or(false)
}

/// Claims one waiter and takes it off the list. A waiter that has just timed out leaves by itself.
fn claim(
    bucket: &Bucket,
    list: &mut List<LotWaiter>,
    waiter: &LotWaiter,
) -> Option<super::wait::Wakeup> {
    let wakeup = waiter.wait.claim(Outcome::Ready)?;
    // SAFETY: the caller found it in this list. It is a virtual thread, so it and its stack stay in
    // place until the wake.
    unsafe { list.remove(waiter) };
    bucket.waiting.fetch_sub(1, Ordering::Relaxed); // Relaxed: a hint going down.
    Some(wakeup)
}

/// Moves up to `count` threads that wait for `from` to the end of the queue of `to`. Returns the
/// number moved.
pub(crate) fn requeue(from: usize, to: usize, count: usize) -> usize {
    if runtime::has_forked() || mark::in_handler() {
        return 0; // As in `unpark`, which wakes them all for a handler.
    }
    let (a, b) = (bucket_of(from), bucket_of(to));
    if a == b {
        return requeue_within(&mut LOT[a].waiters.lock(), from, to, count);
    }
    // Both locks, in the order of the buckets.
    let first = LOT[a.min(b)].waiters.lock();
    let second = LOT[a.max(b)].waiters.lock();
    let (mut source, mut target) = if a < b {
        (first, second)
    } else {
        (second, first)
    };
    let there = LOT[b].waiting.load(Ordering::Relaxed) as usize; // Relaxed: under its lock.
    let mut moved = 0;
    for_each_of(from, count, source.list(from), |source, waiter| {
        // SAFETY: it is in this list.
        unsafe { source.remove(waiter) };
        waiter.key.set(to);
        waiter.bucket.store(b, Ordering::Relaxed); // Relaxed: under both locks.
        moved += 1;
        // SAFETY: it is in no list now. It stays in place until `leave` or a claim takes it out.
        unsafe { target.append(waiter, there + moved) };
    });
    LOT[b].waiting.fetch_add(moved as u32, Ordering::SeqCst); // SeqCst: as in `park`.
    LOT[a].waiting.fetch_sub(moved as u32, Ordering::Relaxed); // Relaxed: a hint going down.
    moved
}

/// Requeues within one bucket. Within one list, the waiters keep their places.
fn requeue_within(
    waiters: &mut KeyedLists<LotWaiter>,
    from: usize,
    to: usize,
    count: usize,
) -> usize {
    let mut moved = 0;
    if waiters.share_list(from, to) {
        for_each_of(from, count, waiters.list(from), |_, waiter| {
            waiter.key.set(to);
            moved += 1;
        });
        return moved;
    }
    let mut taken = List::new();
    for_each_of(from, count, waiters.list(from), |list, waiter| {
        // SAFETY: it is in this list, and stays where it is for the next.
        unsafe {
            list.remove(waiter);
            waiter.key.set(to);
            taken.append(waiter);
        }
        moved += 1;
    });
    while let Some(waiter) = taken.take_first() {
        // SAFETY: as above.
        unsafe { waiters.list(to).append(waiter) };
    }
    moved
}

/// Calls `f` for the first `count` waiters of `key` in a list.
fn for_each_of(
    key: usize,
    count: usize,
    list: &mut List<LotWaiter>,
    mut f: impl FnMut(&mut List<LotWaiter>, &LotWaiter),
) {
    let mut left = count;
    let _ = list.walk(|list, waiter| {
        if left == 0 {
            return ControlFlow::Break(());
        }
        if waiter.key.get() == key {
            f(list, waiter);
            left -= 1;
        }
        ControlFlow::Continue(())
    });
}

/// Announces, while `f` runs, that the calling platform thread waits for `key` in the kernel.
pub(crate) fn in_kernel<R>(key: usize, f: impl FnOnce() -> R) -> R {
    let bucket = &LOT[bucket_of(key)];
    // SeqCst: pairs with the waker's fence, as in `park`: either the waker sees the count, or the
    // kernel sees the new value of the word.
    bucket.platform.fetch_add(1, Ordering::SeqCst);
    let result = f();
    bucket.platform.fetch_sub(1, Ordering::Relaxed); // Relaxed: a hint going down.
    result
}

/// Returns whether a platform thread may be waiting for `key` in the kernel. To be called after a
/// SeqCst fence.
pub(crate) fn any_in_kernel(key: usize) -> bool {
    // Relaxed: ordered by the caller's fence.
    LOT[bucket_of(key)].platform.load(Ordering::Relaxed) > 0
}

//! A parking lot: virtual threads that wait for an address.
//!
//! The caller defines the meaning of an address: a futex word, a `pthread_mutex_t`. The lot has
//! hashed buckets, each a lock and a [queue](queues) per address, in order of arrival.
//! The check that decides whether to wait runs under the bucket's lock, and wakers take that lock
//! too, so no wake-up is lost (Drepper's futexes, WebKit's ParkingLot).
//!
//! The number of buckets is fixed: each grows by itself, under its own lock, so that a wake finds
//! its waiter in one step, no matter how many threads wait.
//!
//! A process has one lot for all runtimes: their threads share locks with each other and with
//! platform threads, and platform threads announce their waits from the start of the process on.

mod count;
pub(super) mod hand_over;
mod queues;

use self::queues::{Keyed, KeyedQueues, break_if};
use crate::blocking::list::{Linked, Links, List};
use crate::blocking::wait::{Outcome, Wait, WakeList, Wakeup};
use crate::lock::Lock;
use crate::sched::runtime;
use crate::time::Deadline;
use crate::vthread::wait_reason::WaitReason;
use crate::vthread::wait_word::Interruptible;
use crate::{arch, no_suspend, vthread};
use core::cell::Cell;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

pub(crate) const BUCKETS: usize = 4096;

/// The two low bits of the key of a lock that is not a futex word.
pub const LOCK: usize = 1;

#[repr(align(64))]
struct Bucket {
    waiters: Lock<KeyedQueues<LotWaiter>>,
    /// The number of waiting virtual threads, readable without the lock, under which it changes.
    waiting: AtomicU32,
    /// The number of platform threads in the kernel's queue of an address that hashes here, or on
    /// their way into it.
    platform: AtomicU32,
}

const _: () = assert!(size_of::<Bucket>() == 64);

static LOT: [Bucket; BUCKETS] = [const {
    Bucket {
        waiters: Lock::new(KeyedQueues::new()),
        waiting: AtomicU32::new(0),
        platform: AtomicU32::new(0),
    }
}; BUCKETS];

/// Forgets the threads that wait, which are in the parent process. The counts of platform threads
/// stay: they may only be too high.
///
/// # Safety
/// In the child of a fork that has no runtime yet.
pub(crate) unsafe fn after_fork() {
    for bucket in &LOT {
        // Only those: untouched pages of the lot stay so. Relaxed: no thread changes it.
        if bucket.waiters.is_held() || bucket.waiting.load(Ordering::Relaxed) > 0 {
            // SAFETY: the caller's contract.
            unsafe { bucket.waiters.renew(KeyedQueues::new()) };
            bucket.waiting.store(0, Ordering::Relaxed); // Relaxed: there is one thread.
        }
    }
    ANY.store(false, Ordering::Relaxed); // Relaxed, both: there is no runtime yet.
    for marks in &MARKED {
        marks.store(0, Ordering::Relaxed);
    }
}

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
    queues::bucket_of::<BUCKETS>(key)
}

/// Returns the bytes of the lot: its buckets, and the tables of those that are crowded.
#[inline]
pub fn bytes() -> usize {
    size_of_val(&LOT) + queues::bytes()
}

/// How a call of [`park`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parked {
    /// Woken by [`unpark`].
    Woken,
    /// The check returned false.
    Invalid,
    /// The deadline came first.
    TimedOut,
    /// The thread was interrupted, and no such wait has ended for that before.
    Interrupted,
    /// A safe point was requested.
    SafePoint,
}

/// Parks the running virtual thread on `key`, unless `check` returns false. Returns on a wake whose
/// bits intersect `bits`, at the deadline, on a safe point request, or on an interrupt.
/// `reason` returns what to say about a wait for `key`.
///
/// `check` runs under the bucket's lock: short, no parking.
///
/// Inlined into the waits for futexes: a round trip of a channel takes 6 % fewer instructions.
#[inline]
pub fn park(
    key: usize,
    bits: u32,
    deadline: Deadline,
    interruptible: Interruptible,
    reason: impl FnOnce(usize) -> WaitReason,
    check: impl FnOnce() -> bool,
) -> Parked {
    let home = bucket_of(key);
    let bucket = &LOT[home];
    let mut waiters = bucket.waiters.lock();
    count::join(&bucket.waiting);
    if !check() {
        count::leave(&bucket.waiting, 1);
        return Parked::Invalid;
    }
    let reason = reason(key);
    if let Some(thread) = vthread::current() {
        thread.wait_info.queue_up(reason);
    }
    let wait = match Wait::begin(reason, interruptible) {
        Ok(wait) => wait,
        Err(refused) => {
            count::leave(&bucket.waiting, 1);
            return given_up(refused);
        }
    };
    let waiter = LotWaiter {
        key: Cell::new(key),
        bits,
        wait,
        bucket: AtomicUsize::new(home),
        links: Links::new(),
    };
    // SAFETY: it stays here, on the stack, until a waker or `leave` below has taken it out.
    unsafe { waiters.append(&waiter) };
    drop(waiters);
    match waiter.wait.block_until(deadline) {
        Outcome::TimedOut => {
            leave(&waiter);
            Parked::TimedOut
        }
        outcome @ (Outcome::Interrupted | Outcome::SafePoint) => {
            leave(&waiter);
            given_up(outcome)
        }
        _ => Parked::Woken, // The waker took us off its list.
    }
}

/// Returns how a call ends whose wait has ended, or not begun, for another reason than its key.
#[cold]
fn given_up(outcome: Outcome) -> Parked {
    match outcome {
        Outcome::SafePoint => Parked::SafePoint,
        _ => Parked::Interrupted,
    }
}

/// Ends the stay of a waiter that was not woken. A waker may have taken it out of its list.
fn leave(waiter: &LotWaiter) {
    loop {
        let home = waiter.bucket.load(Ordering::Relaxed); // Relaxed: checked under the lock.
        let mut waiters = LOT[home].waiters.lock();
        if waiter.bucket.load(Ordering::Relaxed) == home {
            // SAFETY: under the lock of its bucket: it is there, or nowhere.
            unsafe { waiters.remove(waiter) };
            count::leave(&LOT[home].waiting, 1);
            return;
        }
    }
}

/// Wakes up to `count` threads that wait for `key` with a bit of `bits`, in order of arrival.
/// Returns the number woken; in a signal handler, 0: they are woken soon.
///
/// Executes a full fence, or an atomic read-modify-write (see [`arch::fence_after_atomic`]).
pub fn unpark(key: usize, count: usize, bits: u32) -> usize {
    let bucket = &LOT[bucket_of(key)];
    if !count::any(&bucket.waiting) {
        return 0;
    }
    if count == 0 || runtime::has_forked() {
        arch::full_fence();
        return 0; // After a fork, the listed threads are in the parent process.
    }
    if no_suspend::in_handler() {
        post(bucket_of(key));
        return 0;
    }
    match count {
        1 => usize::from(unpark_one(bucket, key, bits)),
        _ => wake_up_to(bucket, count, key, |waiters, collect| {
            waiters.take_while(key, |waiter| waiter.bits & bits != 0, collect);
        }),
    }
}

#[inline]
fn unpark_one(bucket: &Bucket, key: usize, bits: u32) -> bool {
    let mut first = None;
    bucket.waiters.lock().take_while(
        key,
        |waiter| waiter.bits & bits != 0,
        |waiter| {
            first = claim(bucket, waiter);
            break_if(first.is_some())
        },
    );
    match first {
        Some(Wakeup::Virtual(thread)) if thread.is_due() => hand_over::wake(key, thread),
        Some(wakeup) => wakeup.perform(),
        None => return false,
    }
    true
}

/// Wakes up to `count` of the threads that `take` takes out and passes to its second argument, and
/// lets them run first if it is the turn of one of them. Returns the number woken.
#[inline(never)]
fn wake_up_to(
    bucket: &Bucket,
    count: usize,
    key: usize,
    mut take: impl FnMut(&mut KeyedQueues<LotWaiter>, &mut dyn FnMut(&LotWaiter) -> ControlFlow<()>),
) -> usize {
    let mut waiters = bucket.waiters.lock();
    let most = count::bound(&bucket.waiting, count);
    let (mut woken, mut lock) = (0, None);
    while woken < most {
        let mut wakes = WakeList::new();
        let left = most - woken;
        take(&mut waiters, &mut |waiter| {
            if waiter.wait.take_turn() {
                lock.get_or_insert_with(|| hand_over::is_free_lock(key));
            }
            collect(bucket, waiter, &mut wakes, left)
        });
        drop(waiters);
        let performed = wakes.perform();
        woken += performed;
        if performed < WakeList::CAPACITY || woken == most {
            break;
        }
        waiters = bucket.waiters.lock();
    }
    lock.into_iter().for_each(hand_over::give_way);
    woken
}

/// Returns whether a thread may be waiting for `key`. To be called after libc's unlock, an atomic
/// operation that has written what the waiters' checks read.
#[inline]
pub fn any_waiting(key: usize) -> bool {
    count::any_after_unlock(&LOT[bucket_of(key)].waiting)
}

/// Wakes all threads that wait in a bucket: a spurious wake-up for threads whose key has not been
/// woken.
#[inline]
pub(super) fn wake_all(bucket: usize) {
    wake_up_to(&LOT[bucket], usize::MAX, 0, |waiters, collect| {
        waiters.take_all_while(collect);
    });
}

/// Claims a waiter that has been taken out, and adds its wake to `wakes`. Breaks when there are
/// `count` wakes, or the list is full.
fn collect(
    bucket: &Bucket,
    waiter: &LotWaiter,
    wakes: &mut WakeList,
    count: usize,
) -> ControlFlow<()> {
    let Some(wakeup) = claim(bucket, waiter) else {
        return ControlFlow::Continue(());
    };
    wakes.push(wakeup);
    break_if(wakes.len() == count || wakes.is_full())
}

/// Claims a waiter that has been taken out of the bucket: when it is claimed, it may be gone. A
/// waiter that has just timed out still counts, and [leaves](leave) by itself.
#[inline]
fn claim(bucket: &Bucket, waiter: &LotWaiter) -> Option<Wakeup> {
    let wakeup = waiter.wait.claim(Outcome::Ready)?;
    count::leave(&bucket.waiting, 1);
    Some(wakeup)
}

/// Moves up to `count` threads that wait for `from` to the end of the queue of `to`. Returns the
/// number moved.
pub(crate) fn requeue(from: usize, to: usize, count: usize) -> usize {
    if runtime::has_forked() || no_suspend::in_handler() {
        return 0; // As in `unpark`, which wakes them all for a handler.
    }
    let (a, b) = (bucket_of(from), bucket_of(to));
    if a == b {
        let mut waiters = LOT[a].waiters.lock();
        let taken = waiters.take(from, count);
        return put(taken, &mut waiters, to, b);
    }
    // Both locks, in the order of the buckets.
    let first = LOT[a.min(b)].waiters.lock();
    let second = LOT[a.max(b)].waiters.lock();
    let (mut source, mut target) = if a < b {
        (first, second)
    } else {
        (second, first)
    };
    let moved = put(source.take(from, count), &mut target, to, b);
    // SeqCst: pairs with the waker's fence (step b in `count`).
    LOT[b].waiting.fetch_add(moved as u32, Ordering::SeqCst);
    count::leave(&LOT[a].waiting, moved as u32);
    moved
}

/// Adds waiters to the queue of `to`, in the bucket of this number. Returns how many there were.
/// The caller has locked the bucket that they come from as well.
fn put(
    mut taken: List<LotWaiter>,
    waiters: &mut KeyedQueues<LotWaiter>,
    to: usize,
    bucket: usize,
) -> usize {
    let mut moved = 0;
    while let Some(waiter) = taken.take_first() {
        waiter.key.set(to);
        waiter.wait.moved(to);
        waiter.bucket.store(bucket, Ordering::Relaxed); // Relaxed: under both locks.
        // SAFETY: it is in no list now. It stays in place until `leave` or a claim takes it out.
        unsafe { waiters.append(waiter) };
        moved += 1;
    }
    moved
}

/// Announces, while `f` runs, that the calling platform thread waits for `key` in the kernel.
pub fn in_kernel<R>(key: usize, f: impl FnOnce() -> R) -> R {
    let bucket = &LOT[bucket_of(key)];
    // SeqCst: pairs with the waker's fence: either the waker sees the count, or the kernel sees the
    // new value of the word.
    bucket.platform.fetch_add(1, Ordering::SeqCst);
    let result = f();
    // Relaxed: a waker that sees the count too high makes one system call too many.
    bucket.platform.fetch_sub(1, Ordering::Relaxed);
    result
}

/// Returns whether a platform thread may be waiting for `key` in the kernel. To be called after a
/// SeqCst fence.
#[inline]
pub(crate) fn any_in_kernel(key: usize) -> bool {
    // Relaxed: ordered by the caller's fence.
    LOT[bucket_of(key)].platform.load(Ordering::Relaxed) > 0
}

// Wakes that signal handlers have asked for.
//
// A handler may have interrupted code that holds a lock of the lot, so it takes none. It marks the
// bucket, and kicks the poller. The next carrier that looks for events wakes all waiters of the
// bucket: more than the handler asked for, but each waiter expects spurious wakes, and checks again
// what it waits for.
//
// No model checks this. Each post makes a kick of its own, after its mark and `ANY`: so no carrier
// sleeps, or omits a kick, because of what it has read here. One exchange publishes a mark, and
// `deliver_posted` takes `ANY` back before it takes the marks: a mark that it misses has an `ANY`
// and a kick still to come.

/// A bit per bucket.
static MARKED: [AtomicU64; BUCKETS / 64] = [const { AtomicU64::new(0) }; BUCKETS / 64];
/// Whether a bucket may be marked.
static ANY: AtomicBool = AtomicBool::new(false);

/// Makes a carrier wake all waiters of a bucket soon. Async-signal-safe.
#[cold]
fn post(bucket: usize) {
    let Some(runtime) = runtime::get() else {
        return; // The child of a fork: the threads are in the parent process.
    };
    // Release: pairs with the Acquire of the swap below: a woken thread sees what the handler did.
    MARKED[bucket / 64].fetch_or(1 << (bucket % 64), Ordering::Release);
    // Release: pairs with the Acquire in `deliver`, which then sees the mark. A swap, so that a
    // `deliver` that sees this post sees the marks of those before it too.
    ANY.swap(true, Ordering::Release);
    runtime.poller.kick();
}

/// Performs the wakes that have been posted.
#[inline]
pub(crate) fn deliver_posted() {
    // Relaxed: the kick comes after the store, so the carrier that it wakes sees it.
    if ANY.load(Ordering::Relaxed) && ANY.swap(false, Ordering::Acquire) {
        deliver_all();
    }
}

#[cold]
fn deliver_all() {
    for (index, marks) in MARKED.iter().enumerate() {
        let mut marks = marks.swap(0, Ordering::Acquire); // Acquire: see `post`.
        while marks != 0 {
            wake_all(index * 64 + marks.trailing_zeros() as usize);
            marks &= marks - 1;
        }
    }
}

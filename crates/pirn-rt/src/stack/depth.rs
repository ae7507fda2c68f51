//! How deep large stacks are used, and the warning if a small one would not have been enough.
//!
//! A guard at the depth of a small slot would tell at the very moment when it is crossed. But the
//! kernel's own accesses do not cross it: a `read` into a buffer across it, in C code that does not
//! probe its stack, would fail with `EFAULT`, and a signal could not be delivered there. So nothing
//! is put in the way. The kernel knows which pages have been touched (`mincore`), and is asked
//!
//! * before the memory of free large slots is given back, which would hide it;
//! * before small slots are planned, at most every [`PERIOD_NS`];
//! * as often while there are small slots, by the monitor, some slots per tick;
//! * when the process exits.
//!
//! The process has one state, like the warning, which it gives once.

use super::{MOST_LARGE, SizeClass, Slot, region};
use crate::environment;
use crate::sys::FixedText;
use crate::sys::{self, SMALLEST_PAGE, call, page_size};
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The time between two looks at all stacks. A look at 4,096 takes some 4 ms.
const PERIOD_NS: u64 = 5_000_000_000;
/// The number of stacks that the monitor looks at per tick.
const PER_TICK: usize = 64;
/// A stack that is deeper than a small one has touched at least one of the pages in this many bytes
/// below the depth of the small one. Code that probes its stack, as Rust's does, touches each page.
const WINDOW: usize = 64 << 10;

/// The first large stack that a look found used deeper than a small one is: its slot's number in
/// the upper half, the bytes used in the lower. 0: no look has found one. [`WARNED`]: a thread has
/// taken it, to give the warning.
static FOUND: AtomicU64 = AtomicU64::new(0);
const WARNED: u64 = u64::MAX;
/// When the last look at all stacks was made, or was begun.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Returns the address below which a small stack would have its guard.
fn small_bottom(slot: Slot) -> usize {
    slot.end() - SizeClass::SMALL.stack_bytes()
}

/// Returns whether a large stack has been used deeper than a small one is.
fn is_too_deep(slot: Slot) -> bool {
    lowest_touched(slot, small_bottom(slot)).is_some()
}

/// Returns the bytes that a stack has used.
fn used(slot: Slot) -> usize {
    let mut lowest = small_bottom(slot);
    while let Some(lower) = lowest_touched(slot, lowest) {
        lowest = lower;
    }
    slot.end() - lowest
}

/// Returns the lowest of the pages close below `end` that have been touched. Pages on a swap
/// device do not count.
fn lowest_touched(slot: Slot, end: usize) -> Option<usize> {
    let start = slot.bottom().max(end.saturating_sub(WINDOW));
    if start >= end {
        return None;
    }
    let mut touched = [0_u8; WINDOW / SMALLEST_PAGE];
    // SAFETY: one byte is written per page. It only asks.
    let asked = unsafe { call!(libc::SYS_mincore, start, end - start, touched.as_mut_ptr()) };
    asked.ok()?;
    let lowest = touched.iter().position(|page| page & 1 != 0)?;
    Some(start + lowest * page_size())
}

/// Returns whether a large stack has ever been found used too deep.
fn is_deep() -> bool {
    FOUND.load(Ordering::Relaxed) != 0 // Relaxed: the caller may learn of it late.
}

/// Looks at large stacks, until one has been used too deep. Returns whether one ever has; then the
/// caller [warns](warn) when it holds no lock.
pub(super) fn look(slots: impl IntoIterator<Item = Slot>) -> bool {
    if is_deep() {
        return true;
    }
    let Some(slot) = slots.into_iter().find(|&slot| is_too_deep(slot)) else {
        return false;
    };
    let found = u64::from(slot.0) << 32 | used(slot) as u64;
    // Relaxed: one word, and any of several finds will do.
    let _ = FOUND.compare_exchange(0, found, Ordering::Relaxed, Ordering::Relaxed);
    true
}

/// Looks at all large stacks, unless that has been done a moment ago. Returns whether one has ever
/// been used too deep.
#[cold]
pub(super) fn look_around() -> bool {
    match begin_round(sys::now()) {
        true => look(region::created(SizeClass::LARGE)),
        false => is_deep(),
    }
}

/// Returns whether it is time to look at all stacks, and notes that it is done.
fn begin_round(now: u64) -> bool {
    let last = LAST.load(Ordering::Relaxed); // Relaxed: only who looks is decided.
    let due = last == 0 || now.saturating_sub(last) >= PERIOD_NS;
    due && LAST
        .compare_exchange(last, now.max(1), Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
}

/// Looks at some large stacks: a part of a round per call. For the monitor.
pub(super) fn look_on() {
    /// How far this round has come; 0 between two rounds.
    static DONE: AtomicUsize = AtomicUsize::new(0);
    let done = DONE.load(Ordering::Relaxed); // Relaxed: the monitor's alone.
    if is_deep() || (done == 0 && !begin_round(sys::now())) {
        return;
    }
    let mut count = 0;
    let slots = region::created(SizeClass::LARGE).skip(done);
    look(slots.take(PER_TICK).inspect(|_| count += 1));
    let done = if count == PER_TICK { done + count } else { 0 };
    DONE.store(done, Ordering::Relaxed); // Relaxed: the monitor's alone.
    warn();
}

/// Looks at all stacks at the end of the process.
pub(crate) fn look_at_all() {
    look(region::created(SizeClass::LARGE));
    warn();
}

/// Writes the warning if it is due. It neither locks nor allocates, since the caller may be in the
/// middle of a spawn.
#[cold]
pub(super) fn warn() {
    let found = FOUND.load(Ordering::Relaxed); // Relaxed, twice: one word.
    let due = found != 0 && found != WARNED;
    let exchange = || FOUND.compare_exchange(found, WARNED, Ordering::Relaxed, Ordering::Relaxed);
    if due && exchange().is_ok() && !environment::notices_are_off() {
        write_warning(Slot((found >> 32) as u32), found as u32);
    }
}

#[inline(never)]
fn write_warning(slot: Slot, bytes: u32) {
    let kib = |class: SizeClass| class.stack_bytes() >> 10;
    let mut text = FixedText::new();
    let _ = writeln!(
        text,
        "pirn: a virtual thread has used {} KiB of its stack; it ran {}. It had room because at \
         most {} threads were alive: these have {large} KiB each. With more threads it may get \
         {small} KiB, which would overflow and end the program. Set Builder::stack_size for such \
         threads, or PIRN_STACK_SIZE={large}K for all (4 KiB of page tables per thread)",
        bytes >> 10,
        region::last_user(slot).unwrap_or("code that is not known"),
        MOST_LARGE,
        large = kib(SizeClass::LARGE),
        small = kib(SizeClass::SMALL),
    );
    sys::complain(&[text.as_str()]);
}

//! How deep roomy stacks are used, and the warning if a dense one would not have been enough.
//!
//! A guard at the depth of a dense slot would tell at the very moment when it is crossed. But the
//! kernel's own accesses do not cross it: a `read` into a buffer across it, in C code that does not
//! probe its stack, would fail with `EFAULT`, and a signal could not be delivered there. So nothing
//! is put in the way. The kernel knows which pages have been touched (`mincore`), and is asked
//!
//! * before the memory of free roomy slots is given back, which would hide it;
//! * before dense slots are planned, at most every [`PERIOD_NS`];
//! * as often while there are dense slots, by the monitor, some slots per tick;
//! * when the process exits.
//!
//! The state is that of the process, like the warning, which is given once.

use super::{PAGE, SizeClass, Slot, default, region};
use crate::sys::FixedText;
use crate::sys::{self, call};
use crate::{notices, runtime};
use core::fmt::Write;
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// The time between two looks at all stacks. A look at 4,096 takes some 4 ms.
const PERIOD_NS: u64 = 5_000_000_000;
/// The number of stacks that the monitor looks at per tick.
const PER_TICK: usize = 64;
/// The number of pages below the depth of a dense stack of which a deeper one has touched at least
/// one. Code that probes its stack, as Rust's, touches each.
const WINDOW: usize = 16;

/// The state of the warning.
static STATE: AtomicU8 = AtomicU8::new(FINE);
const FINE: u8 = 0;
/// A roomy stack has been used deeper than a dense one is: `FOUND` says which, and how deep.
const DEEP: u8 = 1;
/// The warning has been given, or another thread is about to give it.
const WARNED: u8 = 2;
static FOUND: AtomicU64 = AtomicU64::new(0);
/// When all stacks were last looked at, or began to be.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Returns the address below which a dense stack would have its guard.
fn dense_bottom(slot: Slot) -> usize {
    slot.end() - SizeClass::DENSE.stack_bytes()
}

/// Returns whether a roomy stack has been used deeper than a dense one is.
fn is_too_deep(slot: Slot) -> bool {
    lowest_touched(slot, dense_bottom(slot)).is_some()
}

/// Returns the bytes that a stack has used.
fn used(slot: Slot) -> usize {
    let mut lowest = dense_bottom(slot);
    while let Some(lower) = lowest_touched(slot, lowest) {
        lowest = lower;
    }
    slot.end() - lowest
}

/// Returns the lowest page that has been touched, of those close below `end`. Pages on a swap
/// device do not count.
fn lowest_touched(slot: Slot, end: usize) -> Option<usize> {
    let start = slot.bottom().max(end.saturating_sub(WINDOW * PAGE));
    if start >= end {
        return None;
    }
    let mut touched = [0_u8; WINDOW];
    // SAFETY: one byte is written per page. It only asks.
    let asked = unsafe { call!(libc::SYS_mincore, start, end - start, touched.as_mut_ptr()) };
    asked.ok()?;
    let lowest = touched.iter().position(|page| page & 1 != 0)?;
    Some(start + lowest * PAGE)
}

/// Returns whether a roomy stack has ever been found used too deep.
fn is_deep() -> bool {
    STATE.load(Ordering::Relaxed) != FINE // Relaxed: a hint that comes sooner or later.
}

/// Looks at roomy stacks, until one has been used too deep. Returns whether one ever has; then the
/// caller [warns](warn) when it holds no lock.
pub(super) fn look(slots: impl IntoIterator<Item = Slot>) -> bool {
    if is_deep() {
        return true;
    }
    let Some(slot) = slots.into_iter().find(|&slot| is_too_deep(slot)) else {
        return false;
    };
    // Relaxed: one word; any of several finds will do.
    FOUND.store(
        u64::from(slot.0) << 32 | used(slot) as u64,
        Ordering::Relaxed,
    );
    // Release: pairs with the Acquire in `warn`, for the find. Relaxed on failure: nothing follows.
    let _ = STATE.compare_exchange(FINE, DEEP, Ordering::Release, Ordering::Relaxed);
    true
}

/// Looks at all roomy stacks, unless that has been done a moment ago. Returns whether one has ever
/// been used too deep.
#[cold]
pub(super) fn look_around() -> bool {
    match begin_round(sys::now()) {
        true => look(region::created(SizeClass::ROOMY)),
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

/// Looks at some roomy stacks: a part of a round per call. For the monitor.
pub(super) fn look_on() {
    /// How far this round has come; 0 between two rounds.
    static DONE: AtomicUsize = AtomicUsize::new(0);
    let done = DONE.load(Ordering::Relaxed); // Relaxed: the monitor's alone.
    if is_deep() || (done == 0 && !begin_round(sys::now())) {
        return;
    }
    let mut count = 0;
    let slots = region::created(SizeClass::ROOMY).skip(done);
    look(slots.take(PER_TICK).inspect(|_| count += 1));
    let done = if count == PER_TICK { done + count } else { 0 };
    DONE.store(done, Ordering::Relaxed); // Relaxed: as above.
    warn();
}

/// Looks at all stacks at the end of the process. Called once, at the start.
pub fn watch_exit() {
    extern "C" fn at_exit() {
        // Not in the child of a fork.
        if runtime::get().is_some() {
            look(region::created(SizeClass::ROOMY));
            warn();
        }
    }
    // SAFETY: the function does not unwind.
    unsafe { libc::atexit(at_exit) };
}

/// Writes the warning if it is due. It neither locks nor allocates, since the caller may be in the
/// middle of a spawn.
#[cold]
pub(super) fn warn() {
    // Acquire: pairs with the Release in `look`. Relaxed on failure: nothing follows.
    let due = STATE.compare_exchange(DEEP, WARNED, Ordering::Acquire, Ordering::Relaxed);
    if due.is_ok() && !notices::are_off() {
        write_warning();
    }
}

#[inline(never)]
fn write_warning() {
    let found = FOUND.load(Ordering::Relaxed); // Relaxed: see above.
    let (slot, bytes) = (Slot((found >> 32) as u32), found as u32);
    let kib = |class: SizeClass| class.stack_bytes() >> 10;
    let mut text = FixedText::new();
    let _ = writeln!(
        text,
        "pirn: a virtual thread has used {} KiB of its stack; it ran {}. It had room because at \
         most {} threads were alive: these have {roomy} KiB each. With more threads it may get \
         {dense} KiB, which would overflow and end the program. Set Builder::stack_size for such \
         threads, or PIRN_STACK_SIZE={roomy}K for all (4 KiB of page tables per thread)",
        bytes >> 10,
        region::last_user(slot).unwrap_or("code that is not known"),
        default::ROOMY,
        roomy = kib(SizeClass::ROOMY),
        dense = kib(SizeClass::DENSE),
    );
    sys::complain(&[text.as_str()]);
}

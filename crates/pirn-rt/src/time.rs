//! Points in time: nanoseconds of `CLOCK_MONOTONIC`, the runtime's only unit of time.

use crate::arch;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A point in time at which a wait ends at the latest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Deadline(u64);

impl Deadline {
    /// Later than every other: the wait has no limit.
    pub const NEVER: Deadline = Deadline(u64::MAX);
    /// Earlier than every other: the wait ends at once.
    pub(crate) const PASSED: Deadline = Deadline(0);

    /// Returns the point in time at which the clock shows this many nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Deadline {
        Deadline(nanos)
    }

    /// Returns the nanoseconds that the clock will show then.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Returns the point this far from now, or [`NEVER`](Self::NEVER) if that overflows.
    pub fn after(timeout: Duration) -> Deadline {
        Deadline::after_nanos(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns the point this many nanoseconds from now, as [`after`](Self::after) does. Does not
    /// read the clock if the number is 0.
    #[inline]
    pub fn after_nanos(timeout: u64) -> Deadline {
        match timeout {
            0 => Deadline::PASSED,
            timeout => Deadline(now().saturating_add(timeout)),
        }
    }

    /// Returns the point that an optional timeout leads to, as [`after`](Self::after) does.
    pub fn after_timeout(timeout: Option<u64>) -> Deadline {
        timeout.map_or(Deadline::NEVER, Deadline::after_nanos)
    }

    /// Returns the same point as an [`Instant`].
    pub fn at(instant: Instant) -> Deadline {
        Deadline::after(instant.saturating_duration_since(Instant::now()))
    }

    /// Returns the same point as an [`Instant`]. Not for [`NEVER`](Self::NEVER).
    pub fn instant(self) -> Instant {
        let (here, there) = (now(), Instant::now());
        let passed = Duration::from_nanos(here.saturating_sub(self.0));
        let left = Duration::from_nanos(self.0.saturating_sub(here));
        there.checked_sub(passed).unwrap_or(there) + left
    }

    /// Returns whether a wait for this ends only for other reasons.
    #[inline]
    pub fn is_never(self) -> bool {
        self == Deadline::NEVER
    }

    /// Returns whether this is no longer in the future.
    #[inline]
    pub fn has_passed(self) -> bool {
        self == Deadline::PASSED || !self.is_never() && now() >= self.0
    }

    /// Returns the nanoseconds from now until then.
    pub fn left(self) -> u64 {
        self.0.saturating_sub(now())
    }

    /// Returns the time as the kernel's calls with an absolute time of `CLOCK_MONOTONIC` take it,
    /// or `None` for [`NEVER`](Self::NEVER).
    pub(crate) fn timespec(self) -> Option<libc::timespec> {
        (!self.is_never()).then(|| timespec(self.0))
    }
}

/// Returns the time of `CLOCK_MONOTONIC`.
#[inline]
pub fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// The time of the last [`tick`], in units of 2^20 ns.
static TICKED: AtomicU64 = AtomicU64::new(0);

/// Notes the time for [`coarse`]. The monitor calls this at each of its ticks.
pub fn tick() {
    TICKED.store(now() >> 20, Relaxed); // Relaxed: no other data.
}

/// Returns the time in units of 2^20 ns, about a millisecond, as the monitor last read it: 10 units
/// late at most while a carrier is idle, and one while none is. One load, where reading the clock
/// takes 50 instructions.
#[inline(always)]
pub(crate) fn coarse() -> u64 {
    TICKED.load(Relaxed) // Relaxed: no other data.
}

/// Returns the time of a clock (through the vDSO where it has the clock).
pub fn clock(id: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `ts` is writable; libc's function never blocks.
    unsafe { libcs_clock(id, &mut ts) };
    nanos(&ts)
}

/// libc's own `clock_gettime`, behind our definition.
///
/// # Safety
/// As for libc's function.
pub unsafe fn libcs_clock(id: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    // Relaxed: addresses of code, each of which gives the same answers.
    let function = LIBCS_CLOCK.load(Relaxed);
    // SAFETY: a function of this type; the caller's contract.
    unsafe { transmute::<*mut c_void, ReadClock>(function)(id, time) }
}

type ReadClock = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;

/// The address of libc's `clock_gettime`; at first of a function that looks that up. So those who
/// call it, with every reading of a clock, need not ask whether it is known.
pub static LIBCS_CLOCK: AtomicPtr<c_void> = AtomicPtr::new(look_up as *mut c_void);

/// Looks up libc's function, and calls it.
unsafe extern "C" fn look_up(id: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    // An allocator that is called by `dlsym` may read a clock.
    LIBCS_CLOCK.store(by_system_call as *mut c_void, Relaxed); // Relaxed: either function is right.
    // SAFETY: a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"clock_gettime".as_ptr()) };
    if !found.is_null() {
        LIBCS_CLOCK.store(found, Relaxed);
    }
    // SAFETY: the caller's contract.
    unsafe { libcs_clock(id, time) }
}

/// Reads a clock without libc.
unsafe extern "C" fn by_system_call(id: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    let arguments = [id as usize, time.addr(), 0, 0, 0, 0];
    // SAFETY: the caller's contract.
    match unsafe { arch::syscall(libc::SYS_clock_gettime, arguments) } {
        0 => 0,
        error => {
            // SAFETY: the running thread's.
            unsafe { *libc::__errno_location() = -error as c_int };
            -1
        }
    }
}

/// Returns a timespec in nanoseconds, saturating; negative values count as zero.
pub fn nanos(ts: &libc::timespec) -> u64 {
    if ts.tv_sec < 0 {
        return 0;
    }
    (ts.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(ts.tv_nsec.max(0) as u64)
}

/// Returns nanoseconds as a timespec.
pub fn timespec(nanos: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (nanos / 1_000_000_000).min(i64::MAX as u64) as i64,
        tv_nsec: (nanos % 1_000_000_000) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_of_centuries_is_none() {
        assert!(Deadline::after(Duration::MAX).is_never());
        assert!(Deadline::after_nanos(u64::MAX).is_never());
        assert!(Deadline::after_timeout(None).is_never());
        assert!(!Deadline::after(Duration::from_secs(3600)).is_never());
    }

    #[test]
    fn what_has_passed_is_not_in_the_future() {
        assert!(Deadline::PASSED.has_passed());
        assert!(Deadline::after(Duration::ZERO).has_passed());
        assert!(Deadline::at(Instant::now()).has_passed());
        assert!(Deadline::from_nanos(now()).has_passed());
        assert!(!Deadline::after(Duration::from_secs(3600)).has_passed());
        assert!(!Deadline::NEVER.has_passed());
    }

    #[test]
    fn earlier_is_less() {
        let soon = Deadline::after(Duration::from_secs(1));
        assert_eq!(Deadline::NEVER.min(soon), soon);
        assert!(Deadline::PASSED < soon && soon < Deadline::NEVER);
        assert!(soon.left() <= 1_000_000_000 && Deadline::PASSED.left() == 0);
    }

    #[test]
    fn the_kernel_gets_no_time_for_never() {
        assert!(Deadline::NEVER.timespec().is_none());
        let time = Deadline::from_nanos(1_500_000_000).timespec().unwrap();
        assert_eq!((time.tv_sec, time.tv_nsec), (1, 500_000_000));
    }

    #[test]
    fn an_instant_is_the_same_point() {
        let later = Instant::now() + Duration::from_secs(60);
        let again = Deadline::at(later).instant();
        assert!(again.max(later) - again.min(later) < Duration::from_secs(1));
        let passed = Deadline::from_nanos(now() - 5_000_000_000).instant();
        assert!(passed < Instant::now() - Duration::from_secs(4));
    }
}

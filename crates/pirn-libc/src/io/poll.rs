//! `poll.h`, `sys/epoll.h`: waiting for many descriptors, as foreign event loops do.
//!
//! A virtual thread asks the kernel without waiting. If nothing is ready it becomes an observer of
//! all the descriptors, and asks again when one of them has an event.

use crate::io::rw::{read, write};
use crate::registry::interposed;
use crate::signals::masks;
use crate::{cancel, virtual_thread};
use core::ffi::c_int;
use core::ptr;
use libc::{epoll_event, nfds_t, pollfd, sigset_t, timespec};
use pirn_rt::blocking::fds::readiness::{self, FdWaiter};
use pirn_rt::blocking::wait::{Outcome, Wait};
use pirn_rt::blocking::{self, fds};
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread;
use pirn_rt::vthread::awaited::{Awaited, Kind};
use pirn_rt::vthread::summons::{self, Ran};
use pirn_rt::vthread::wait_word::Hearing;

interposed! {
    family "Waiting for descriptors" for Scaling;

    Parks by hand { poll, ppoll, epoll_wait, epoll_pwait, epoll_pwait2 }
    Parks as {
        fn __poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int
            = poll(fds, count, timeout);
        fn eventfd_read(fd: c_int, value: *mut u64) -> c_int
            = if read(fd, value.cast(), size_of::<u64>()) == 8 { 0 } else { -1 };
        fn eventfd_write(fd: c_int, value: u64) -> c_int
            = if write(fd, (&raw const value).cast(), size_of::<u64>()) == 8 { 0 } else { -1 };
    }
    Kernel by hand { epoll_create, epoll_create1, eventfd, timerfd_create }
}

const READ: i16 =
    libc::POLLIN | libc::POLLPRI | libc::POLLRDNORM | libc::POLLRDBAND | libc::POLLRDHUP;
const WRITE: i16 = libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND;

/// The pause between questions when no event may come.
const BLIND_NAP_NS: u64 = 10_000_000;

/// Repeats `ask`, which does not wait, until it reports something or the deadline has passed; in
/// between parks until one of the descriptors has an event. `watched` lists the descriptors, each
/// with whether to watch for reading and for writing. An interrupt is an error; a wait that hears
/// each interrupt once fails with `EINTR`.
pub(crate) fn wait_for_any(
    watched: &[(c_int, bool, bool)],
    deadline: Deadline,
    hearing: Hearing,
    mut ask: impl FnMut() -> SysResult,
) -> SysResult {
    loop {
        let before = Before::now(watched);
        let result = ask()?;
        if result > 0 || deadline.has_passed() {
            return Ok(result);
        }
        let until = match before.blind {
            true => deadline.min(Deadline::after_nanos(BLIND_NAP_NS)),
            false => deadline,
        };
        match before.park_until_event(watched, until, hearing) {
            Outcome::Interrupted => {
                return Err(match hearing {
                    Hearing::Always => blocking::INTERRUPTED,
                    _ => Errno(libc::EINTR),
                });
            }
            // Whatever SA_RESTART says.
            Outcome::Summoned if summons::attend() != Ran::Nothing || awaits_a_signal() => {
                return Err(Errno(libc::EINTR));
            }
            _ => {}
        }
    }
}

/// Returns whether a signal is pending that the call lets through.
fn awaits_a_signal() -> bool {
    vthread::current().is_some_and(|thread| thread.signals.any_awaited())
}

/// The state of the watched descriptors before the kernel is asked about them.
struct Before {
    entries: Vec<Option<&'static fds::Entry>>,
    /// The number of events that each descriptor has had.
    counts: Vec<[u32; 2]>,
    /// Whether a descriptor could not be registered (too many watches, no memory). Its events will
    /// not be reported, so the kernel must be asked again soon.
    blind: bool,
}

impl Before {
    /// Registers all descriptors, and reads their event counts.
    fn now(watched: &[(c_int, bool, bool)]) -> Before {
        let entries: Vec<_> = watched.iter().map(|&(fd, ..)| fds::entry(fd)).collect();
        // A descriptor that cannot be polled is always ready, or not open: the kernel reports both.
        let blind = watched.iter().zip(&entries).any(|(&(fd, ..), entry)| {
            let registered = entry.map(|e| e.register(fd));
            !matches!(
                registered,
                Some(Ok(_) | Err(Errno(libc::EPERM | libc::EBADF)))
            )
        });
        let counts = entries.iter();
        let counts = counts
            .map(|e| e.map_or([0; 2], |e| e.readiness.counts()))
            .collect();
        Before {
            entries,
            counts,
            blind,
        }
    }

    /// Returns what to say about the wait.
    fn awaited(&self, watched: &[(c_int, bool, bool)]) -> Awaited {
        let awaited = match *watched {
            [(fd, true, false)] => Awaited::descriptor(Kind::Read, fd),
            [(fd, false, true)] => Awaited::descriptor(Kind::Write, fd),
            [] => Awaited::new(Kind::Sleep, 0),
            _ => Awaited::new(Kind::Poll, watched.len() as u64),
        };
        match self.blind {
            true => awaited.looking(),
            false => awaited,
        }
    }

    /// Parks until one of the descriptors has had an event since [`now`](Self::now).
    fn park_until_event(
        &self,
        watched: &[(c_int, bool, bool)],
        until: Deadline,
        hearing: Hearing,
    ) -> Outcome {
        // Allocate first: the allocator may take a lock, which is another wait.
        let mut waiters = Vec::with_capacity(watched.len());
        let wait = match Wait::interruptible(self.awaited(watched), hearing) {
            Ok(wait) => wait,
            Err(refused) => return refused,
        };
        let observer = |&(_, read, write): &_| FdWaiter::observer(&wait, read, write);
        waiters.extend(watched.iter().map(observer));
        let mut changed = false;
        for ((entry, waiter), &counts) in self.entries.iter().zip(&waiters).zip(&self.counts) {
            // SAFETY: the vector and the wait stay until `stop_observing` below.
            changed |= entry.is_some_and(|e| !unsafe { readiness::observe(e, waiter, counts) });
        }
        // With an event already there, either this claim wins or that event's; `block` collects its
        // wake.
        if changed && let Some(wakeup) = wait.claim(Outcome::Ready) {
            wakeup.perform();
        }
        let outcome = wait.block_until(until);
        for (entry, waiter) in self.entries.iter().zip(&waiters) {
            if let Some(entry) = entry {
                // SAFETY: each observes one descriptor.
                unsafe { entry.readiness.stop_observing(waiter) };
            }
        }
        outcome
    }
}

unsafe fn poll_virtually(fds: *mut pollfd, count: nfds_t, timeout: Option<u64>) -> SysResult {
    // SAFETY: the caller's contract.
    let first = unsafe { sys::poll_now(fds, count)? };
    if first > 0 || timeout == Some(0) {
        return Ok(first);
    }
    let deadline = Deadline::after_timeout(timeout);
    let watched: Vec<_> = if count == 0 {
        Vec::new()
    } else {
        // SAFETY: the kernel has just accepted them.
        let all = unsafe { core::slice::from_raw_parts(fds, count as usize) };
        let wanted = |p: &pollfd| {
            (
                p.fd,
                p.events & READ != 0 || p.events & WRITE == 0,
                p.events & WRITE != 0,
            )
        };
        all.iter().filter(|p| p.fd >= 0).map(wanted).collect()
    };
    // SAFETY: the caller's contract.
    wait_for_any(&watched, deadline, Hearing::Always, || unsafe {
        sys::poll_now(fds, count)
    })
}

/// Returns C's timeout in milliseconds; `None` for a negative one, which means no timeout.
fn milliseconds(timeout: c_int) -> Option<u64> {
    u64::try_from(timeout).ok().map(|t| t * 1_000_000)
}

/// `poll`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    let ours = move || {
        // SAFETY: the caller's contract.
        sys::to_c(unsafe {
            if virtual_thread().is_none() {
                call!(libc::SYS_poll, fds, count, timeout as isize)
            } else {
                poll_virtually(fds, count, milliseconds(timeout))
            }
        }) as c_int
    };
    // SAFETY: the caller's contract; nothing to drop.
    unsafe {
        let libcs = move || real!(unwinding fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int);
        cancel::point(libcs, ours)
    }
}

/// Parks the running virtual thread until a descriptor is readable.
pub(super) fn wait_until_readable(fd: c_int) {
    let mut entry = pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry.
    let _ = unsafe { poll_virtually(&mut entry, 1, None) };
}

/// Size of the kernel's signal set, in bytes.
const SIGSET: usize = 8;

unsafe fn ppoll_any(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> SysResult {
    // SAFETY: the caller's contract. The kernel writes the time left into its timeout: libc hides
    // that.
    unsafe {
        if let Some(thread) = virtual_thread() {
            let timeout = sys::fetch_timeout(timeout)?;
            let wait = |timeout| poll_virtually(fds, count, timeout);
            return masks::waiting(thread, mask, timeout, wait);
        }
        let mut copy = timeout.as_ref().copied();
        let timeout = copy.as_mut().map_or(core::ptr::null_mut(), |t| t as *mut _);
        call!(libc::SYS_ppoll, fds, count, timeout, mask, SIGSET)
    }
}

/// `ppoll`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let ours = move || {
        // SAFETY: the caller's contract.
        sys::to_c(unsafe { ppoll_any(fds, count, timeout, mask) }) as c_int
    };
    // SAFETY: the caller's contract; nothing to drop.
    unsafe {
        let libcs = move || {
            real!(
                unwinding fn ppoll(
                    fds: *mut pollfd, count: nfds_t, timeout: *const timespec,
                    mask: *const sigset_t
                ) -> c_int
            )
        };
        cancel::point(libcs, ours)
    }
}

/// A timeout as given; the program's own pointer is kept for calls left to the kernel.
type Timeout = Result<Option<u64>, *const timespec>;

unsafe fn epoll_any(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: Timeout,
    mask: *const sigset_t,
) -> SysResult {
    // SAFETY: the caller's contract.
    let ask = |timeout: *const timespec| unsafe {
        blocking::fds::epoll::wait_with_mask(epoll, events, max as usize, timeout, mask)
    };
    let none = sys::timespec(0);
    let Some(thread) = virtual_thread() else {
        let time = timeout.map(|nanos| nanos.map(sys::timespec));
        return ask(match &time {
            Ok(Some(time)) => time,
            Ok(None) => core::ptr::null(),
            Err(address) => *address,
        });
    };
    let timeout = match timeout {
        Ok(nanos) => nanos,
        Err(address) => sys::fetch_timeout(address)?,
    };
    let wait = |timeout| {
        // SAFETY: the caller's contract.
        let ask = || unsafe {
            blocking::fds::epoll::wait_with_mask(epoll, events, max as usize, &none, ptr::null())
        };
        let first = ask()?;
        if first > 0 || timeout == Some(0) {
            return Ok(first);
        }
        // An epoll descriptor is itself readable when it has events. An event loop would not expect
        // an error of another kind than `EINTR`, and has its own ways to end.
        let deadline = Deadline::after_timeout(timeout);
        wait_for_any(&[(epoll, true, false)], deadline, Hearing::Sleep, ask)
    };
    masks::waiting(thread, mask, timeout, wait)
}

/// `epoll_wait`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { epoll_pwait(epoll, events, max, timeout, core::ptr::null()) }
}

/// `epoll_pwait`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    let ours = move || {
        // SAFETY: the caller's contract.
        sys::to_c(unsafe { epoll_any(epoll, events, max, Ok(milliseconds(timeout)), mask) })
            as c_int
    };
    // SAFETY: the caller's contract; nothing to drop.
    unsafe {
        let libcs = move || {
            real!(
                unwinding fn epoll_pwait(
                    epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int,
                    mask: *const sigset_t
                ) -> c_int
            )
        };
        cancel::point(libcs, ours)
    }
}

/// `epoll_pwait2`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_pwait2(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's contract.
    sys::to_c(unsafe { epoll_any(epoll, events, max, Err(timeout), mask) }) as c_int
}

/// `epoll_create1`: only noted.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: no pointers.
    noted(unsafe { call!(libc::SYS_epoll_create1, flags) })
}

/// `epoll_create`: only noted.
#[unsafe(no_mangle)]
pub extern "C" fn epoll_create(size: c_int) -> c_int {
    // SAFETY: no pointers.
    noted(unsafe { call!(libc::SYS_epoll_create, size) })
}

/// `eventfd`: only noted.
#[unsafe(no_mangle)]
pub extern "C" fn eventfd(value: u32, flags: c_int) -> c_int {
    // SAFETY: no pointers.
    noted(unsafe { call!(libc::SYS_eventfd2, value, flags) })
}

/// `timerfd_create`: only noted.
#[unsafe(no_mangle)]
pub extern "C" fn timerfd_create(clock: c_int, flags: c_int) -> c_int {
    // SAFETY: no pointers.
    noted(unsafe { call!(libc::SYS_timerfd_create, clock, flags) })
}

fn noted(result: SysResult) -> c_int {
    if let Ok(fd) = result {
        fds::created(fd as c_int);
    }
    sys::to_c(result) as c_int
}

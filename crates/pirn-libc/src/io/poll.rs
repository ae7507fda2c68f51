//! `poll.h`, `sys/epoll.h`: waiting for many descriptors, as foreign event loops do.
//!
//! A virtual thread asks the kernel without waiting. If nothing is ready it becomes an observer of
//! all the descriptors, and asks again when one of them has an event.

use crate::forward::{checked, created};
use crate::io::rw::{read, write};
use crate::registry::interposed;
use crate::signals::masks;
use crate::{reserved, simulated, virtual_thread};
use core::ffi::c_int;
use core::ptr;
use libc::{epoll_event, nfds_t, pollfd, sigset_t, size_t, timespec};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::fds::readiness::{self, FdWaiter, Interest};
use pirn_rt::blocking::wait::{Outcome, Wait};
use pirn_rt::blocking::{self, fds};
use pirn_rt::sched::safepoint::{self, Ran};
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread;
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use pirn_rt::vthread::wait_word::Interruptible;

interposed! {
    family "Waiting for descriptors" for Scaling;

    Parks by hand { poll, ppoll, epoll_pwait }
    Parks alias { __poll = poll }
    Parks as {
        fn __poll_chk(fds: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int
            = checked(count as usize, room / POLLFD, || poll(fds, count, timeout));
        fn __ppoll_chk(
            fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t,
            room: size_t,
        ) -> c_int
            = checked(count as usize, room / POLLFD, || ppoll(fds, count, timeout, mask));
        fn eventfd_read(fd: c_int, value: *mut u64) -> c_int
            = if read(fd, value.cast(), size_of::<u64>()) == 8 { 0 } else { -1 };
        fn eventfd_write(fd: c_int, value: u64) -> c_int
            = if write(fd, (&raw const value).cast(), size_of::<u64>()) == 8 { 0 } else { -1 };
    }
    Parks as {
        fn epoll_wait(epoll: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int
            = epoll_pwait(epoll, events, max, timeout, ptr::null());
        fn epoll_pwait2(
            epoll: c_int, events: *mut epoll_event, max: c_int, timeout: *const timespec,
            mask: *const sigset_t,
        ) -> c_int = sys::to_c(epoll_any(epoll, events, max, Err(timeout), mask)) as c_int;
    }
    Kernel as {
        /// The kernel has ignored the size since Linux 2.6.8, but for its sign.
        fn epoll_create(size: c_int) -> c_int = created(match size {
            1.. => call!(libc::SYS_epoll_create1, 0),
            _ => Err(Errno(libc::EINVAL)),
        });
        fn epoll_create1(flags: c_int) -> c_int = created(call!(libc::SYS_epoll_create1, flags));
        fn eventfd(value: u32, flags: c_int) -> c_int
            = created(call!(libc::SYS_eventfd2, value, flags));
        fn timerfd_create(clock: c_int, flags: c_int) -> c_int
            = created(simulated::call(libc::SYS_timerfd_create, [clock as usize, flags as usize])
                .unwrap_or_else(|| call!(libc::SYS_timerfd_create, clock, flags)));
    }
}

const POLLFD: usize = size_of::<pollfd>();

const READ: i16 =
    libc::POLLIN | libc::POLLPRI | libc::POLLRDNORM | libc::POLLRDBAND | libc::POLLRDHUP;
const WRITE: i16 = libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND;

/// The pause between questions when no event may come.
const BLIND_NAP_NS: u64 = 10_000_000;

/// Repeats `ask`, which does not wait, until it reports something or the deadline has passed; in
/// between parks until one of the descriptors has an event. An interrupt is an error; a wait that
/// each interrupt ends once fails with `EINTR`.
pub(crate) fn wait_for_any(
    mut watched: Vec<Watched>,
    deadline: Deadline,
    interruptible: Interruptible,
    mut ask: impl FnMut() -> SysResult,
) -> SysResult {
    loop {
        let seen = watched.iter_mut().map(Watched::look);
        let blind = !seen.fold(true, |all, this| all & this);
        let result = ask()?;
        if result > 0 || deadline.has_passed() {
            return Ok(result);
        }
        let reason = reason(&watched);
        let (reason, until) = match blind {
            true => (
                reason.looking(),
                deadline.min(Deadline::after_nanos(BLIND_NAP_NS)),
            ),
            false => (reason, deadline),
        };
        match park_until_event(&watched, reason, until, interruptible)? {
            Outcome::Interrupted => {
                return Err(match interruptible {
                    Interruptible::Always => blocking::INTERRUPTED,
                    _ => Errno(libc::EINTR),
                });
            }
            // Also after a handler with `SA_RESTART`.
            Outcome::SafePoint if safepoint::run_pending() != Ran::Nothing || awaits_a_signal() => {
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

/// A descriptor that a thread watches.
pub(crate) struct Watched {
    fd: c_int,
    /// Whether for reading, and whether for writing.
    read: bool,
    write: bool,
    entry: Option<&'static fds::Entry>,
    /// The number of events that it had before the kernel was asked about it.
    counts: [u32; 2],
}

impl Watched {
    pub(crate) fn new(fd: c_int, read: bool, write: bool) -> Watched {
        Watched {
            fd,
            read,
            write,
            entry: fds::entry(fd),
            counts: [0; 2],
        }
    }

    /// Registers the descriptor, and reads its event counts. Returns `false` if it could not be
    /// registered (too many watches, no memory). Its events will not be reported, so the kernel
    /// must be asked again soon.
    fn look(&mut self) -> bool {
        let Some(entry) = self.entry else {
            return false;
        };
        let registered = entry.register(self.fd);
        self.counts = entry.readiness.counts();
        // One that cannot be polled is always ready, or not open: the kernel reports both.
        matches!(registered, Ok(_) | Err(Errno(libc::EPERM | libc::EBADF)))
    }
}

/// Returns what dumps show of a wait.
fn reason(watched: &[Watched]) -> WaitReason {
    match watched {
        &[
            Watched {
                fd, read, write, ..
            },
        ] if read != write => match read {
            true => readiness::wait_for(fd, Interest::Read),
            false => readiness::wait_for(fd, Interest::Write),
        },
        [] => WaitReason::new(Kind::Sleep, 0),
        _ => WaitReason::new(Kind::Poll, watched.len() as u64),
    }
}

/// Parks until one of the descriptors has had an event since the [look](Watched::look) at it.
fn park_until_event(
    watched: &[Watched],
    reason: WaitReason,
    until: Deadline,
    interruptible: Interruptible,
) -> Result<Outcome, Errno> {
    // Allocate first: the allocator may take a lock, which is another wait.
    let mut waiters = reserved(watched.len())?;
    let wait = match Wait::interruptible(reason, interruptible) {
        Ok(wait) => wait,
        Err(refused) => return Ok(refused),
    };
    waiters.extend(
        watched
            .iter()
            .map(|it| FdWaiter::observer(&wait, it.read, it.write)),
    );
    let entries = || {
        watched
            .iter()
            .zip(&waiters)
            .filter_map(|(it, waiter)| Some((it.entry?, it.counts, waiter)))
    };
    let mut changed = false;
    for (entry, counts, waiter) in entries() {
        // SAFETY: the vector and the wait stay until `stop_observing` below.
        changed |= !unsafe { readiness::observe(entry, waiter, counts) };
    }
    // With an event already there, either this claim wins or that event's; `block` collects its
    // wake.
    if changed && let Some(wakeup) = wait.claim(Outcome::Ready) {
        wakeup.perform();
    }
    let outcome = wait.block_until(until);
    for (entry, _, waiter) in entries() {
        // SAFETY: each observes one descriptor.
        unsafe { entry.readiness.stop_observing(waiter) };
    }
    Ok(outcome)
}

unsafe fn poll_virtually(fds: *mut pollfd, count: nfds_t, timeout: Option<u64>) -> SysResult {
    // SAFETY: the caller's contract.
    let first = unsafe { sys::poll_now(fds, count)? };
    if first > 0 || timeout == Some(0) {
        return Ok(first);
    }
    let deadline = Deadline::after_timeout(timeout);
    let mut watched = reserved(count as usize)?;
    if count > 0 {
        // SAFETY: the kernel has just accepted them.
        let all = unsafe { core::slice::from_raw_parts(fds, count as usize) };
        let wanted = |p: &pollfd| {
            let write = p.events & WRITE != 0;
            Watched::new(p.fd, p.events & READ != 0 || !write, write)
        };
        watched.extend(all.iter().filter(|p| p.fd >= 0).map(wanted));
    }
    // SAFETY: the caller's contract.
    wait_for_any(watched, deadline, Interruptible::Always, || unsafe {
        sys::poll_now(fds, count)
    })
}

/// Returns C's timeout in milliseconds; `None` for a negative one, which means no timeout.
fn milliseconds(timeout: c_int) -> Option<u64> {
    u64::try_from(timeout).ok().map(|t| t * 1_000_000)
}

#[libc_fn(point)]
pub unsafe fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    sys::to_c(if virtual_thread().is_none() {
        let time = milliseconds(timeout).map(sys::timespec);
        let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
        call!(libc::SYS_ppoll, fds, count, time, 0, 0)
    } else {
        poll_virtually(fds, count, milliseconds(timeout))
    }) as c_int
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

#[libc_fn(point)]
pub unsafe fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    sys::to_c(ppoll_any(fds, count, timeout, mask)) as c_int
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
        pirn_rt::reactor::epoll::wait_with_mask(epoll, events, max as usize, timeout, mask)
    };
    let none = sys::timespec(0);
    // Checked here: the kernel may have no `epoll_pwait2`.
    let timeout = match timeout {
        Ok(nanos) => nanos,
        Err(address) => sys::fetch_timeout(address)?,
    };
    let Some(thread) = virtual_thread() else {
        let time = timeout.map(sys::timespec);
        return ask(time.as_ref().map_or(ptr::null(), ptr::from_ref));
    };
    let wait = |timeout| {
        // SAFETY: the caller's contract.
        let ask = || unsafe {
            pirn_rt::reactor::epoll::wait_with_mask(epoll, events, max as usize, &none, ptr::null())
        };
        let first = ask()?;
        if first > 0 || timeout == Some(0) {
            return Ok(first);
        }
        // An epoll descriptor is itself readable when it has events. An event loop would not expect
        // an error of another kind than `EINTR`, and has its own ways to end.
        let deadline = Deadline::after_timeout(timeout);
        let watched = vec![Watched::new(epoll, true, false)];
        wait_for_any(watched, deadline, Interruptible::OnceInSleep, ask)
    };
    masks::waiting(thread, mask, timeout, wait)
}

#[libc_fn(point)]
pub unsafe fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    sys::to_c(epoll_any(
        epoll,
        events,
        max,
        Ok(milliseconds(timeout)),
        mask,
    )) as c_int
}

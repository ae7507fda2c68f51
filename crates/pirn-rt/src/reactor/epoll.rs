//! epoll: one instance, edge-triggered; every descriptor is registered once, for all events.
//!
//! All idle carriers wait in the same instance; the kernel wakes one of them per event. An eventfd
//! among the descriptors wakes a carrier for other reasons ([`Poller::kick`]). It is edge-triggered
//! as well, so every write to it is an event, and a carrier that waits in epoll need not read it.

use crate::sanitizer::valgrind;
use crate::sys::{self, Errno, SysResult, call};
use crate::time::Deadline;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

const EVENTS: u32 =
    (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLPRI | libc::EPOLLET) as u32;
const READABLE: u32 =
    (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLPRI | libc::EPOLLHUP | libc::EPOLLERR) as u32;
const WRITABLE: u32 = (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) as u32;
const LASTING: u32 = READABLE & !(libc::EPOLLIN as u32);
/// `data` of the eventfd: no descriptor has this number.
const KICK: u64 = u64::MAX;
/// The number of events fetched at once.
const BATCH: usize = 256;

/// The epoll instance of a runtime, and its eventfd. They are never closed.
pub struct Poller {
    epoll: i32,
    eventfd: i32,
}

impl Poller {
    /// Makes the epoll instance and the eventfd.
    ///
    /// # Errors
    /// Returns a text that says which call failed, and what to do about it.
    pub(crate) fn new() -> Result<Poller, String> {
        // SAFETY: no pointers.
        let epoll = made("epoll_create1", unsafe {
            call!(libc::SYS_epoll_create1, libc::EPOLL_CLOEXEC)
        })?;
        const FLAGS: i32 = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
        // SAFETY: no pointers.
        let eventfd = made("eventfd2", unsafe { call!(libc::SYS_eventfd2, 0, FLAGS) })?;
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLET) as u32,
            u64: KICK,
        };
        // SAFETY: the event is valid for the call.
        made("epoll_ctl", unsafe {
            let operation = libc::EPOLL_CTL_ADD;
            call!(
                libc::SYS_epoll_ctl,
                epoll,
                operation,
                eventfd,
                &raw mut event
            )
        })?;
        let mut events = buffer();
        made("epoll_pwait", wait(epoll, &mut events, Deadline::PASSED))?;
        Ok(Poller { epoll, eventfd })
    }

    /// Registers a descriptor. `EEXIST`: this open file is already registered under this number.
    pub(crate) fn register(&self, fd: i32, generation: u32) -> SysResult {
        self.control(libc::EPOLL_CTL_ADD, fd, generation)
    }

    /// Registers a descriptor. If this open file is already registered under this number, and the
    /// caller `renews` it, its events are from now on events of this generation, beginning with its
    /// state.
    pub(crate) fn register_or_renew(&self, fd: i32, generation: u32, renews: bool) -> SysResult {
        loop {
            let result = match self.register(fd, generation) {
                Err(Errno(libc::EEXIST)) if !renews => return Ok(0),
                Err(Errno(libc::EEXIST)) => self.control(libc::EPOLL_CTL_MOD, fd, generation),
                result => return result,
            };
            // Another thread has put another file there in between.
            if result != Err(Errno(libc::ENOENT)) {
                return result;
            }
        }
    }

    fn control(&self, operation: i32, fd: i32, generation: u32) -> SysResult {
        let mut event = libc::epoll_event {
            events: EVENTS,
            u64: u64::from(generation) << 32 | fd as u32 as u64,
        };
        // SAFETY: the event is valid for the call.
        unsafe {
            call!(
                libc::SYS_epoll_ctl,
                self.epoll,
                operation,
                fd,
                &raw mut event
            )
        }
    }

    /// Closes the poller's own descriptors, in the child of a fork: the parent keeps its own.
    pub(crate) fn close_in_child(&self) {
        for fd in self.descriptors() {
            // SAFETY: no pointers; no thread of this process will use the poller again.
            let _ = unsafe { call!(libc::SYS_close, fd) };
        }
    }

    /// Returns the poller's own two descriptors.
    pub fn descriptors(&self) -> [i32; 2] {
        [self.epoll, self.eventfd]
    }

    /// Stops reports about a descriptor. Closing it is not enough: epoll watches the open file,
    /// which may live on in a duplicate or a child.
    pub(crate) fn forget(&self, fd: i32) {
        // SAFETY: no pointers. Failing is fine: it was not registered.
        let _ = unsafe { call!(libc::SYS_epoll_ctl, self.epoll, libc::EPOLL_CTL_DEL, fd, 0) };
    }

    /// Fetches events into `buffer`; waits for the first until `deadline`.
    pub(crate) fn fetch<'a>(&self, buffer: &'a mut Buffer, deadline: Deadline) -> Fetched<'a> {
        let len = match wait(self.epoll, buffer, deadline) {
            Ok(count) => count,
            Err(Errno(libc::EINTR)) => 0,
            Err(e) => lost(e),
        };
        // SAFETY: the kernel has written as many as it says.
        Fetched(unsafe { core::slice::from_raw_parts(buffer.as_ptr().cast(), len) })
    }

    /// Returns whether there are events to fetch. Fetches none.
    pub(crate) fn pending(&self) -> bool {
        sys::events_now(self.epoll, libc::POLLIN) != 0
    }

    /// Sleeps until the deadline or, if asked to, until there are [pending](Self::pending) events.
    /// Returns whether there are. May return early.
    pub(crate) fn wait_until(&self, deadline: Deadline, for_events: bool) -> bool {
        sys::poll_until(if for_events { self.epoll } else { -1 }, deadline)
    }

    /// Waits until there is an untaken [kick](Self::kick) ([`take_kicks`](Self::take_kicks)), or
    /// until the deadline. Returns whether there is one. May return early.
    pub(crate) fn wait_for_kick(&self, deadline: Deadline) -> bool {
        sys::poll_until(self.eventfd, deadline)
    }

    /// Takes the kicks there are. Returns whether there were any since the last call; some may have
    /// ended a [`fetch`](Self::fetch) as well.
    pub(crate) fn take_kicks(&self) -> bool {
        let mut count = 0u64;
        // SAFETY: eight bytes, as eventfd demands.
        unsafe { call!(libc::SYS_read, self.eventfd, &raw mut count, 8) }.is_ok()
    }

    /// Ends one [`fetch`](Self::fetch) that waits now or later.
    pub(crate) fn kick(&self) {
        let one = 1u64;
        // SAFETY: eight bytes, as eventfd demands.
        match unsafe { call!(libc::SYS_write, self.eventfd, &raw const one, 8) } {
            Ok(_) | Err(Errno(libc::EAGAIN)) => {} // `EAGAIN`: there are kicks enough.
            Err(error) => lost(error),
        }
    }
}

/// Returns the descriptor that a call of the start has made, or the reason why it failed.
fn made(call: &str, result: SysResult) -> Result<i32, String> {
    let hint = |error| match error {
        Errno(libc::EMFILE | libc::ENFILE) => " (is ulimit -n too low?)",
        Errno(libc::EPERM | libc::EACCES | libc::ENOSYS) => " (does a seccomp profile forbid it?)",
        _ => "",
    };
    result
        .map(|fd| fd as i32)
        .map_err(|e| format!("the system call {call} failed: {e}{}", hint(e)))
}

/// Room for events. It is large, so it is neither initialised nor moved.
pub(crate) type Buffer = [MaybeUninit<libc::epoll_event>; BATCH];

/// Returns a buffer for [`Poller::fetch`].
#[inline(always)]
pub(crate) const fn buffer() -> Buffer {
    [const { MaybeUninit::uninit() }; BATCH]
}

/// Events that have been fetched from the kernel.
pub(crate) struct Fetched<'a>(&'a [libc::epoll_event]);

/// An event of a descriptor, in the generation in which it was registered.
pub(crate) struct Report {
    pub(crate) fd: i32,
    pub(crate) generation: u32,
    /// The descriptor may be readable.
    pub(crate) read: bool,
    /// The descriptor may be writable.
    pub(crate) write: bool,
    /// The descriptor has something to read that a short read may leave behind.
    pub(crate) lasting: bool,
}

/// Ends the process: no event would ever come, and the carriers would fetch for ever.
#[cold]
fn lost(error: Errno) -> ! {
    let text = error.to_string();
    sys::fatal(&[
        "waiting for events failed: ",
        &text,
        " (has the program closed the descriptors of pirn's epoll instance and eventfd, \
         or forbidden epoll_pwait?)",
    ])
}

fn wait(epoll: i32, events: &mut Buffer, deadline: Deadline) -> SysResult {
    let ts = match deadline {
        Deadline::NEVER => None,
        Deadline::PASSED => Some(sys::timespec(0)),
        // At least 1: 0 would mean not to wait at all.
        deadline => Some(sys::timespec(deadline.left().max(1))),
    };
    let ts = ts.as_ref().map_or(core::ptr::null(), |t| t as *const _);
    // SAFETY: the buffer is writable for BATCH events; the timespec is valid or null.
    unsafe {
        wait_with_mask(
            epoll,
            events.as_mut_ptr().cast(),
            BATCH,
            ts,
            core::ptr::null(),
        )
    }
}

/// Calls `epoll_pwait2`, or its closest substitute: Linux before 5.11 does not have it, and older
/// seccomp profiles answer it with `EPERM`.
///
/// # Safety
/// As for `epoll_pwait2(2)`; the timeout is valid or null.
pub unsafe fn wait_with_mask(
    epoll: i32,
    events: *mut libc::epoll_event,
    max: usize,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> SysResult {
    /// Size of the kernel's signal set, in bytes.
    const SIGSET: usize = 8;
    static MILLISECONDS_ONLY: AtomicBool = AtomicBool::new(false);
    // SAFETY: the caller's contract, here and below.
    let precise = || unsafe {
        let number = libc::SYS_epoll_pwait2;
        call!(number, epoll, events, max, timeout, mask, SIGSET)
    };
    let known = valgrind::kernel_has(libc::SYS_epoll_pwait2);
    if known && !MILLISECONDS_ONLY.load(Ordering::Relaxed) {
        match precise() {
            Err(Errno(libc::ENOSYS | libc::EPERM)) => {}
            result => return result,
        }
        MILLISECONDS_ONLY.store(true, Ordering::Relaxed); // Relaxed: no other data.
    }
    // SAFETY: valid or null, by the caller's contract. Rounded up, so that it does not wake early.
    let millis = unsafe { timeout.as_ref() }.map_or(-1, |t| {
        sys::nanos(t).div_ceil(1_000_000).min(i32::MAX as u64) as isize
    });
    // SAFETY: valid or null, by the caller's contract.
    unsafe {
        let number = libc::SYS_epoll_pwait;
        call!(number, epoll, events, max, millis, mask, SIGSET)
    }
}

impl Fetched<'_> {
    /// Calls `report` with each event of a descriptor. Returns whether there was a kick.
    pub(crate) fn for_each(&self, mut report: impl FnMut(Report)) -> bool {
        let mut kicked = false;
        for event in self.0 {
            let (data, bits) = (event.u64, event.events);
            if data == KICK {
                kicked = true;
                continue;
            }
            report(Report {
                fd: data as u32 as i32,
                generation: (data >> 32) as u32,
                read: bits & READABLE != 0,
                write: bits & WRITABLE != 0,
                lasting: bits & LASTING != 0,
            });
        }
        kicked
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

//! Creating, joining, detaching, exiting and cancelling threads.

use crate::cancel::{self, Number};
use crate::forward::on_carrier;
use crate::identity::{is_virtual, slot_of};
use crate::posix::{self, PosixRoutine, Routine};
use crate::registry::interposed;
use crate::signals::masks;
use crate::sync::deadline;
use crate::virtual_thread;
use core::cell::Cell;
use core::ffi::{CStr, c_int, c_void};
use core::mem;
use core::sync::atomic::{AtomicI32, Ordering};
use libc::{clockid_t, pthread_attr_t, pthread_t, timespec};
use pirn_rt::blocking::fds::readiness::{self, Interest};
use pirn_rt::blocking::{self, fds, pool};
use pirn_rt::glibc::symbols::real;
use pirn_rt::glibc::tls;
use pirn_rt::sanitizer::valgrind;
use pirn_rt::sys::{self, Errno, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread;
use pirn_rt::vthread::awaited::Awaited;
use pirn_rt::vthread::wait_word::Hearing;
use pirn_rt::vthread::{helper, table};

interposed! {
    family "Beginning and end of threads" for Correctness,
        cannot "join, detach or cancel a virtual thread by its `pthread_t`: to C, it is detached";

    Carrier by hand { pthread_create: "makes a platform thread" }
    Parks by hand { pthread_join, pthread_timedjoin_np, pthread_clockjoin_np }
    Own by hand { pthread_tryjoin_np, pthread_detach }
    Refuses by hand {
        pthread_exit: "ends the process: a virtual thread ends by returning",
    }
}

/// The function that a new thread runs.
pub type Start = extern "C" fn(*mut c_void) -> *mut c_void;
/// A function that answers a `pthread_create` in libc's place.
pub type Answer = unsafe fn(Start, *mut c_void) -> c_int;

thread_local! {
    static ANSWER: Cell<Option<Answer>> = const { Cell::new(None) };
}

/// Sets the function that answers the calling thread's next `pthread_create`.
pub fn answer_next_create(answer: Option<Answer>) {
    ANSWER.set(answer);
}

/// `pthread_create`: makes a platform thread, unless `answer_next_create` was called. On a virtual
/// thread it runs as the carrier, from which the new thread inherits.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    if let Some(answer) = ANSWER.take() {
        // SAFETY: the caller's contract.
        return unsafe {
            *thread = 0; // not one of libc's threads
            answer(start, argument)
        };
    }
    // SAFETY: the same type, but that the program's routine may be unwound; the caller's contract.
    let made = unsafe {
        let routine = Routine::Posix(mem::transmute::<Start, PosixRoutine>(start));
        posix::create(thread, attributes, routine, argument)
    };
    if let Some(result) = made {
        return result;
    }
    // SAFETY: the caller's contract.
    unsafe { create_platform(thread, attributes, start, argument) }
}

/// Creates a platform thread.
///
/// # Safety
/// As for `pthread_create`.
pub unsafe fn create_platform(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    // The new thread inherits the kernel's mask: on a carrier, that of the virtual thread for now.
    let _mask = match helper::is_making_helper() {
        true => masks::InKernel::of_helper(),
        false => masks::InKernel::of_this_thread(),
    };
    // SAFETY: the caller's contract.
    on_carrier(|| unsafe {
        real!(
            fn pthread_create(
                thread: *mut pthread_t,
                attributes: *const pthread_attr_t,
                start: Start,
                argument: *mut c_void,
            ) -> c_int
        )
    })
}

/// `pthread_join`. A virtual thread that `pthread_create` has not made cannot be joined by its
/// `pthread_t`: to C, it is detached.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_join(thread: pthread_t, value: *mut *mut c_void) -> c_int {
    if let Some(record) = posix::find(thread) {
        // SAFETY: the caller's contract.
        return unsafe { joining(|| record.join(value, &|| Ok(Deadline::NEVER))) };
    }
    // SAFETY: the caller's contract, here and below.
    let join = || unsafe {
        real!(unwinding fn pthread_join(thread: pthread_t, value: *mut *mut c_void) -> c_int)
    };
    if virtual_thread().is_none() && !is_virtual(thread) {
        return join();
    }
    // SAFETY: as above.
    unsafe { join_after(thread, None, join) }
}

/// `pthread_timedjoin_np`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_timedjoin_np(
    thread: pthread_t,
    value: *mut *mut c_void,
    time: *const timespec,
) -> c_int {
    if let Some(record) = posix::find(thread) {
        // SAFETY: the caller's contract.
        return unsafe { joining(|| record.join(value, &|| until(libc::CLOCK_REALTIME, time))) };
    }
    // SAFETY: the caller's contract, here and below.
    let join = || unsafe {
        real!(
            unwinding fn pthread_timedjoin_np(
                thread: pthread_t, value: *mut *mut c_void, time: *const timespec
            ) -> c_int
        )
    };
    if virtual_thread().is_none() && !is_virtual(thread) {
        return join();
    }
    // SAFETY: as above.
    unsafe {
        join_after(
            thread,
            (!time.is_null()).then_some((libc::CLOCK_REALTIME, time)),
            join,
        )
    }
}

/// `pthread_clockjoin_np`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_clockjoin_np(
    thread: pthread_t,
    value: *mut *mut c_void,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    if let Some(record) = posix::find(thread) {
        // SAFETY: the caller's contract.
        return unsafe { joining(|| record.join(value, &|| until(clock, time))) };
    }
    // SAFETY: the caller's contract, here and below.
    let join = || unsafe {
        real!(
            unwinding fn pthread_clockjoin_np(
                thread: pthread_t,
                value: *mut *mut c_void,
                clock: clockid_t,
                time: *const timespec,
            ) -> c_int
        )
    };
    if virtual_thread().is_none() && !is_virtual(thread) {
        return join();
    }
    // SAFETY: as above.
    unsafe { join_after(thread, (!time.is_null()).then_some((clock, time)), join) }
}

/// `pthread_tryjoin_np`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_tryjoin_np(thread: pthread_t, value: *mut *mut c_void) -> c_int {
    match posix::find(thread) {
        Some(record) if !record.has_ended() => return libc::EBUSY,
        // SAFETY: the caller's contract.
        Some(record) => return unsafe { record.join(value, &|| Ok(Deadline::NEVER)) },
        None if is_virtual(thread) => return not_joinable(thread),
        None => {}
    }
    // SAFETY: the caller's contract.
    unsafe { real!(fn pthread_tryjoin_np(thread: pthread_t, value: *mut *mut c_void) -> c_int) }
}

/// Joins a virtual thread, at a cancellation point of a virtual thread.
///
/// # Safety
/// As for [`cancel::point`].
unsafe fn joining(join: impl Fn() -> c_int) -> c_int {
    let join = || Number(join());
    // SAFETY: the caller's contract.
    unsafe { cancel::point(join, join) }.0
}

/// Returns the end of a join's wait: `time`, on a clock, or never if it is null.
///
/// # Safety
/// `time` is null, or points to a timespec.
unsafe fn until(clock: clockid_t, time: *const timespec) -> Result<Deadline, c_int> {
    match time.is_null() {
        true => Ok(Deadline::NEVER),
        // SAFETY: the caller's contract.
        false => unsafe { deadline(clock, time) },
    }
}

/// Returns the error of joining or detaching a virtual thread that `pthread_create` has not made,
/// or that exists no more.
fn not_joinable(thread: pthread_t) -> c_int {
    match slot_of(thread).is_some_and(table::is_resident) {
        true => libc::EINVAL, // It is detached.
        false => libc::ESRCH,
    }
}

/// What a thread waits for that joins a platform thread.
const JOIN: &CStr = c"pthread_join";

/// Waits for the end of a platform thread, then calls libc's join.
unsafe fn join_after(
    thread: pthread_t,
    until: Option<(clockid_t, *const timespec)>,
    join: impl FnOnce() -> c_int,
) -> c_int {
    if is_virtual(thread) {
        // SAFETY: no arguments.
        return if thread == unsafe { libc::pthread_self() } {
            libc::EDEADLK
        } else {
            not_joinable(thread)
        };
    }
    if posix::own().is_some_and(|own| own.is_joined_by(thread)) {
        return libc::EDEADLK;
    }
    let until = match until {
        // SAFETY: the caller's contract.
        Some((clock, time)) => match unsafe { deadline(clock, time) } {
            Ok(deadline) => deadline,
            Err(e) => return e,
        },
        None => Deadline::NEVER,
    };
    // SAFETY: the caller's contract.
    match unsafe { wait_for_end(thread, until) } {
        Ok(()) => join(),
        Err(Errno(libc::EAGAIN)) => libc::ETIMEDOUT,
        // Linux before 6.9 has no pidfds of threads, or there is no free descriptor. Any thread may
        // join.
        Err(_) => {
            let done = pool::dedicated(Awaited::call(JOIN), || match join() {
                0 => Ok(0),
                e => Err(Errno(e)),
            });
            done.map_or_else(|e| e.0, |_| 0)
        }
    }
}

/// Parks until a platform thread has ended. `EAGAIN`: the deadline came first.
///
/// The kernel clears the id in the thread's descriptor when the thread ends, before it reuses the
/// id. So if the id is still there when the pidfd has been opened, the pidfd is the thread's.
unsafe fn wait_for_end(thread: pthread_t, deadline: Deadline) -> Result<(), Errno> {
    const PIDFD_THREAD: i32 = libc::O_EXCL; // include/uapi/linux/pidfd.h
    if !valgrind::kernel_has(libc::SYS_pidfd_open) {
        return Err(Errno(libc::ENOSYS));
    }
    let place = (thread as usize + tls::template().tid_offset) as *mut i32;
    // SAFETY: the caller's contract: a thread not yet joined, whose descriptor is there.
    let id = unsafe { AtomicI32::from_ptr(place) };
    loop {
        let seen = id.load(Ordering::Acquire); // Acquire: sees the thread's writes, as with `pthread_join`.
        if seen <= 0 {
            return Ok(());
        }
        if seen.cast_unsigned() == std::process::id() {
            // SAFETY: the caller's contract.
            return unsafe { look_often(id, deadline) };
        }
        // SAFETY: no pointers.
        let fd = match unsafe { call!(libc::SYS_pidfd_open, seen, PIDFD_THREAD) } {
            Ok(fd) => fd as i32,
            Err(Errno(libc::ESRCH)) => return Ok(()), // It is ending: libc will wait for the end.
            Err(e) => return Err(e),
        };
        fds::created(fd);
        let same = id.load(Ordering::Acquire) == seen;
        let result = if same { wait_for(fd, deadline) } else { Ok(()) };
        let _ = fds::close(fd);
        if same {
            return result;
        }
    }
}

/// Parks until the first thread has ended, whose pidfd says nothing while there are others (since
/// Linux 6.15). Looks again and again, and is a cancellation point.
///
/// # Safety
/// As for [`cancel::point`].
unsafe fn look_often(id: &AtomicI32, deadline: Deadline) -> Result<(), Errno> {
    const STEP_NANOS: u64 = 5_000_000;
    while id.load(Ordering::Acquire) > 0 {
        // SAFETY: the caller's contract.
        unsafe { cancel::pthread_testcancel() };
        if deadline.has_passed() {
            return Err(Errno(libc::EAGAIN));
        }
        let next = deadline.min(Deadline::after_nanos(STEP_NANOS));
        blocking::pause_until(Awaited::call(JOIN).looking(), next, Hearing::Sleep);
    }
    Ok(())
}

/// Parks until a pidfd says that its thread has ended.
fn wait_for(fd: i32, deadline: Deadline) -> Result<(), Errno> {
    let has_ended = || match sys::events_now(fd, libc::POLLIN) {
        0 => Err(Errno(libc::EAGAIN)),
        _ => Ok(0),
    };
    let end = Awaited::call(JOIN);
    readiness::blocking_for(|_, _| end, fd, Interest::Read, |_| deadline, has_ended).map(|_| ())
}

/// `pthread_detach`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_detach(thread: pthread_t) -> c_int {
    if let Some(record) = posix::find(thread) {
        // SAFETY: the caller's contract.
        return unsafe { record.detach() };
    }
    if is_virtual(thread) {
        return not_joinable(thread);
    }
    // SAFETY: the caller's contract.
    unsafe { real!(fn pthread_detach(thread: pthread_t) -> c_int) }
}

/// `pthread_exit`. libc unwinds to the function with which *it* started the thread, or to where a
/// virtual thread that `pthread_create` has made calls its start routine. Others cannot end like
/// this.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_exit(value: *mut c_void) -> ! {
    if let Some(own) = posix::own() {
        own.exit_with(value);
    } else if let Some(core) = vthread::current() {
        let name = core.name().unwrap_or("<unnamed>");
        sys::fatal(&[
            "pthread_exit was called on the virtual thread '",
            name,
            "': it can only end by returning",
        ]);
    } else if let Some(threads) = posix::threads() {
        threads.exits();
    }
    // SAFETY: the caller's contract.
    unsafe { real!(unwinding fn pthread_exit(value: *mut c_void) -> !) }
}

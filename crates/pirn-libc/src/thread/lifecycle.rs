//! Creating, joining, detaching, exiting and cancelling threads.

use crate::cancel::{self, Number};
use crate::forward::{Descriptor, number, on_carrier};
use crate::identity::{is_virtual, slot_of};
use crate::posix::{self, PosixRoutine, Routine};
use crate::registry::interposed;
use crate::signals::masks;
use crate::sync::deadline;
use crate::{Time, simulated, virtual_thread};
use core::cell::Cell;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicI32, Ordering};
use core::{mem, ptr};
use libc::{clockid_t, pthread_attr_t, pthread_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::{self, pool};
use pirn_rt::glibc::symbols::real;
use pirn_rt::glibc::tls;
use pirn_rt::no_suspend;
use pirn_rt::sys::{self, Errno};
use pirn_rt::time::Deadline;
use pirn_rt::vthread;
use pirn_rt::vthread::wait_reason::WaitReason;
use pirn_rt::vthread::wait_word::Interruptible;
use pirn_rt::vthread::{helper, table};

interposed! {
    family "Beginning and end of threads" for Correctness,
        cannot "join, detach or cancel a virtual thread by its `pthread_t`: to C, it is detached";

    Carrier by hand { pthread_create: "makes a platform thread" }
    Parks as {
        fn pthread_join(thread: pthread_t, value: *mut *mut c_void) -> c_int
            = join(thread, value, (0, ptr::null()), || libcs!());
        fn pthread_timedjoin_np(thread: pthread_t, value: *mut *mut c_void, time: Time) -> c_int
            = join(thread, value, (libc::CLOCK_REALTIME, time), || libcs!());
        fn pthread_clockjoin_np(
            thread: pthread_t, value: *mut *mut c_void, clock: clockid_t, time: Time,
        ) -> c_int
            = join(thread, value, (clock, time), || libcs!());
    }
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

/// Makes a platform thread, unless `answer_next_create` was called. On a virtual thread it runs as
/// the carrier, from which the new thread inherits.
#[libc_fn]
pub unsafe fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    if let Some(answer) = ANSWER.take() {
        *thread = 0; // not one of libc's threads
        return answer(start, argument);
    }
    // SAFETY: the same type, but that the program's routine may be unwound; the caller's contract.
    let made = unsafe {
        let routine = Routine::Posix(mem::transmute::<Start, PosixRoutine>(start));
        posix::create(thread, attributes, routine, argument)
    };
    if let Some(result) = made {
        return result;
    }
    create_platform(thread, attributes, start, argument)
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
    if !helper::is_making_helper() {
        // SAFETY: a simulation refuses a platform thread, and does not look at the arguments.
        let simulated = unsafe { simulated::call(libc::SYS_clone3, [0; 6]) };
        if let Some(Err(error)) = simulated {
            return error.0;
        }
    }
    // The new thread inherits the kernel's mask: on a carrier, the virtual thread's for now.
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

#[libc_fn]
pub unsafe fn pthread_tryjoin_np(thread: pthread_t, value: *mut *mut c_void) -> c_int {
    match posix::find(thread) {
        Some(record) if !record.has_ended() => return libc::EBUSY,
        Some(record) => return record.join(value, &|| Ok(Deadline::NEVER)),
        None if is_virtual(thread) => return not_joinable(thread),
        None => {}
    }
    libcs!()
}

/// Returns the error of joining or detaching a virtual thread that `pthread_create` has not made,
/// or that exists no more.
fn not_joinable(thread: pthread_t) -> c_int {
    match slot_of(thread).is_some_and(table::has_thread) {
        true => libc::EINVAL, // It is detached.
        false => libc::ESRCH,
    }
}

/// What a thread waits for that joins a platform thread.
const JOIN: &CStr = c"pthread_join";

/// Joins a thread, until a time on a clock, or for ever if that is null. On a virtual thread it
/// waits for the end of a platform thread, then calls libc's join.
///
/// # Safety
/// As for `pthread_clockjoin_np`, and for [`cancel::point`].
unsafe fn join(
    thread: pthread_t,
    value: *mut *mut c_void,
    (clock, time): (clockid_t, Time),
    libcs: impl FnOnce() -> c_int,
) -> c_int {
    let until = || match time.is_null() {
        true => Ok(Deadline::NEVER),
        // SAFETY: the caller's contract.
        false => unsafe { deadline(clock, time) },
    };
    if let Some(record) = posix::find(thread) {
        // SAFETY: the caller's contract, here and below.
        let join = || Number(unsafe { record.join(value, &until) });
        // SAFETY: nothing to drop.
        return unsafe { cancel::point(join, join) }.0;
    }
    if is_virtual(thread) {
        // SAFETY: no arguments.
        let is_own = thread == unsafe { libc::pthread_self() };
        return if is_own {
            libc::EDEADLK
        } else {
            not_joinable(thread)
        };
    }
    if virtual_thread().is_none() {
        return libcs();
    }
    if posix::own().is_some_and(|own| own.is_joined_by(thread)) {
        return libc::EDEADLK;
    }
    let until = match until() {
        Ok(deadline) => deadline,
        Err(e) => return e,
    };
    // SAFETY: the caller's contract.
    match unsafe { wait_for_end(thread, until) } {
        Ok(()) => libcs(),
        Err(Errno(libc::EAGAIN)) => libc::ETIMEDOUT,
        // Linux before 6.9 has no pidfds of threads, or there is no free descriptor. Any thread may
        // join.
        Err(_) => {
            let done = pool::dedicated(WaitReason::call(JOIN), || match libcs() {
                0 => Ok(0),
                e => Err(Errno(e)),
            });
            number(done)
        }
    }
}

/// Parks until a platform thread has ended. `EAGAIN`: the deadline came first.
///
/// The kernel clears the id in the thread's descriptor when the thread ends, before it reuses the
/// id. So if the id is still there when the pidfd has been opened, the pidfd is the thread's.
unsafe fn wait_for_end(thread: pthread_t, deadline: Deadline) -> Result<(), Errno> {
    const PIDFD_THREAD: i32 = libc::O_EXCL; // include/uapi/linux/pidfd.h
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
        let pidfd = match Descriptor::of_process(seen, PIDFD_THREAD) {
            Err(Errno(libc::ESRCH)) => return Ok(()), // It is ending: libc will wait for the end.
            pidfd => pidfd?,
        };
        let has_ended = || match sys::events_now(pidfd.0, libc::POLLIN) {
            0 => Err(Errno(libc::EAGAIN)),
            _ => Ok(0),
        };
        if id.load(Ordering::Acquire) == seen {
            return pidfd
                .wait(WaitReason::call(JOIN), deadline, has_ended)
                .map(drop);
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
        blocking::pause_until(
            WaitReason::call(JOIN).looking(),
            next,
            Interruptible::OnceInSleep,
        );
    }
    Ok(())
}

#[libc_fn]
pub unsafe fn pthread_detach(thread: pthread_t) -> c_int {
    if let Some(record) = posix::find(thread) {
        return record.detach();
    }
    if is_virtual(thread) {
        return not_joinable(thread);
    }
    libcs!()
}

/// libc unwinds to the function with which *it* started the thread, or to where a
/// virtual thread that `pthread_create` has made calls its start routine. Others cannot end like
/// this.
#[libc_fn]
pub unsafe fn pthread_exit(value: *mut c_void) -> ! {
    if let Some(own) = posix::own() {
        if no_suspend::in_handler() {
            masks::leave_handler();
        }
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
    libcs!()
}

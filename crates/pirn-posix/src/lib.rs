//! Virtual threads of `pthread_create` and `thrd_create`, for programs that know nothing of
//! virtual threads; a part of `libpirn.so`. Nothing here is stable.
//!
//! To a program, such a thread is one of libc's. It is [made](create) with attributes, has a
//! [record] by which it is joined and detached, can be [cancelled](cancel), and the process ends
//! [with the last](leaving) thread of the program. A thread that only the kernel can run, or that
//! its creator or the user has [chosen], is a platform thread; the
//! [account] says why at the end. [header] is what `pirn.h` declares.
//!
//! A Rust program that uses `pirn::thread` does not contain this crate. Its `pthread_create` makes
//! platform threads.

#![allow(rustdoc::private_intra_doc_links)]

mod account;
mod cancel;
mod chosen;
mod create;
mod header;
mod leaving;
mod record;

use core::ffi::{c_int, c_void};
use core::mem;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use libc::{pthread_attr_t, pthread_t};
use pirn_libc::posix::{self, PosixRoutine, Record, Routine};
use pirn_libc::signals::process_wide;
use pirn_libc::sync::robust;
use pirn_libc::thread::lifecycle::{Start, create_platform};
use pirn_rt::vthread::{self, helper, signals};

/// Lets `pthread_create` and `thrd_create` make virtual threads from now on (`on` is not 0), or
/// platform threads again. With 2, only virtual threads make some. For the library that is
/// preloaded, for simulations, and for tests.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn pirn_make_pthreads_virtual(on: c_int) {
    OF_VIRTUAL_ONLY.store(on == 2, Relaxed); // Relaxed: no other data.
    if on != 0 {
        posix::install(&Threads);
        leaving::prepare();
        robust::prepare();
    }
    posix::switch(on != 0);
}

/// Makes a virtual thread in place of the first thread of the process, which takes no signals from
/// now on: the process ends with its last other thread. Returns libc's result. For simulations.
///
/// # Safety
/// As for `pthread_create`. The caller is the first thread, and there is no other.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn pirn_replace_first_thread(
    attributes: *const pthread_attr_t,
    start: PosixRoutine,
    argument: *mut c_void,
) -> c_int {
    process_wide::watch();
    leaving::withdraw();
    let mut thread = 0;
    // SAFETY: the caller's contract.
    let error = unsafe { header::pirn_create_virtual(&mut thread, attributes, start, argument) };
    signals::block_others(); // The new thread has the mask that this one had.
    error
}

/// Whether a platform thread that makes a thread makes a platform thread.
static OF_VIRTUAL_ONLY: AtomicBool = AtomicBool::new(false);

/// The threads of the process.
struct Threads;

impl posix::Threads for Threads {
    unsafe fn create(
        &self,
        thread: *mut pthread_t,
        attributes: *const pthread_attr_t,
        routine: Routine,
        argument: *mut c_void,
    ) -> Option<c_int> {
        let outside = OF_VIRTUAL_ONLY.load(Relaxed) && vthread::current().is_none();
        if outside || helper::is_platform_forced() {
            return None;
        }
        // SAFETY: the caller's contract, here and below.
        let made = unsafe { create::virtually(thread, attributes, routine, argument) };
        match routine {
            Routine::Posix(start) if made.is_none() => {
                // SAFETY: the caller's contract.
                Some(unsafe { create_counted(thread, attributes, start, argument) })
            }
            _ => made,
        }
    }

    fn find(&self, thread: pthread_t) -> Option<&dyn Record> {
        record::find(thread).map(|record| record as &dyn Record)
    }

    fn own(&self) -> Option<&dyn Record> {
        record::own().map(|record| record as &dyn Record)
    }

    fn exits(&self) {
        leaving::main_exits();
    }

    fn count_anew(&self) {
        leaving::after_fork();
    }

    fn forget_own(&self) {
        record::after_fork();
    }
}

/// Creates a platform thread that reports its end.
///
/// # Safety
/// As for `pthread_create`.
unsafe fn create_counted(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: PosixRoutine,
    argument: *mut c_void,
) -> c_int {
    let mut begin = Vec::new();
    if begin.try_reserve_exact(1).is_err() {
        return libc::EAGAIN;
    }
    begin.push((start, argument));
    // A box of one has the same layout.
    let begin = Box::into_raw(begin.into_boxed_slice()).cast::<(PosixRoutine, *mut c_void)>();
    leaving::enter();
    // SAFETY: the caller's contract; `counted` takes the box.
    unsafe {
        let counted = mem::transmute::<PosixRoutine, Start>(counted);
        let error = create_platform(thread, attributes, counted, begin.cast());
        if error != 0 {
            drop(Box::from_raw(begin));
            leaving::withdraw();
        }
        error
    }
}

/// The start routine of such a thread.
///
/// # Safety
/// `begin` is a box with a start routine and its argument.
unsafe extern "C-unwind" fn counted(begin: *mut c_void) -> *mut c_void {
    // SAFETY: the caller's contract. Nothing with a destructor is left when the routine runs.
    unsafe {
        let (start, argument) = *Box::from_raw(begin.cast::<(PosixRoutine, *mut c_void)>());
        leaving::report_this();
        start(argument)
    }
}

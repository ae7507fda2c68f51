//! Jumps and contexts: `sigsetjmp`, `longjmp`, `getcontext` and their kin keep the mask of a
//! virtual thread, and a handler may be left by a jump.
//!
//! libc saves and restores the kernel's mask. On a virtual thread that is the mask of its carrier.
//! All carriers have the same mask, so a buffer or a context that a virtual thread has saved does
//! no harm. A context that a platform thread has saved would give the carrier that thread's mask
//! (D's fibers are made by `main`, and run on any thread): then no thread would be preempted there
//! any more, and the carrier would get signals.
//!
//! So the thread's own mask is [kept](Kept) in the part of the set that the kernel does not use.
//! Where a context is resumed, the kernel's part gets the mask that the OS thread must have. A
//! context that the kernel has made, for a signal handler, has no such part: there nothing is
//! written behind the mask.
//!
//! ```text
//!   sigjmp_buf   0         64          72            80            184    192        200  (x86-64)
//!                +---------+-----------+-------------+-------------+------+----------+
//!                | regis-  | saved the | the kernel's| of the set, | mark | thread's |
//!                | ters    | mask?     | mask        | not used    |      | mask     |
//!                +---------+-----------+-------------+-------------+------+----------+
//! ```

use crate::registry::interposed;
use crate::signals::{alternative, masks};
use core::ffi::{c_int, c_void};
use core::mem::{offset_of, transmute};
use core::sync::atomic::Ordering::SeqCst;
use libc::ucontext_t;
use pirn_rt::arch;
use pirn_rt::blocking::fds::readiness;
use pirn_rt::glibc::symbols::Real;
use pirn_rt::glibc::thread::{JUMP_SAVED, JUMP_SET, jump_target};
use pirn_rt::no_suspend::{self, NoSuspend};
use pirn_rt::sched;
use pirn_rt::{sys, vthread};

interposed! {
    family "Jumps" for Correctness;

    Own by hand {
        longjmp, _longjmp, siglongjmp, __longjmp_chk: "a handler may be left by a jump",
        __sigsetjmp: "keeps the mask of a virtual thread",
    }
}

interposed! {
    /// The functions for contexts.
    CONTEXTS:
    family "Contexts" for Scaling,
        cannot "restore the mask of a virtual thread at the end of a context that has a `uc_link`";

    Own by hand {
        getcontext, setcontext, swapcontext: "with the mask of the virtual thread",
    }
}

static SIGSETJMP: Real = Real::new(c"__sigsetjmp");
static GETCONTEXT: Real = Real::new(c"getcontext");
static SETCONTEXT: Real = Real::new(c"setcontext");
static SWAPCONTEXT: Real = Real::new(c"swapcontext");

/// Looks up libc's functions, which cannot be done in a signal handler.
pub(super) fn prepare() {
    for function in [&SIGSETJMP, &GETCONTEXT, &SETCONTEXT, &SWAPCONTEXT] {
        function.get();
    }
}

/// The mask of a virtual thread, in the last words of the C library's set, which has 16.
#[repr(C)]
struct Kept {
    /// [`MARK`] if a virtual thread has saved the set, and not a platform thread or the kernel.
    mark: u64,
    mask: u64,
}

const MARK: u64 = u64::from_ne_bytes(*b"pirnmask");
/// Where it is in a set.
const IN_SET: usize = 14 * size_of::<u64>();

impl Kept {
    /// Keeps the running thread's mask in a set.
    ///
    /// # Safety
    /// A place for a whole set of the C library's.
    unsafe fn put(set: *mut c_void) {
        let thread = vthread::current();
        let mask = thread.map(|thread| thread.signals.mask.load(SeqCst));
        let kept = Kept {
            mark: mask.map_or(0, |_| MARK),
            mask: mask.unwrap_or(0),
        };
        // SAFETY: the caller's contract.
        unsafe { set.byte_add(IN_SET).cast::<Kept>().write(kept) };
    }

    /// Returns the mask that is kept in a set.
    ///
    /// # Safety
    /// A set in a buffer or context that has been saved: behind the word of one of the kernel's is
    /// more of the kernel's frame.
    unsafe fn get(set: *const c_void) -> Option<u64> {
        // SAFETY: the caller's contract.
        let kept = unsafe { set.byte_add(IN_SET).cast::<Kept>().read() };
        (kept.mark == MARK).then_some(kept.mask)
    }
}

/// Notes the mask in a buffer. Returns libc's function, which is to fill in the rest.
///
/// # Safety
/// As for `__sigsetjmp`.
unsafe extern "C" fn note(buffer: *mut c_void, saves_mask: c_int) -> *mut c_void {
    if saves_mask != 0 {
        // SAFETY: the caller's contract: a whole buffer, 200 bytes and aligned.
        unsafe { Kept::put(buffer.byte_add(JUMP_SET)) };
    }
    SIGSETJMP.get()
}

/// Takes the mask with which a virtual thread goes on after a jump to the buffer.
///
/// # Safety
/// A buffer that is jumped to.
unsafe fn restore(buffer: *const c_void) {
    let Some(thread) = vthread::current() else {
        return;
    };
    // SAFETY: the caller's contract.
    let mask = unsafe {
        let is_saved = buffer.byte_add(JUMP_SAVED).cast::<c_int>().read() != 0;
        is_saved
            .then(|| Kept::get(buffer.byte_add(JUMP_SET)))
            .flatten()
    };
    if let Some(mask) = mask {
        masks::set_quietly(&thread, mask);
    }
}

/// Notes the mask in a context that is about to be saved.
///
/// # Safety
/// Room for a context.
unsafe fn save(context: *mut ucontext_t) {
    // SAFETY: the caller's contract.
    unsafe { Kept::put(set_of(context)) };
}

/// # Safety
/// Room for a context.
unsafe fn set_of(context: *mut ucontext_t) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe { context.byte_add(offset_of!(ucontext_t, uc_sigmask)).cast() }
}

/// Takes the mask of a context that is about to be resumed. If the OS thread is a carrier, it keeps
/// its own mask.
///
/// # Safety
/// A context that has been saved.
unsafe fn go_on(context: *mut ucontext_t) {
    // SAFETY: the caller's contract.
    let (kernels, saved) = unsafe { (set_of(context).cast::<u64>(), Kept::get(set_of(context))) };
    let section = NoSuspend::new();
    let Some((thread, carrier)) = vthread::current().zip(sched::carrier(&section)) else {
        if let Some(saved) = saved {
            // SAFETY: the caller's contract.
            unsafe { kernels.write(saved) };
        }
        return;
    };
    let carriers = carrier.blocked_signals();
    // SAFETY: the caller's contract.
    let found = unsafe { kernels.replace(carriers) };
    drop(section);
    // If it is the carrier's own, the kernel has saved it, for the handler of a fault.
    if let Some(mask) = saved.or((found != carriers).then_some(found)) {
        masks::set_quietly(&thread, mask);
    }
}

/// # Safety
/// As for `getcontext`.
unsafe extern "C" fn getting(context: *mut ucontext_t, _: *const c_void) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe { save(context) };
    GETCONTEXT.get()
}

/// # Safety
/// As for `setcontext`.
unsafe extern "C" fn setting(context: *mut ucontext_t, _: *const c_void) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe { go_on(context) };
    SETCONTEXT.get()
}

/// # Safety
/// As for `swapcontext`.
unsafe extern "C" fn swapping(old: *mut ucontext_t, new: *mut ucontext_t) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe {
        save(old);
        go_on(new);
    }
    SWAPCONTEXT.get()
}

arch::forward! {
    /// `__sigsetjmp`, which `sigsetjmp` is a macro for.
    ///
    /// # Safety
    /// As for libc's function of this name.
    __sigsetjmp => note
}

arch::forward! {
    /// `getcontext`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    getcontext => getting
}

arch::forward! {
    /// `setcontext`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    setcontext => setting
}

arch::forward! {
    /// `swapcontext`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    swapcontext => swapping
}

/// Fills in a context as libc does.
///
/// # Safety
/// As for `getcontext`.
pub(super) unsafe fn get(context: *mut ucontext_t) {
    type Getcontext = unsafe extern "C" fn(*mut ucontext_t) -> i32;
    // SAFETY: the function's signature; the caller's contract.
    unsafe { transmute::<*mut c_void, Getcontext>(GETCONTEXT.get())(context) };
}

/// Prepares a jump out of handlers to the stack pointer `target`. Ends the process if one of them
/// has interrupted the runtime.
#[cold]
fn leave_handlers(target: usize) {
    // The carrier stays the same until the kernel knows its alternative stack again.
    let _section = NoSuspend::new();
    match no_suspend::jump(target) {
        Ok(true) if !no_suspend::in_handler() => {
            alternative::leave();
            readiness::left_by_jump();
            masks::leave_handler();
        }
        Ok(_) => {}
        Err(signal) => left_the_runtime(signal),
    }
}

/// Ends the process: its handler of `signal` is about to be left by a jump out of the runtime.
#[cold]
fn left_the_runtime(signal: u16) -> ! {
    let digits = [signal / 10, signal % 10].map(|digit| b'0' + (digit % 10) as u8);
    let number = &digits[usize::from(signal < 10)..];
    sys::fatal(&[
        "the program jumped out of its handler of signal ",
        core::str::from_utf8(number).unwrap_or_default(),
        ", which had interrupted the runtime of virtual threads in the middle of a step. Return \
         from the handler, or block the signal where virtual threads may run",
    ])
}

/// Defines functions like `longjmp`, each through libc's own.
macro_rules! jumps {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(buffer: *mut c_void, value: c_int) -> ! {
            use pirn_rt::glibc::symbols::real;
            // SAFETY: the caller's contract: a buffer that `setjmp` has filled in.
            unsafe {
                if no_suspend::in_handler() {
                    leave_handlers(jump_target(buffer));
                }
                restore(buffer);
                real!(unwinding fn $name(buffer: *mut c_void, value: c_int) -> !)
            }
        }
    )*};
}

jumps!(longjmp _longjmp siglongjmp __longjmp_chk);

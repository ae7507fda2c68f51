//! `getcontext` and its relatives: keeping the mask of a virtual thread in a `ucontext_t`.
//!
//! libc saves and restores the kernel's mask. That is the carrier's, which all carriers have the
//! same of, so a context that a virtual thread has saved does no harm. One that a platform thread
//! has saved would give the carrier that thread's mask (D's fibers are made by `main`, and run on
//! any thread): then nothing would be preempted there any more, and the carrier would get signals.
//!
//! So the thread's own mask is kept in the part of the set that the kernel does not use, and at a
//! switch the kernel's part gets the mask that the OS thread has to have. A context that the kernel
//! has made, for a handler of a signal, has no such part: there nothing is written behind the mask.

use crate::registry::interposed;
use crate::signals::masks;
use core::ffi::c_void;
use core::sync::atomic::Ordering::SeqCst;
use libc::ucontext_t;
use pirn_rt::arch;
use pirn_rt::glibc::symbols::Real;
use pirn_rt::mark::Raised;
use pirn_rt::vthread;

interposed! {
    family "Contexts" for Scaling,
        cannot "restore the mask of a virtual thread at the end of a context that has a `uc_link`";

    Own by hand {
        getcontext, setcontext, swapcontext: "with the mask of the virtual thread",
    }
}

/// Says that a thread's mask follows.
const MARK: u64 = u64::from_ne_bytes(*b"pirnmask");
/// The words of a set: the kernel's, the mark, the thread's.
const KERNELS: usize = 0;
const MARKED: usize = 14;
const THREADS: usize = 15;

static GETCONTEXT: Real = Real::new(c"getcontext");
static SETCONTEXT: Real = Real::new(c"setcontext");
static SWAPCONTEXT: Real = Real::new(c"swapcontext");

/// Notes the mask in a context that is about to be saved.
///
/// # Safety
/// Room for a context.
unsafe fn save(context: *mut ucontext_t) {
    let thread = vthread::current();
    let mask = thread.map(|thread| thread.signals.mask.load(SeqCst));
    // SAFETY: the caller's contract; a set has 16 words.
    unsafe {
        let words = (&raw mut (*context).uc_sigmask).cast::<u64>();
        words.add(MARKED).write(mask.map_or(0, |_| MARK));
        words.add(THREADS).write(mask.unwrap_or(0));
    }
}

/// Takes the mask of a context that is about to go on, and has the OS thread keep its own, if that
/// is a carrier.
///
/// # Safety
/// A context that has been saved.
unsafe fn restore(context: *mut ucontext_t) {
    // SAFETY: the caller's contract. Behind the word of one of the kernel's is more of its frame.
    let (kernels, saved) = unsafe {
        let words = (&raw mut (*context).uc_sigmask).cast::<u64>();
        let is_marked = words.add(MARKED).read() == MARK;
        let saved = is_marked.then(|| words.add(THREADS).read());
        (words.add(KERNELS), saved)
    };
    let mark = Raised::new();
    let Some((thread, carrier)) = vthread::current().zip(vthread::carrier(&mark)) else {
        if let Some(saved) = saved {
            // SAFETY: as above.
            unsafe { kernels.write(saved) };
        }
        return;
    };
    let carriers = carrier.blocked_signals();
    // SAFETY: as above.
    let found = unsafe { kernels.replace(carriers) };
    drop(mark);
    // The carrier's own: the kernel has saved it, for the handler of a fault.
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
    unsafe { restore(context) };
    SETCONTEXT.get()
}

/// # Safety
/// As for `swapcontext`.
unsafe extern "C" fn swapping(old: *mut ucontext_t, new: *mut ucontext_t) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe {
        save(old);
        restore(new);
    }
    SWAPCONTEXT.get()
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
    unsafe { core::mem::transmute::<*mut c_void, Getcontext>(GETCONTEXT.get())(context) };
}

/// Looks up libc's functions, which cannot be done in a signal handler.
pub(super) fn prepare() {
    for function in [&GETCONTEXT, &SETCONTEXT, &SWAPCONTEXT] {
        function.get();
    }
}

//! `SIGURG`, which [preemption](preempt) shares with the program, with readers of stacks, which ask
//! threads to stop (`sched/current_stack/`), and with tools that look inside.
//!
//! The kernel sends it for out-of-band data, if a program asks for that, and a program may use it
//! for anything else. So the kernel knows our handler, and the program's handler is only noted. Our
//! own signals carry a marker; for all others our handler calls the program's. The program is told
//! that its own handler is installed.
//!
//! A tool of the same user, or of root, sends this signal with the marker [`ASK_TO_LISTEN`] to the
//! monitor's thread: then the process starts its inspection server. A process without Pirn
//! ignores the signal, so a tool that errs does no harm.
//!
//! In every other handler of the program, `SIGURG` is blocked (see [`handler`]). A thread that is
//! in a handler must not be preempted: the end of the handler, on another carrier, would restore
//! the signal mask and the alternative stack of the first.

use crate::signals::{handler, masks};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use libc::siginfo_t;
use pirn_rt::arch;
use pirn_rt::sanitizer;
#[cfg(feature = "dump")]
use pirn_rt::sched::current_stack::{self, MARKER};
use pirn_rt::sched::deferred;
use pirn_rt::sched::preempt::{self, SIGNAL};
use pirn_rt::sys;
use pirn_rt::vthread;

/// The value with which a tool asks to look inside. The `pirn` command has the same number.
const ASK_TO_LISTEN: usize = usize::from_ne_bytes(*b"pirn-ask");

/// `SIGURG` in a signal set of the kernel.
pub(super) const BIT: u64 = 1 << (SIGNAL - 1);

/// Whether the kernel calls our handler.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// The flags and the mask of the program's own action. Its handler is noted in [`handler`].
static FLAGS: AtomicI32 = AtomicI32::new(0);
static MASK: AtomicU64 = AtomicU64::new(0);

/// Installs the handler, for preemption unless slices are zero, and for tools if the process
/// `answers` them.
///
/// # Errors
/// The reason why threads cannot be preempted here.
pub fn install(slice: Duration, answers: bool) -> Result<(), &'static str> {
    if sanitizer::watches() {
        return match slice.is_zero() {
            true => Ok(()),
            false => Err("tools that watch each instruction are not interrupted"),
        };
    }
    let preempts = match slice.is_zero() {
        true => Ok(()),
        false => preempt::prepare(),
    };
    if answers || (!slice.is_zero() && preempts.is_ok()) {
        take_over();
    }
    preempts
}

/// Makes the handler ours, and notes the program's.
fn take_over() {
    // SAFETY: all zeros is a valid action, the program's is read into it, and put in force again.
    unsafe {
        let mut programs: libc::sigaction = core::mem::zeroed();
        libc::sigaction(SIGNAL, core::ptr::null(), &mut programs);
        ACTIVE.store(true, Relaxed); // Relaxed: under the lock of the start.
        libc::sigaction(SIGNAL, &programs, core::ptr::null_mut());
    }
}

/// Without dumps there is one marker.
#[cfg(not(feature = "dump"))]
const MARKER: usize = preempt::MARKER;

/// Returns whether a thread that our signal interrupts goes on with its system call, if that can be
/// begun again.
#[cfg(feature = "dump")]
pub fn restarts() -> bool {
    let programs = handler::is_function(handler::noted(SIGNAL));
    // Relaxed: as in `exchange`.
    !programs || FLAGS.load(Relaxed) & libc::SA_RESTART != 0
}

/// Returns whether the kernel calls our handler.
#[cfg(feature = "dump")]
pub fn is_active() -> bool {
    is_shared(SIGNAL)
}

/// Returns whether the kernel calls our handler, which the child of a fork inherits.
pub fn is_installed() -> bool {
    ACTIVE.load(Relaxed) // Relaxed: no other data.
}

/// Returns whether the actions of this signal are only [noted](exchange).
pub(super) fn is_shared(signal: c_int) -> bool {
    signal == SIGNAL && ACTIVE.load(Relaxed) // Relaxed: no other data.
}

/// Notes the program's action, and returns the one that was noted before.
pub(super) fn exchange(new: Option<&libc::sigaction>) -> libc::sigaction {
    // SAFETY: all zeros is a valid action.
    let mut old: libc::sigaction = unsafe { core::mem::zeroed() };
    old.sa_sigaction = handler::noted(SIGNAL);
    // Relaxed, here and below: a handler that comes between two of these sees a mixture, as it
    // would if it came a little earlier or later.
    old.sa_flags = FLAGS.load(Relaxed);
    *masks::bits(&mut old.sa_mask) = MASK.load(Relaxed);
    if let Some(new) = new {
        MASK.store(masks::bits_of(&new.sa_mask), Relaxed);
        FLAGS.store(new.sa_flags, Relaxed);
        handler::note(SIGNAL, new.sa_sigaction);
        put_in_force(new);
    }
    old
}

/// Makes the kernel call our handler, which blocks all signals: the alternative stack may have no
/// room for a second frame and for the program's handler of another signal. `std`'s has 8 KiB, and
/// a frame takes 3.5 KiB on a processor with AVX-512.
fn put_in_force(programs: &libc::sigaction) {
    let mut ours = *programs;
    ours.sa_sigaction = on_signal as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    ours.sa_flags |= match handler::is_function(programs.sa_sigaction) {
        true => programs.sa_flags & libc::SA_RESTART,
        false => libc::SA_RESTART,
    };
    *masks::bits(&mut ours.sa_mask) = u64::MAX;
    // SAFETY: a handler of the right type, which accepts any signal.
    unsafe { handler::real_sigaction(SIGNAL, &ours, core::ptr::null_mut()) };
}

/// Preempts the running thread, or lets a tool in, or calls the program's handler.
///
/// Unwinds if the program's handler does.
unsafe extern "C-unwind" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: what the kernel gives to a handler with SA_SIGINFO.
    unsafe {
        // The kernel keeps one pending signal of this kind: it may stand for several.
        #[cfg(feature = "dump")]
        current_stack::answer(context);
        let value = match (*info).si_code {
            libc::SI_QUEUE => (*info).si_value().sival_ptr as usize,
            _ => 0,
        };
        // The kernel had no memory for what comes with the signal, or the limit of pending signals
        // (`ulimit -i`) is reached.
        let is_bare = (*info).si_code == libc::SI_USER && (*info).si_pid() == 0;
        let may_be_ours = is_bare && vthread::current().is_some();
        if [preempt::MARKER, MARKER].contains(&value) || may_be_ours {
            preempt::interrupt(context);
        } else if value == ASK_TO_LISTEN {
            deferred::request(deferred::LISTEN);
        } else if let programs = handler::noted(signal)
            && handler::is_function(programs)
        {
            // As the kernel would have it, but SA_NODEFER is not heard: see `put_in_force`.
            let interrupted = arch::Interruption::new(context).blocked();
            sys::block_only(interrupted | MASK.load(Relaxed) | BIT); // Relaxed: as in `exchange`.
            handler::call(programs, signal, info, context, FLAGS.load(Relaxed)); // Relaxed: as in `exchange`.
        }
    }
}

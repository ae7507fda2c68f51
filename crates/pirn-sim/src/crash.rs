//! A run in which the process crashes: the seed is said, since no report will be.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use libc::{sigaction, siginfo_t};
use pirn_rt::sys;
use std::io::Write;
use std::sync::OnceLock;

const SIGNALS: [c_int; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
];

/// The seed of the run; the largest number between runs. Relaxed: no other data.
static SEED: AtomicU64 = AtomicU64::new(u64::MAX);

/// The actions that the signals had before.
static BEFORE: OnceLock<[sigaction; SIGNALS.len()]> = OnceLock::new();

/// Notes which seed runs from now on; none between runs.
pub(crate) fn note(seed: Option<u64>) {
    SEED.store(seed.unwrap_or(u64::MAX), Relaxed);
}

/// Has crashes say the seed, once per process.
pub(crate) fn install() {
    BEFORE.get_or_init(|| {
        SIGNALS.map(|signal| {
            let mut before = MaybeUninit::<sigaction>::zeroed();
            let mut own = MaybeUninit::<sigaction>::zeroed();
            // SAFETY: all zeros is an action; a handler of the kind that the flags say.
            unsafe {
                let action = own.as_mut_ptr();
                (*action).sa_sigaction = on_crash as *const () as usize;
                (*action).sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigaction(signal, own.as_ptr(), before.as_mut_ptr());
                before.assume_init()
            }
        })
    });
}

/// Says the seed, and lets the signal come again, for the handler that was there before.
extern "C" fn on_crash(signal: c_int, _: *mut siginfo_t, _: *mut c_void) {
    let seed = SEED.load(Relaxed);
    if seed != u64::MAX {
        // Without the allocator: the crash may be in it.
        let mut digits = [0; 20];
        let mut rest = &mut digits[..];
        let _ = write!(rest, "{seed}");
        let length = 20 - rest.len();
        sys::complain(&[
            "pirn: the process crashes in the run of seed ",
            core::str::from_utf8(&digits[..length]).unwrap_or_default(),
            ": again by PIRN_SIM and the name of the test\n",
        ]);
    }
    let place = SIGNALS.iter().position(|it| *it == signal);
    if let Some(before) = BEFORE.get().zip(place).map(|(all, place)| &all[place]) {
        // SAFETY: an action that was in force.
        unsafe { libc::sigaction(signal, before, ptr::null_mut()) };
    }
    if signal == libc::SIGABRT {
        // SAFETY: no pointers. It comes when this handler has returned.
        unsafe { libc::raise(signal) };
    }
}

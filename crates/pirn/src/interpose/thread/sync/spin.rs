//! `pthread_spinlock_t`.

use crate::glibc::symbols::real;
use crate::interpose::registry::interposed;
use crate::interpose::virtual_thread;
use crate::sched;
use core::ffi::c_int;
use libc::pthread_spinlock_t;

interposed! {
    family "Spinlocks" for Scaling;

    Parks by hand { pthread_spin_lock: "spins, and lets others run between attempts" }
}

/// Attempts before the thread assumes that the holder is waiting for this very carrier.
const SPINS: u32 = 100;

/// `pthread_spin_lock`: a virtual thread spins for a moment, then lets others run between attempts.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> c_int {
    let Some(core) = virtual_thread() else {
        // SAFETY: the caller's contract.
        return unsafe { real!(fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> c_int) };
    };
    loop {
        for _ in 0..SPINS {
            // SAFETY: the caller's contract.
            match unsafe { real!(fn pthread_spin_trylock(lock: *mut pthread_spinlock_t) -> c_int) }
            {
                libc::EBUSY => core::hint::spin_loop(),
                result => return result,
            }
        }
        sched::yield_now(core);
    }
}

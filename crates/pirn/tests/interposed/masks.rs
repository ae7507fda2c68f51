//! Signal masks by all names, and signals to oneself.

use std::cell::Cell;
use std::{mem, ptr};

use libc::{c_int, sigset_t};

use super::{checked, everywhere};
use crate::common::{child, watched};

unsafe extern "C" {
    fn gsignal(signal: c_int) -> c_int;
    fn tgkill(process: libc::pid_t, thread: libc::pid_t, signal: c_int) -> c_int;
    fn sighold(signal: c_int) -> c_int;
    fn sigrelse(signal: c_int) -> c_int;
    fn sigblock(mask: c_int) -> c_int;
    fn sigsetmask(mask: c_int) -> c_int;
    fn siggetmask() -> c_int;
}

const SIGNAL: c_int = libc::SIGUSR1;
const BIT: c_int = 1 << (SIGNAL - 1);

thread_local!(static HANDLED: Cell<usize> = const { Cell::new(0) });

extern "C" fn count(_: c_int) {
    HANDLED.set(HANDLED.get() + 1);
}

/// Blocks the signal, sends it to this thread, and unblocks it: only then does the handler run.
fn hold_back(block: &dyn Fn(), send: &dyn Fn(), release: &dyn Fn()) {
    let pending = || {
        // SAFETY: a set to write to.
        unsafe {
            let mut set: sigset_t = mem::zeroed();
            assert_eq!(libc::sigpending(&mut set), 0);
            libc::sigismember(&set, SIGNAL) == 1
        }
    };
    let before = HANDLED.get();
    block();
    send();
    assert!(pending() && HANDLED.get() == before);
    release();
    assert!(!pending() && HANDLED.get() == before + 1);
    send();
    assert_eq!(HANDLED.get(), before + 2);
}

#[watched]
fn a_blocked_signal_waits_by_all_names() {
    let f = || {
        // SAFETY: sets of our own, and a handler that only counts.
        unsafe {
            libc::signal(SIGNAL, count as *const () as usize);
            let mut set: sigset_t = mem::zeroed();
            libc::sigaddset(&mut set, SIGNAL);
            let change = |how| assert_eq!(libc::sigprocmask(how, &set, ptr::null_mut()), 0);
            let raise = || assert_eq!(libc::raise(SIGNAL), 0);
            let to_id = || assert_eq!(tgkill(libc::getpid(), libc::gettid(), SIGNAL), 0);
            hold_back(&|| change(libc::SIG_BLOCK), &raise, &|| {
                change(libc::SIG_UNBLOCK)
            });
            hold_back(
                &|| assert_eq!(sighold(SIGNAL), 0),
                &|| assert_eq!(gsignal(SIGNAL), 0),
                &|| assert_eq!(sigrelse(SIGNAL), 0),
            );
            hold_back(&|| assert_eq!(sigblock(BIT) & BIT, 0), &to_id, &|| {
                assert_ne!(sigsetmask(siggetmask() & !BIT) & BIT, 0)
            });
            assert_eq!(checked(sighold(65)), Err(libc::EINVAL));
            assert_eq!(
                checked(libc::sigprocmask(7, &set, ptr::null_mut())),
                Err(libc::EINVAL)
            );
        }
    };
    child::isolated(&[], || everywhere(f));
}

/// As the kernel writes it: some programs have no room for more.
#[watched]
fn of_the_old_mask_eight_bytes_are_written() {
    everywhere(|| {
        let mut old = [!0_u64; size_of::<sigset_t>() / 8];
        // SAFETY: room for a set.
        unsafe {
            let place = old.as_mut_ptr().cast();
            assert_eq!(libc::pthread_sigmask(0, ptr::null(), place), 0);
        }
        assert_ne!(old[0], !0);
        assert!(old[1..].iter().all(|&word| word == !0));
    });
}

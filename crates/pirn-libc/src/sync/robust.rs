//! Robust mutexes of a virtual thread that ends while it has them.
//!
//! libc links the robust mutexes that a thread has into a list in its TCB, also on a virtual
//! thread. When a platform thread ends, the kernel walks over its list and marks the mutexes; of
//! virtual threads it knows nothing, so their list is walked here, by the same rules
//! (`kernel/futex/core.c`, `exit_robust_list`):
//!
//! ```text
//!   TCB: next -------> entry in a mutex: next ---> … ---> back to the TCB
//!        offset        the mutex's lock word is at entry + offset
//!        pending       a mutex that was being locked or unlocked; null at an end of this kind
//!
//!   lock word:  WAITERS | owner's id   ->   WAITERS | OWNER_DIED
//! ```
//!
//! The next one to lock such a mutex gets it, with `EOWNERDEAD`.

use crate::identity::{self, Whose};
use crate::sync;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use libc::pid_t;
use pirn_rt::arch;
use pirn_rt::glibc::tls;
use pirn_rt::sys::{self, SysResult, call};

/// Bits of a lock word (`linux/futex.h`).
const WAITERS: u32 = 1 << 31;
const OWNER_DIED: u32 = 1 << 30;
const OWNER: u32 = OWNER_DIED - 1;
/// The most entries that are looked at (`ROBUST_LIST_LIMIT`): the program may have broken the list.
const MOST: usize = 2048;
/// In the address of an entry: it is of a mutex that inherits priorities.
const INHERITING: usize = 1;

/// The kernel's `struct robust_list_head`.
#[repr(C)]
struct Head {
    next: usize,
    offset: isize,
    pending: usize,
}

/// The distance of the list's head from the beginning of `struct pthread`; 0: it is not known, and
/// no list is walked.
static HEAD: AtomicUsize = AtomicUsize::new(0);

/// Finds out where the head is, on a platform thread that libc has made or `main`.
pub fn prepare() {
    let (mut head, mut size) = (0_usize, 0_usize);
    // SAFETY: places for both; the running thread's own list.
    let asked = unsafe { call!(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut size) };
    // SAFETY: no arguments.
    let distance = head.wrapping_sub(unsafe { libc::pthread_self() } as usize);
    if asked.is_ok() && size == size_of::<Head>() && distance < tls::HEAD - size_of::<Head>() {
        HEAD.store(distance, Relaxed); // Relaxed: no other data.
    }
}

/// Tells where the list of the virtual thread with an id is, or of the running one (0), as
/// `get_robust_list` does; `None`: the kernel knows.
///
/// # Safety
/// The caller may write to both places.
pub(crate) unsafe fn list(id: pid_t, head: usize, size: usize) -> Option<SysResult> {
    let distance = HEAD.load(Relaxed);
    let thread = match identity::find(id) {
        Ok(Whose::Virtual(thread)) if distance != 0 => thread as usize,
        Ok(_) => return None,
        Err(e) => return Some(Err(e)),
    };
    // SAFETY: the caller's contract.
    let stored = unsafe {
        sys::store_u64(size, size_of::<Head>() as u64)
            .and_then(|()| sys::store_u64(head, (thread + distance) as u64))
    };
    Some(stored.map(|()| 0))
}

/// Marks the robust mutexes that the running virtual thread, which ends, still has.
#[inline]
pub fn owner_dies() {
    sync::by_stand_in::owner_dies(mark);
    let distance = HEAD.load(Relaxed);
    let place = tls::template().pthread_of(arch::thread_pointer()) + distance;
    let head = ptr::without_provenance::<Head>(place);
    // SAFETY: the running thread's own TCB.
    if distance != 0 && unsafe { (*head).next } != place {
        // SAFETY: the running thread's own TCB.
        unsafe { walk(place, head.read()) };
    }
}

/// Marks the mutexes of a list that begins at `place`.
///
/// # Safety
/// The list is the running thread's, and libc has made it.
#[cold]
unsafe fn walk(place: usize, head: Head) {
    // SAFETY: the running thread's TCB.
    let own = unsafe { tls::template().tid_place(arch::thread_pointer()).read() };
    let mut entry = head.next;
    for _ in 0..MOST {
        let address = entry & !INHERITING;
        if address == place {
            break;
        }
        // Before another thread has the mutex. A mutex may be in memory that is gone.
        let Ok(next) = sys::fetch_u64(address) else {
            break;
        };
        let word = address.wrapping_add_signed(head.offset);
        if sys::fetch_u32(word).is_ok() && word.is_multiple_of(4) {
            // SAFETY: readable, and in the list of locked mutexes, so it is a lock word.
            mark(word, unsafe { AtomicU32::from_ptr(word as *mut u32) }, own);
        }
        entry = next as usize;
    }
}

/// Marks a mutex, if the thread with the id `own` has it, and wakes one that waits.
fn mark(address: usize, word: &AtomicU32, own: u32) {
    let died = |seen: u32| (seen & OWNER == own).then_some(seen & WAITERS | OWNER_DIED);
    if word.fetch_update(SeqCst, SeqCst, died).is_ok() {
        sync::mutex::owner_died(address);
    }
}

//! malloc's per-thread words, so that all virtual threads of a carrier share its cache.
//!
//! glibc keeps two pointers per thread in its TLS: the thread's `tcache` and its arena. With a TLS
//! block of its own every virtual thread would grow its own cache, which is never freed. So a mount
//! copies the carrier's two words into the virtual thread's block (and an unmount copies them back,
//! because malloc may change them). Which two words it is, a fresh platform thread finds out:
//! exactly two words of libc's TLS change with its first `malloc`.

use super::objects;
use super::symbols::find;
use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Distances below tp of the two words; 0: not found out (copying tp's own word is harmless:
/// it never happens, because the runtime refuses to start).
static WORDS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// Copies malloc's words from one TLS block to another.
///
/// # Safety
/// Both are live TLS blocks and the calling OS thread owns both (one is being unmounted, the
/// other mounted, or one is its own).
#[inline(always)]
pub(crate) unsafe fn hand_over(from_tp: usize, to_tp: usize) {
    for word in &WORDS {
        // Relaxed: written once before the first virtual thread; the start of the runtime is
        // published with Release.
        let below = word.load(Ordering::Relaxed);
        // SAFETY: the probe found the word inside every thread's libc TLS.
        unsafe {
            let value = ((from_tp - below) as *const usize).read();
            ((to_tp - below) as *mut usize).write(value);
        }
    }
}

/// Makes sure the calling platform thread has a cache to hand over.
pub(crate) fn ensure_cache() {
    // SAFETY: malloc and free; `black_box` keeps the pair from being optimised away.
    unsafe { libc::free(core::hint::black_box(libc::malloc(24))) };
}

/// Finds the words. Must run on a fresh platform thread that has not called `malloc`.
pub(crate) fn probe() -> Result<(), String> {
    type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
    type Free = unsafe extern "C" fn(*mut c_void);
    // SAFETY: the signatures of malloc and free. glibc's own, even if the program has replaced
    // `malloc`: other parts of libc call these.
    let (malloc, free): (Malloc, Free) = unsafe {
        (
            core::mem::transmute::<*mut c_void, Malloc>(find(c"__libc_malloc")?),
            core::mem::transmute::<*mut c_void, Free>(find(c"__libc_free")?),
        )
    };
    let Some((start, len)) = libc_tls() else {
        return Err("libc has no static TLS block".into());
    };
    const MAX: usize = 64;
    let words = len / 8;
    if words > MAX {
        return Err(format!("libc's TLS has grown to {len} bytes"));
    }
    let block = start as *const usize;
    let mut before = [0usize; MAX];
    // SAFETY: libc's TLS of this thread, `words` long.
    unsafe { core::ptr::copy_nonoverlapping(block, before.as_mut_ptr(), words) };
    // SAFETY: plain use.
    unsafe { free(core::hint::black_box(malloc(24))) };
    let tp = crate::arch::thread_pointer();
    let mut found = [0usize; 2];
    let mut count = 0;
    for (i, &old) in before.iter().enumerate().take(words) {
        // SAFETY: as above.
        let new = unsafe { block.add(i).read_volatile() };
        if new != old {
            if count < 2 {
                found[count] = tp - (start + i * 8);
            }
            count += 1;
        }
    }
    if count != 2 {
        return Err(format!(
            "the first malloc of a thread changed {count} words of libc's TLS, not 2: pirn does \
             not know this malloc"
        ));
    }
    for (word, below) in WORDS.iter().zip(found) {
        // Relaxed: published by the end of the runtime's start.
        word.store(below, Ordering::Relaxed);
    }
    Ok(())
}

/// Checks that malloc leaves the words alone once they are there. Runs on the TLS block at `tp`
/// (a fresh one), on the calling platform thread.
///
/// # Safety
/// `tp` is a complete TLS block that nobody uses.
pub(crate) unsafe fn verify(tp: usize) -> Result<(), String> {
    unsafe extern "C" fn exercise(_: *mut u8) {
        for size in [1usize, 24, 100, 1000, 5000, 200_000] {
            // SAFETY: plain use.
            unsafe { libc::free(core::hint::black_box(libc::malloc(size))) };
        }
    }
    let own = crate::arch::thread_pointer();
    // SAFETY: own block and a block the caller gives us.
    unsafe {
        hand_over(own, tp);
        crate::arch::call_with_tp(tp, exercise, core::ptr::null_mut());
        for word in &WORDS {
            let below = word.load(Ordering::Relaxed); // Relaxed: as in `hand_over`.
            let (mine, its) = ((own - below) as *const usize, (tp - below) as *const usize);
            if *mine != *its {
                return Err("malloc changed its per-thread words on a second TLS block".into());
            }
        }
    }
    Ok(())
}

/// Address and length of the calling thread's block of libc's TLS.
fn libc_tls() -> Option<(usize, usize)> {
    let inside_libc = find(c"__libc_malloc").ok()? as usize;
    let tls = objects::find_in(|object| {
        let is_libc = object.segments(0).any(|s| s.contains(&inside_libc));
        is_libc.then(|| object.tls())
    })??;
    (!tls.block.is_null()).then_some((tls.block as usize, tls.size))
}

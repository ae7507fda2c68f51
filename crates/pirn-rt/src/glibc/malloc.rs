//! malloc's per-thread words, so that all virtual threads of a carrier share its cache.
//!
//! glibc keeps two pointers per thread in its TLS: the thread's `tcache` and its arena. With its
//! own TLS block every virtual thread would grow its own cache, which is never freed. So a mount
//! copies the carrier's two words into the virtual thread's block (and an unmount copies them back,
//! because malloc may change them). A fresh platform thread finds the two words: exactly two words
//! of libc's TLS change with its first `malloc`.

use super::objects;
use super::symbols::find_in_libc;
use core::ffi::c_void;
use core::sync::atomic::{AtomicIsize, AtomicPtr, Ordering};

/// Distances of the two words from tp; 0 means that malloc has no words there: a tool of valgrind
/// has put its own malloc in the place of glibc's.
static WORDS: [AtomicIsize; 2] = [AtomicIsize::new(0), AtomicIsize::new(0)];

/// Copies malloc's words from one TLS block to another, if there are any.
///
/// # Safety
/// As for [`hand_over`].
pub(crate) unsafe fn hand_over_found(from_tp: usize, to_tp: usize) {
    if are_there() {
        // SAFETY: the caller's contract.
        unsafe { hand_over(from_tp, to_tp) };
    }
}

/// Returns whether malloc has words in TLS.
fn are_there() -> bool {
    WORDS[0].load(Ordering::Relaxed) != 0 // Relaxed: as in `hand_over`.
}

/// Copies malloc's words from one TLS block to another. There are some, except under valgrind.
///
/// # Safety
/// Both are live TLS blocks and the calling OS thread owns both (one is being unmounted, the other
/// mounted, or one is the OS thread's own).
#[inline(always)]
pub(crate) unsafe fn hand_over(from_tp: usize, to_tp: usize) {
    for word in &WORDS {
        // Relaxed: written once before the first virtual thread; the start of the runtime is
        // published with Release.
        let at = word.load(Ordering::Relaxed);
        // SAFETY: the probe found the word inside every thread's libc TLS.
        unsafe {
            let value = (from_tp.wrapping_add_signed(at) as *const usize).read();
            (to_tp.wrapping_add_signed(at) as *mut usize).write(value);
        }
    }
}

/// Makes sure that the calling platform thread has a cache to hand over.
pub(crate) fn ensure_cache() {
    // SAFETY: malloc and free; `black_box` keeps the pair from being optimised away.
    unsafe { libc::free(core::hint::black_box(libc::malloc(24))) };
}

/// glibc's own `malloc` and `free`, even if the program or a preloaded library has others.
#[derive(Clone, Copy)]
struct Glibc {
    malloc: Malloc,
    realloc: Realloc,
    free: FreeFunction,
}

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type FreeFunction = unsafe extern "C" fn(*mut c_void);

impl Glibc {
    /// Finds both functions. Only the first call asks the dynamic linker, which may allocate, and
    /// waits for its lock.
    fn find() -> Result<Glibc, String> {
        static FOUND: [AtomicPtr<c_void>; 3] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 3];
        let names = [c"__libc_malloc", c"__libc_realloc", c"__libc_free"];
        for (place, name) in FOUND.iter().zip(names) {
            // Relaxed: code addresses need no ordering.
            if place.load(Ordering::Relaxed).is_null() {
                place.store(find_in_libc(name)?, Ordering::Relaxed);
            }
        }
        let found = FOUND.each_ref().map(|place| place.load(Ordering::Relaxed));
        let [malloc, realloc, free] = found;
        // SAFETY: the signatures of malloc, realloc and free.
        Ok(unsafe {
            Glibc {
                malloc: core::mem::transmute::<*mut c_void, Malloc>(malloc),
                realloc: core::mem::transmute::<*mut c_void, Realloc>(realloc),
                free: core::mem::transmute::<*mut c_void, FreeFunction>(free),
            }
        })
    }

    /// Allocates and frees `size` bytes on the running TLS block.
    fn exercise(&self, size: usize) {
        // SAFETY: malloc and free, with the pointer that malloc gave.
        unsafe { (self.free)(core::hint::black_box((self.malloc)(size))) };
    }
}

/// Moves memory from this function to a block of another size, which is aligned to 16 bytes;
/// `memory` is null for a new one. Returns null, and leaves `memory` as it is, if there is no such
/// block.
///
/// # Safety
/// `memory` is null, or from this function and not used afterwards unless the result is null.
pub(crate) unsafe fn reallocate(memory: *mut u8, _old: usize, size: usize) -> *mut u8 {
    match Glibc::find() {
        // SAFETY: realloc, with our caller's contract.
        Ok(glibc) => unsafe { (glibc.realloc)(memory.cast(), size).cast() },
        Err(_) => core::ptr::null_mut(),
    }
}

/// Frees memory.
///
/// # Safety
/// `memory` is from [`reallocate`], and not used afterwards.
pub(crate) unsafe fn free(memory: *mut u8, _size: usize) {
    if let Ok(glibc) = Glibc::find() {
        // SAFETY: the caller's contract.
        unsafe { (glibc.free)(memory.cast()) };
    }
}

/// The maximum number of words of libc's TLS that are compared: four times what glibc 2.43 has.
const MAX_WORDS: usize = 64;

/// Finds glibc's malloc, for [`probe`], which must not ask the dynamic linker.
pub(crate) fn prepare() -> Result<(), String> {
    Glibc::find().map(drop)
}

/// Finds malloc's words. Must run on a fresh platform thread that has not called glibc's `malloc`,
/// after [`prepare`].
pub(crate) fn probe() -> Result<(), String> {
    let glibc = Glibc::find()?;
    let (start, len) = libc_tls(&glibc).ok_or("libc has no static TLS block")?;
    let words = len / 8;
    if words > MAX_WORDS {
        return Err(format!("libc's TLS has grown to {len} bytes"));
    }
    // SAFETY: libc's TLS of this thread, `words` long; no other code writes there.
    let word = |i: usize| unsafe { (start as *const usize).add(i).read_volatile() };
    let mut before = [0usize; MAX_WORDS];
    (0..words).for_each(|i| before[i] = word(i));
    glibc.exercise(24);
    let tp = crate::arch::thread_pointer();
    // A call inside malloc may have failed, and noted it.
    // SAFETY: of the running thread.
    let errno = unsafe { libc::__errno_location() }.addr() & !7;
    let mut changed = (0..words).filter(|&i| word(i) != before[i] && start + i * 8 != errno);
    let found = [changed.next(), changed.next()];
    let count = found.iter().flatten().count() + changed.count();
    if count == 0 && crate::arch::on_valgrind() {
        return Ok(());
    }
    let [Some(first), Some(second)] = found else {
        return Err(unknown(count));
    };
    if count > 2 {
        return Err(unknown(count));
    }
    for (word, index) in WORDS.iter().zip([first, second]) {
        // Relaxed: published by the end of the runtime's start.
        let distance = (start + index * 8).wrapping_sub(tp);
        word.store(distance as isize, Ordering::Relaxed);
    }
    Ok(())
}

fn unknown(count: usize) -> String {
    format!(
        "the first malloc of a thread changed {count} words of libc's TLS, not 2: pirn does not \
         know this malloc"
    )
}

/// Checks that glibc's malloc leaves the words alone once they are set. Runs on the TLS block at
/// `tp` (a fresh one), on the calling platform thread.
///
/// Checks glibc's own malloc only: another one may register its data in the scratch block, which
/// does not live long, with the thread that runs this (jemalloc does, with a key's destructor).
///
/// # Safety
/// `tp` is a complete TLS block that no thread uses.
pub(crate) unsafe fn verify(tp: usize) -> Result<(), String> {
    unsafe extern "C" fn exercise(glibc: *mut u8) {
        // SAFETY: `call_with_tp` below passes a `Glibc`.
        let glibc = unsafe { &*glibc.cast::<Glibc>() };
        for size in [1, 24, 100, 1000, 5000, 200_000] {
            glibc.exercise(size);
        }
    }
    if !are_there() {
        return Ok(());
    }
    let mut glibc = Glibc::find()?;
    let own = crate::arch::thread_pointer();
    // SAFETY: our own block and a block that the caller gives us.
    unsafe {
        hand_over(own, tp);
        crate::arch::call_with_tp(tp, exercise, (&raw mut glibc).cast());
        for word in &WORDS {
            let at = word.load(Ordering::Relaxed); // Relaxed: as in `hand_over`.
            let [mine, its] = [own, tp].map(|tp| tp.wrapping_add_signed(at) as *const usize);
            if *mine != *its {
                return Err("malloc changed its per-thread words on a second TLS block".into());
            }
        }
    }
    Ok(())
}

/// Returns address and length of the calling thread's block of libc's TLS.
fn libc_tls(glibc: &Glibc) -> Option<(usize, usize)> {
    let inside_libc = glibc.malloc as usize;
    let tls = objects::find_in(|object| {
        let is_libc = object.segments(0).any(|s| s.contains(&inside_libc));
        is_libc.then(|| object.tls())
    })??;
    (!tls.block.is_null()).then_some((tls.block as usize, tls.size))
}

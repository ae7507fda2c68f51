//! Libraries that are opened while there are virtual threads.
//!
//! A library's thread-local data are in one of two places:
//!
//! * *Dynamic*: `__tls_get_addr` allocates them when a thread first accesses them, and enters them
//!   in that thread's dtv. Existing threads need no change, as their dtvs are long enough from the
//!   start (see [`tls`]). The template is captured anew, so that new threads start with an
//!   up-to-date dtv.
//! * *Static* (the initial-exec model): at a fixed distance from the thread pointer, accessed
//!   without any call. The dynamic linker initialises the data in all threads on its list. Virtual
//!   threads are not on it, so this file does it for them.
//!
//! The static data must reach each block that was made from the old template, and no block whose
//! thread may already use the data. So no block is made meanwhile:
//!
//! ```text
//!   a maker of a block                     the thread that opened a library
//!   B1  state = MAKING                     L1  WALKING = true
//!       (the compiler keeps the order)     L2  membarrier: a full barrier in every running thread
//!   B2  WALKING? then back off to 0        L3  each block: wait while MAKING; write if READY
//!   B3  load the template, fill in         L4  install the new template
//!   B4  state = READY                      L5  WALKING = false
//! ```
//!
//! For each maker, either B1 comes before L2, and L3 waits for the maker; or B2 comes after L2, and
//! the maker backs off. So the makers need no barrier. A block stays READY when its thread has
//! ended. To write to it then does no harm, since the next block in its place begins after L5.
//!
//! The linker calls the library's initialisers after L5 (`pirn-libc/process/linker.rs`), and no
//! thread can use the data before.

use super::layout;
use super::linker::{self, StaticModule};
use super::tls::{self, Template};
use crate::lock::Lock;
use crate::sys::{self, SysResult};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// The state of the block is unknown: its memory has never been used, or was freed.
const NEVER: usize = 0;
const MAKING: usize = 1;
const READY: usize = 2;

static WALKING: AtomicBool = AtomicBool::new(false);
/// The number of loaded and unloaded libraries that has been taken into account.
static COUNTED: Lock<u64> = Lock::new(0);

/// Gives up the work of a thread of the parent that was opening a library.
///
/// # Safety
/// In the child of a fork that has no runtime yet.
pub(crate) unsafe fn after_fork() {
    WALKING.store(false, Ordering::Relaxed); // Relaxed: there is no runtime yet.
    if COUNTED.is_held() {
        // SAFETY: the caller's contract. Nothing counts: the next one begins anew.
        unsafe { COUNTED.renew(0) };
    }
}

/// The state of one TLS block.
pub(super) struct Block<'a>(&'a AtomicUsize);

impl Block<'_> {
    /// Returns the block whose state is kept at `state`.
    ///
    /// # Safety
    /// The word is readable and writable as long as this is used, and other code accesses it only
    /// by such a value.
    pub(super) unsafe fn at(state: *mut *mut core::ffi::c_void) -> Self {
        // SAFETY: the caller's contract; aligned as a pointer is.
        Block(unsafe { AtomicUsize::from_ptr(state.cast()) })
    }

    /// Begins to make this block: steps B1 and B2.
    #[inline]
    pub(super) fn begin(&self) {
        // Relaxed: ordered by the membarrier of the other side.
        self.0.store(MAKING, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // Acquire: pairs with the Release of L5, for the new template.
        if WALKING.load(Ordering::Acquire) {
            self.begin_later();
        }
    }

    #[cold]
    fn begin_later(&self) {
        let mut round = 0;
        loop {
            self.0.store(NEVER, Ordering::Release); // Release: nothing was written before.
            while WALKING.load(Ordering::Acquire) {
                sys::back_off(round);
                round += 1;
            }
            self.0.store(MAKING, Ordering::Relaxed); // Relaxed: as in `begin`.
            compiler_fence(Ordering::SeqCst);
            if !WALKING.load(Ordering::Acquire) {
                return;
            }
        }
    }

    /// Marks the block as complete: step B4.
    #[inline]
    pub(super) fn finish(&self) {
        // Release: pairs with the Acquire in `wait_until_made`.
        self.0.store(READY, Ordering::Release);
    }

    /// Waits until no thread is making the block. Returns whether there is a block.
    fn wait_until_made(&self) -> bool {
        let mut round = 0;
        loop {
            match self.0.load(Ordering::Acquire) {
                NEVER => return false,
                MAKING => sys::back_off(round),
                _ => return true,
            }
            round += 1;
        }
    }
}

/// Brings virtual threads up to date with the libraries that are loaded now. Cheap if nothing has
/// changed. `for_each_block` calls its argument with the thread pointers of all blocks that may
/// exist.
///
/// # Errors
/// The reason for which virtual threads cannot use a library that was opened.
pub fn catch_up(for_each_block: impl FnOnce(&mut dyn FnMut(usize))) -> Result<(), String> {
    let Some(template) = tls::installed() else {
        return Ok(());
    };
    // Counted before the capture, so that changes in between are seen by the next call.
    let count = linker::libraries_counted();
    if *COUNTED.lock() >= count {
        return Ok(());
    }
    // Outside our lock, because this takes locks of the dynamic linker. They may be held by a
    // thread that runs the initialisers of a library, one of which opens another library and so
    // gets here.
    let newer = template.recapture()?;
    let mut counted = COUNTED.lock();
    if *counted < count {
        replace(newer, for_each_block)
            .map_err(|e| format!("no membarrier, to tell virtual threads: {e}"))?;
        *counted = count;
    }
    Ok(())
}

fn replace(newer: Template, for_each_block: impl FnOnce(&mut dyn FnMut(usize))) -> SysResult {
    let older = tls::template();
    let new: Vec<StaticModule> = newer
        .statics
        .iter()
        .filter(|module| !older.statics.contains(module))
        .copied()
        .collect();
    if new.is_empty() {
        tls::install(newer);
        return Ok(0);
    }
    WALKING.store(true, Ordering::SeqCst);
    let result = sys::barrier_in_every_thread();
    if result.is_ok() {
        for_each_block(&mut |tp| {
            // SAFETY: a slot's thread pointer. The data belong to libraries that no thread can use
            // yet.
            unsafe {
                if older.block_at(tp).wait_until_made() {
                    newer.write(&new, tp);
                }
            }
        });
        tls::install(newer);
    }
    WALKING.store(false, Ordering::Release); // Release: see `Block::begin`.
    result
}

impl Template {
    /// Writes the initial data of `modules` to a block.
    ///
    /// # Safety
    /// `tp` is a complete block; the modules are in this template, and no thread uses them.
    unsafe fn write(&self, modules: &[StaticModule], tp: usize) {
        for module in modules {
            let place = tp.wrapping_add_signed(module.at);
            let from = place - layout::images(tp, self.image.len());
            let image = &self.image[from..from + module.size];
            // SAFETY: a static module's data lie in the block's reserve.
            unsafe {
                (place as *mut u8).copy_from_nonoverlapping(image.as_ptr(), image.len());
            }
        }
    }
}

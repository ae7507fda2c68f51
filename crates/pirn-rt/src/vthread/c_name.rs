//! The name that C's functions have given a thread: 15 letters at most, as in the kernel.
//!
//! It is in the thread's TLS block, also in those of platform threads, at the same distance from
//! the thread pointer. For people it stands in for the name of a thread that Rust has given none.

use super::record::Core;
use crate::glibc::tls;
use core::sync::atomic::{AtomicU64, Ordering};

/// The length of the longest name with its final zero.
pub const ROOM: usize = 16;

/// A name's letters. They are atomic, so that a reader never sees part of a letter.
type Place = [AtomicU64; ROOM / 8];

thread_local! {
    static NAME: Place = const { [const { AtomicU64::new(0) }; ROOM / 8] };
}

/// Returns the place of a thread's name.
///
/// # Safety
/// `thread` is the thread pointer of a slot, or of a platform thread that has not ended.
unsafe fn place<'a>(thread: usize) -> &'a Place {
    // SAFETY: the caller's contract. The memory of a slot without a thread reads as anything.
    unsafe { &*tls::place_of(&NAME, thread) }
}

/// Returns a thread's name, filled up with zeros; all zeros if it has none.
///
/// # Safety
/// As for [`place`].
#[inline]
pub unsafe fn get(thread: usize) -> [u8; ROOM] {
    let mut name = [0; ROOM];
    // SAFETY: the caller's contract.
    let parts = unsafe { place(thread) }.iter();
    for (part, bytes) in parts.zip(name.as_chunks_mut().0) {
        *bytes = part.load(Ordering::Relaxed).to_ne_bytes(); // Relaxed: only letters.
    }
    name
}

/// Sets it.
///
/// # Safety
/// As for [`place`].
#[inline]
pub unsafe fn set(thread: usize, name: &[u8; ROOM]) {
    // SAFETY: the caller's contract.
    let parts = unsafe { place(thread) }.iter();
    for (part, bytes) in parts.zip(name.as_chunks().0) {
        part.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed); // Relaxed: only letters.
    }
}

impl Core {
    /// Calls `f` with the thread's name for people: that of its builder, or else C's.
    pub fn with_name<R>(&self, f: impl FnOnce(Option<&str>) -> R) -> R {
        if self.name().is_some() {
            return f(self.name());
        }
        let Some(slot) = self.slot() else {
            return f(None);
        };
        // SAFETY: a slot.
        let name = unsafe { get(slot.tp()) };
        let letters = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let name = match core::str::from_utf8(letters) {
            Ok(name) => name,
            // C cuts at bytes.
            Err(e) => core::str::from_utf8(&letters[..e.valid_up_to()]).unwrap_or_default(),
        };
        f((!name.is_empty()).then_some(name))
    }
}

//! Who a thread is: its id, its names, and the record of a platform thread.

use super::record::Core;
use super::wait_word::WaitWord;
use crate::glibc::tls;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Returns the first of `count` ids that no other thread or scope of this process has or will have.
pub(crate) fn take_ids(count: u64) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed: only uniqueness matters.
    NEXT.fetch_add(count, Ordering::Relaxed)
}

/// The bytes of a name that are kept.
const MOST: usize = 47;

/// See the module's documentation.
#[derive(Clone, Copy)]
pub struct Label {
    pub id: u64,
    name: [u8; MOST],
    len: u8,
}

impl Label {
    /// Returns the label of a virtual thread.
    #[inline]
    pub fn of(core: &Core) -> Label {
        core.with_name(|name| Label::new(core.id(), name))
    }

    pub fn new(id: u64, name: Option<&str>) -> Label {
        let name = name.unwrap_or_default();
        let mut bytes = [0; MOST];
        let len = name.floor_char_boundary(MOST);
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        Label {
            id,
            name: bytes,
            len: len as u8,
        }
    }

    /// Returns the name, as far as it is kept; empty if the thread has none.
    #[inline]
    pub(crate) fn name(&self) -> &str {
        core::str::from_utf8(&self.name[..usize::from(self.len)]).unwrap_or_default()
    }
}

/// `#7 "name"`, with special characters escaped.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.id)?;
        match self.name() {
            "" => Ok(()),
            name => write!(f, " {name:?}"),
        }
    }
}

/// The length of the longest name with its final zero.
pub const C_NAME: usize = 16;

/// A name's letters. They are atomic, so that a reader never sees part of a letter.
type CName = [AtomicU64; C_NAME / 8];

thread_local! {
    static C_NAME_OF: CName = const { [const { AtomicU64::new(0) }; C_NAME / 8] };
}

/// Returns the place of a thread's name.
///
/// # Safety
/// `thread` is the thread pointer of a slot, or of a platform thread that has not ended.
unsafe fn c_name_of<'a>(thread: usize) -> &'a CName {
    // SAFETY: the caller's contract. The memory of a slot without a thread reads as anything.
    unsafe { &*tls::place_of(&C_NAME_OF, thread) }
}

/// Returns a thread's name, filled up with zeros; all zeros if it has none.
///
/// # Safety
/// As for [`c_name_of`].
#[inline]
pub unsafe fn c_name(thread: usize) -> [u8; C_NAME] {
    let mut name = [0; C_NAME];
    // SAFETY: the caller's contract.
    let parts = unsafe { c_name_of(thread) }.iter();
    for (part, bytes) in parts.zip(name.as_chunks_mut().0) {
        *bytes = part.load(Ordering::Relaxed).to_ne_bytes(); // Relaxed: only letters.
    }
    name
}

/// Sets a thread's name.
///
/// # Safety
/// As for [`c_name_of`].
#[inline]
pub unsafe fn set_c_name(thread: usize, name: &[u8; C_NAME]) {
    // SAFETY: the caller's contract.
    let parts = unsafe { c_name_of(thread) }.iter();
    for (part, bytes) in parts.zip(name.as_chunks().0) {
        part.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed); // Relaxed: only letters.
    }
}

impl Core {
    /// Calls `f` with the thread's name for people: its builder's, or else C's.
    pub fn with_name<R>(&self, f: impl FnOnce(Option<&str>) -> R) -> R {
        if self.name().is_some() {
            return f(self.name());
        }
        let Some(slot) = self.slot() else {
            return f(None);
        };
        // SAFETY: a slot.
        let name = unsafe { c_name(slot.tp()) };
        let letters = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let name = match core::str::from_utf8(letters) {
            Ok(name) => name,
            // C cuts at bytes.
            Err(e) => core::str::from_utf8(&letters[..e.valid_up_to()]).unwrap_or_default(),
        };
        f((!name.is_empty()).then_some(name))
    }
}

/// The state of a platform thread.
pub struct Platform {
    pub thread: std::thread::Thread,
    pub id: u64,
    pub wait: WaitWord,
}

thread_local! {
    static PLATFORM: Arc<Platform> = Arc::new(Platform::of_this_thread());
}

impl Platform {
    /// Returns the record of the running platform thread.
    #[inline]
    pub fn current() -> Arc<Platform> {
        // While thread-locals are being destroyed ours may be gone: a temporary one takes its
        // place.
        PLATFORM
            .try_with(Arc::clone)
            .unwrap_or_else(|_| Arc::new(Platform::of_this_thread()))
    }

    /// Calls `f` with the running platform thread's wait word. `None` near the thread's end.
    pub fn with_wait_word<R>(f: impl FnOnce(&WaitWord) -> R) -> Option<R> {
        PLATFORM.try_with(|platform| f(&platform.wait)).ok()
    }

    fn of_this_thread() -> Platform {
        Platform {
            thread: std::thread::current(),
            id: take_ids(1),
            wait: WaitWord::idle(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Label;

    #[test]
    fn names_are_cut_at_letters_and_escaped() {
        assert_eq!(Label::new(7, None).to_string(), "#7");
        assert_eq!(
            Label::new(7, Some("a\n\u{1b}")).to_string(),
            "#7 \"a\\n\\u{1b}\""
        );
        let long = "é".repeat(40);
        assert_eq!(Label::new(7, Some(&long)).name(), "é".repeat(23));
    }
}

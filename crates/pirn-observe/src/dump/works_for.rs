//! What a thread works for: its annotations, on its stack.
//!
//! The thread stands still while they are read. One that is blocked in a system call may go on at
//! any time: what was read is forgotten if it has. So addresses may be those of anything, and all
//! is read by instructions that may fail.

use crate::hooks::hooks;
use pirn_rt::stack::Slot;
use pirn_rt::sys;

/// An annotation on a thread's stack: the address of its text, the number of its bytes, and the
/// address of the outer annotation, or 0.
pub const ANNOTATION_WORDS: usize = 3;
/// The most names that are read, from the innermost on.
const MOST: usize = 8;
/// Longer names are cut off.
const LONGEST: usize = 256;

/// See the module's documentation.
pub(super) struct WorksFor {
    /// The names, innermost first, and how long each is.
    names: Box<[([u8; LONGEST], usize); MOST]>,
    len: usize,
}

impl WorksFor {
    pub(super) fn new() -> WorksFor {
        WorksFor {
            names: Box::new([([0; LONGEST], 0); MOST]),
            len: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Reads what the thread in a slot works for. The thread has run. Neither allocates nor waits.
    pub(super) fn read(&mut self, slot: Slot) {
        self.len = 0;
        let mut head = word((hooks().annotations)(slot.tp()));
        while let Some(extent) = head.filter(|&extent| extent != 0 && self.len < MOST) {
            let words: [_; ANNOTATION_WORDS] =
                core::array::from_fn(|index| word(extent + index * 8));
            let [Some(text), Some(len), outer] = words else {
                return;
            };
            let (bytes, kept) = &mut self.names[self.len];
            *kept = len.min(LONGEST);
            if copy(text, &mut bytes[..*kept]).is_none() {
                return;
            }
            self.len += 1;
            head = outer;
        }
    }

    /// Returns the names, outermost first.
    pub(super) fn texts(&self) -> Vec<String> {
        let text = |(bytes, len): &([u8; LONGEST], usize)| {
            let first = bytes[..*len].utf8_chunks().next();
            first.map_or_else(String::new, |chunk| chunk.valid().to_owned())
        };
        self.names[..self.len].iter().rev().map(text).collect()
    }
}

/// Reads a word, if there is memory at the address.
fn word(address: usize) -> Option<usize> {
    sys::fetch_u64(address).ok().map(|word| word as usize)
}

/// Copies bytes, if there is memory at the address.
fn copy(mut address: usize, bytes: &mut [u8]) -> Option<()> {
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for chunk in words {
        *chunk = word(address)?.to_ne_bytes();
        address += 8;
    }
    for byte in rest {
        *byte = sys::fetch_u8(address).ok()?;
        address += 1;
    }
    Some(())
}

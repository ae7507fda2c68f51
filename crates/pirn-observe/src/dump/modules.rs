//! The loaded program and libraries, with their unwind information.
//!
//! The information is read in memory: the files may have been replaced. What belongs to a library
//! is copied, because the library may be closed while a stack is read; the program stays.

use core::ops::{Deref, Range};
use pirn_rt::glibc::objects::{self, Object};
use std::sync::Arc;

/// A part of a loaded file.
#[derive(Clone)]
pub(super) enum Bytes {
    /// Of the program, which stays.
    There(&'static [u8]),
    Copied(Arc<[u8]>),
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::There(&[])
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::There(bytes) => bytes,
            Bytes::Copied(bytes) => bytes,
        }
    }
}

/// The unwind information of a file, and its addresses in the process.
#[derive(Clone)]
pub(super) struct Tables {
    /// `.eh_frame_hdr`: functions in the order of their addresses.
    pub(super) index: Bytes,
    pub(super) index_at: usize,
    /// `.eh_frame`, and what follows it.
    pub(super) frames: Bytes,
    pub(super) frames_at: usize,
}

/// A piece of code of the program or a library.
pub(super) struct Module {
    /// As the dynamic linker found it; empty for the program.
    pub(super) path: Vec<u8>,
    pub(super) build_id: Vec<u8>,
    /// What to subtract from an address to get the file's own.
    pub(super) bias: usize,
    pub(super) code: Range<usize>,
    /// Where the code is in the file.
    pub(super) offset: u64,
    pub(super) tables: Option<Tables>,
}

/// See the module's documentation.
pub(super) struct Modules {
    /// In the order of their addresses.
    pub(super) all: Vec<Module>,
    /// How many objects had been loaded and unloaded.
    changes: u64,
}

impl Modules {
    /// Returns what is loaded now.
    pub(super) fn loaded() -> Modules {
        let mut modules = Modules {
            all: Vec::new(),
            changes: changes(),
        };
        objects::find_in(|object| {
            modules.add(&object);
            None::<()>
        });
        modules.all.sort_by_key(|module| module.code.start);
        modules
    }

    /// Returns whether something else may be loaded by now.
    pub(super) fn are_old(&self) -> bool {
        changes() != self.changes
    }

    fn add(&mut self, object: &Object<'_>) {
        let tables = Tables::of(object);
        for (code, offset) in object.code() {
            self.all.push(Module {
                path: object.name().to_bytes().to_vec(),
                build_id: object.build_id().unwrap_or_default().to_vec(),
                bias: object.base(),
                code,
                offset,
                tables: tables.clone(),
            });
        }
    }

    /// Returns the function that an address is in, according to the unwind information.
    pub(super) fn function_at(&self, address: usize) -> Option<Range<usize>> {
        let after = self.all.partition_point(|m| m.code.start <= address);
        let module = &self.all[after.checked_sub(1)?];
        let tables = module.tables.as_ref()?;
        let inside = module.code.contains(&address);
        inside.then(|| tables.function_at(address)).flatten()
    }
}

fn changes() -> u64 {
    objects::find_in(|object| Some(object.changes())).unwrap_or(0)
}

/// The beginning of an index: version 1, and the encodings that all linkers use (DW_EH_PE_…): where
/// `.eh_frame` is, as a distance from here; the number of entries; entries of two distances from
/// the index.
const HEAD: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// The place of the first entry.
const ENTRIES: usize = 12;

impl Tables {
    fn of(object: &Object<'_>) -> Option<Tables> {
        let index = object.unwind_index_bytes()?;
        let index_at = index.as_ptr().addr();
        if index.get(..4)? != HEAD {
            return None;
        }
        let frames_at = (index_at + 4).wrapping_add_signed(word(index, 4)? as isize);
        let frames = object.bytes_from(frames_at)?;
        let stays = object.name().is_empty();
        let bytes = |bytes: &[u8]| match stays {
            // SAFETY: the program's own file is never unloaded.
            true => Bytes::There(unsafe { &*core::ptr::from_ref(bytes) }),
            false => Bytes::Copied(bytes.into()),
        };
        Some(Tables {
            index: bytes(index),
            index_at,
            frames: bytes(frames),
            frames_at,
        })
    }

    fn function_at(&self, address: usize) -> Option<Range<usize>> {
        let count = word(&self.index, 8)? as u32 as usize;
        let count = count.min((self.index.len() - ENTRIES) / 8);
        let at = |entry: usize, field: usize| {
            let distance = word(&self.index, ENTRIES + entry * 8 + field).unwrap_or(0);
            self.index_at.wrapping_add_signed(distance as isize)
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            match at(middle, 0) <= address {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let entry = low.checked_sub(1)?;
        let (start, description) = (at(entry, 0), at(entry, 4));
        let end = start
            + self
                .length_of(description, start)
                .unwrap_or(usize::MAX - start);
        (address < end).then_some(start..end)
    }

    /// Returns the length of the function that an entry of `.eh_frame` describes, if that is
    /// encoded in the usual way.
    fn length_of(&self, description: usize, start: usize) -> Option<usize> {
        let at = description.checked_sub(self.frames_at)?;
        let distance = word(&self.frames, at + 8)?;
        let described = (description + 8).wrapping_add_signed(distance as isize);
        let length = word(&self.frames, at + 12)? as u32 as usize;
        (described == start).then_some(length)
    }
}

/// Returns the number of four bytes at this place.
fn word(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(i32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests;

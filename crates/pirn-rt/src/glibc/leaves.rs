//! libc's functions that may be interrupted in the middle: those that call nothing, take no lock
//! and use nothing but the memory they were given (`memcpy`, `strlen`, …).
//!
//! A program can spend milliseconds in one call of them. Each is written in assembly, in several
//! versions, of which libc has picked one for this processor. The unwind information tells where
//! that one ends, and proves that it never moves the stack pointer: so the word there is always its
//! return address.

use super::objects::Object;
use super::symbols::find_in_libc;
use core::ffi::CStr;
use core::ops::Range;

const NAMES: [&CStr; 20] = [
    c"memcpy",
    c"memmove",
    c"mempcpy",
    c"memset",
    c"memcmp",
    c"memchr",
    c"memrchr",
    c"rawmemchr",
    c"strlen",
    c"strnlen",
    c"strchr",
    c"strchrnul",
    c"strrchr",
    c"strcmp",
    c"strncmp",
    c"strcpy",
    c"stpcpy",
    c"wmemset",
    c"wmemcmp",
    c"wcslen",
];

/// Returns the addresses of the functions, which cannot be looked up under the linker's lock.
pub(super) fn addresses() -> Vec<usize> {
    let found = NAMES.iter().filter_map(|name| find_in_libc(name).ok());
    found.map(|address| address as usize).collect()
}

/// Returns the code of those of these functions that are in `object` and never move the stack
/// pointer.
pub(super) fn find(object: &Object<'_>, functions: &[usize]) -> Vec<Range<usize>> {
    let Some(index) = object.unwind_index() else {
        return Vec::new();
    };
    let code: Vec<Range<usize>> = object.segments(libc::PF_X).collect();
    let inside = |address: &&usize| code.iter().any(|range| range.contains(address));
    let inside = functions.iter().filter(inside);
    // SAFETY: the index of a loaded object.
    let mut leaves: Vec<Range<usize>> = inside
        .filter_map(|&function| unsafe { leaf_at(index, function) })
        .collect();
    leaves.sort_by_key(|range| range.start);
    leaves.dedup();
    leaves
}

/// Reads a `T` at an address that need not be aligned.
///
/// # Safety
/// It is readable, and any bits are a `T`.
unsafe fn read<T: Copy>(address: usize) -> T {
    // SAFETY: the caller's contract.
    unsafe { (address as *const T).read_unaligned() }
}

/// Returns the address that is stored at `place` as a distance from there.
///
/// # Safety
/// Four bytes are readable.
unsafe fn relative(place: usize) -> usize {
    // SAFETY: the caller's contract.
    place.wrapping_add_signed(unsafe { read::<i32>(place) } as isize)
}

/// Returns the code that the unwind information of `function` is for, if the stack pointer never
/// moves in it.
///
/// # Safety
/// `index` is the address of a loaded object's `.eh_frame_hdr`.
unsafe fn leaf_at(index: usize, function: usize) -> Option<Range<usize>> {
    /// Version 1; the table's encodings as all linkers write them (DW_EH_PE_…).
    const HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    const ENTRY: usize = 8;
    // SAFETY: the index, its table, and the entries that it refers to, as the format says.
    unsafe {
        if read::<[u8; 4]>(index) != HEADER {
            return None;
        }
        let (count, table) = (read::<u32>(index + 8) as usize, index + 12);
        let at = |i: usize, word: usize| {
            let distance = read::<i32>(table + i * ENTRY + 4 * word);
            index.wrapping_add_signed(distance as isize)
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            match at(middle, 0) <= function {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        leaf_of(at(low.checked_sub(1)?, 1)).filter(|range| range.contains(&function))
    }
}

/// Returns the code that this entry of `.eh_frame` is for, if it says nothing about any part of it
/// but what holds for the first instruction: the return address is on top of the stack.
///
/// # Safety
/// `entry` is the address of an entry.
unsafe fn leaf_of(entry: usize) -> Option<Range<usize>> {
    /// The common part that compilers and assemblers write for x86-64: version, augmentation "zR",
    /// alignments, return address column, encoding of addresses, and the two first rules.
    const COMMON: [u8; 14] = [
        1, b'z', b'R', 0, 1, 0x78, 0x10, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,
    ];
    // SAFETY: the caller's contract, and the format's lengths.
    unsafe {
        let length = read::<u32>(entry) as usize;
        let common = (entry + 4).wrapping_sub(read::<u32>(entry + 4) as usize);
        if !(13..=4096).contains(&length) || read::<[u8; 14]>(common + 8) != COMMON {
            return None;
        }
        let start = relative(entry + 8);
        let end = start + read::<u32>(entry + 12) as usize;
        // No augmentation data, then instructions: all of them do nothing.
        let rest = core::slice::from_raw_parts((entry + 16) as *const u8, length - 12);
        rest.iter().all(|&byte| byte == 0).then_some(start..end)
    }
}

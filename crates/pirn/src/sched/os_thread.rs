//! What a platform thread is doing, according to the kernel: it computes, waits for a CPU, or is
//! blocked.
//!
//! On a busy machine a carrier that stands still may only be waiting for its turn. One more carrier
//! would make all of them wait longer.

use crate::sys;
use core::cell::Cell;
use core::ffi::CStr;

thread_local! {
    static ID: Cell<u32> = const { Cell::new(0) };
}

/// Returns the calling platform thread's id. Runs on the platform thread's own stack.
pub(crate) fn id() -> u32 {
    if ID.get() == 0 {
        // SAFETY: no arguments.
        ID.set(unsafe { libc::gettid() } as u32);
    }
    ID.get()
}

/// Returns the CPU time that a thread of this process has used; 0 if no thread has this id.
pub(crate) fn cpu_time(id: u32) -> u64 {
    // A thread's clock: the complement of its id, "of a thread" (4), "as the scheduler counts" (2).
    sys::clock(!(id as i32) << 3 | 6)
}

/// Returns whether a thread neither runs nor waits for a CPU; also `true` if the kernel does not
/// say.
pub(crate) fn is_blocked(id: u32) -> bool {
    let mut text = [0; 64];
    // The state is the field after the name, which is in parentheses and may contain any.
    let state = read(id, b"/stat", &mut text)
        .windows(3)
        .rev()
        .find(|w| w.starts_with(b") "));
    state.is_none_or(|w| w[2] != b'R')
}

/// Returns the name of a thread of this process.
pub(crate) fn name(id: u32) -> Option<String> {
    let mut text = [0; 64];
    let name = String::from_utf8_lossy(read(id, b"/comm", &mut text));
    let name = name.trim_end();
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the contents of the kernel's `file` about a thread of this process, as far as they fit:
/// nothing if no thread has this id.
pub(crate) fn read<'a>(id: u32, file: &[u8], text: &'a mut [u8]) -> &'a [u8] {
    let mut path = [0; 48];
    path_of(id, file, &mut path);
    match CStr::from_bytes_until_nul(&path) {
        Ok(path) => sys::read_file(path, text).unwrap_or(&[]),
        Err(_) => &[],
    }
}

/// Writes the path of the kernel's `file` about a thread of this process. `file` has at most 9
/// bytes.
fn path_of(id: u32, file: &[u8], path: &mut [u8; 48]) {
    const FOLDER: &[u8] = b"/proc/self/task/";
    let digits = 1 + id.checked_ilog10().unwrap_or(0) as usize;
    let (name, end) = (FOLDER.len(), FOLDER.len() + digits);
    path[..name].copy_from_slice(FOLDER);
    let mut rest = id;
    for digit in path[name..end].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    path[end..end + file.len()].copy_from_slice(file);
}

#[cfg(test)]
mod tests;

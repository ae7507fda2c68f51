//! Leaving alone the programs that this one starts.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;

/// Takes this library out of `LD_PRELOAD`, which the children inherit. In place: no thread has
/// begun yet, and nothing is allocated.
pub fn leave_alone() {
    const PRELOADED: &CStr = c"LD_PRELOAD";
    // SAFETY: C strings; the environment is not in use yet, its texts are the process's to change.
    unsafe {
        libc::unsetenv(c"PIRN_CHILDREN".as_ptr());
        let value = libc::getenv(PRELOADED.as_ptr());
        if value.is_null() {
            return;
        }
        let text = core::slice::from_raw_parts_mut(value.cast::<u8>(), libc::strlen(value));
        let left = remove(text, own_path().to_bytes());
        *value.add(left) = 0;
        if left == 0 {
            libc::unsetenv(PRELOADED.as_ptr());
        }
    }
}

/// Removes the entries that are `own` from a list with colons or spaces. Returns the length of what
/// is left, at the beginning.
fn remove(list: &mut [u8], own: &[u8]) -> usize {
    let is_separator = |byte: u8| byte == b':' || byte == b' ';
    let (mut left, mut at) = (0, 0);
    while at < list.len() {
        let rest = &list[at..];
        let length = rest
            .iter()
            .position(|&byte| is_separator(byte))
            .unwrap_or(rest.len());
        // With the separator before it, unless it becomes the first.
        let from = if left > 0 && at > 0 { at - 1 } else { at };
        if length > 0 && &rest[..length] != own {
            list.copy_within(from..at + length, left);
            left += at + length - from;
        }
        at += length + 1;
    }
    left
}

/// Returns the path that this library was loaded by.
fn own_path() -> &'static CStr {
    // SAFETY: all zeros is a valid `Dl_info`; dladdr takes any address, and returns texts of the
    // dynamic linker, which stay as long as this library.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        let found = libc::dladdr(own_path as *const c_void, &mut info);
        let name: *const c_char = if found == 0 {
            ptr::null()
        } else {
            info.dli_fname
        };
        if name.is_null() {
            c""
        } else {
            CStr::from_ptr(name)
        }
    }
}

#[cfg(test)]
mod tests;

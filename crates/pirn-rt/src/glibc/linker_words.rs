//! Words in the data of the dynamic linker: its locks, and the addresses of libc's functions that
//! it calls.
//!
//! The linker locks by libc's `pthread_mutex_lock`, whose address it keeps in a word of its own.
//! Neither the words nor the locks have names; they are found by their contents.

use super::objects;
use super::symbols::find;
use crate::sys::{Errno, SysResult, call};
use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};

const PAGE: usize = 4096;

/// A place in the linker's data.
#[derive(Clone, Copy)]
struct Place {
    address: usize,
    /// Whether the linker has made it read-only, since it needed to be written at the start alone.
    read_only: bool,
}

/// Returns the place of `size` bytes for which `is_it` returns true; `None`: there is none. The
/// linker's lock of its list of objects is held meanwhile.
fn find_place(size: usize, is_it: impl Fn(usize) -> bool) -> Result<Option<Place>, String> {
    let linkers = find(c"_dl_allocate_tls")? as usize;
    let found = objects::find_in(|object| {
        let mut code = object.segments(libc::PF_X);
        if !code.any(|code| code.contains(&linkers)) {
            return None;
        }
        let read_only = object.read_only_after_start();
        let mut places = object
            .segments(libc::PF_W)
            .flat_map(|data| {
                (data.start.next_multiple_of(8)..data.end.saturating_sub(size)).step_by(8)
            })
            .filter(|&address| is_it(address));
        let place = places.next().map(|address| Place {
            address,
            read_only: read_only.contains(&address),
        });
        Some(match places.next() {
            None => Ok(place),
            Some(_) => Err("this dynamic linker's data have a word twice that must be one".into()),
        })
    });
    found.unwrap_or_else(|| Err("the dynamic linker is not among the loaded objects".into()))
}

/// Returns the address of the `size` bytes in the linker's data for which `is_it` returns true.
/// Meanwhile the running thread has the linker's lock of its list of objects.
pub fn find_bytes(size: usize, is_it: impl Fn(usize) -> bool) -> Result<usize, String> {
    match find_place(size, is_it)? {
        Some(place) => Ok(place.address),
        None => Err("this dynamic linker's locks are not where pirn looks".into()),
    }
}

/// Has the linker call `to` in place of the function `from` of libc. Returns whether it calls that
/// by a word at all.
///
/// # Errors
/// The kernel refuses to make the word writable, or there are several.
///
/// # Safety
/// `to` does what `from` does.
pub unsafe fn redirect(from: *const c_void, to: *const c_void) -> Result<bool, String> {
    let holds = |address: usize| {
        // SAFETY: an aligned word of the linker's data. Relaxed: written at the start.
        unsafe { AtomicUsize::from_ptr(address as *mut usize) }.load(Ordering::Relaxed)
            == from.addr()
    };
    let Some(place) = find_place(size_of::<usize>(), holds)? else {
        return Ok(false);
    };
    let protect = |protection| -> SysResult {
        match place.read_only {
            // SAFETY: the page of the word, whose contents stay.
            true => unsafe {
                call!(
                    libc::SYS_mprotect,
                    place.address & !(PAGE - 1),
                    PAGE,
                    protection
                )
            },
            false => Ok(0),
        }
    };
    let failed = |e: Errno| format!("the dynamic linker's data cannot be changed: {e}");
    protect(libc::PROT_READ | libc::PROT_WRITE).map_err(failed)?;
    // SAFETY: as above, and now writable. Release: pairs with the dependency of the linker's call
    // on the address that it reads.
    unsafe { AtomicUsize::from_ptr(place.address as *mut usize) }
        .store(to.addr(), Ordering::Release);
    protect(libc::PROT_READ).map_err(failed)?;
    Ok(true)
}

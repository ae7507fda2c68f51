//! `sys/select.h`.

use super::poll::wait_for_any;
use crate::interpose::registry::interposed;
use crate::interpose::virtual_thread;
use crate::sys::{self, Errno, SysResult, call};
use crate::time::Deadline;
use crate::vthread::wait_word::Hearing;
use core::ffi::c_int;
use libc::{FD_SETSIZE, fd_set, sigset_t, timespec, timeval};

interposed! {
    family "Waiting for descriptors, in sets" for Scaling, cannot "park with a signal mask";

    Parks by hand { select, pselect }
    Parks as {
        fn __select(
            count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set,
            timeout: *mut timeval,
        ) -> c_int = select(count, read, write, except, timeout);
    }
}

/// The three sets of a call, as the kernel overwrites them.
struct Sets {
    pointers: [*mut fd_set; 3],
    asked: [Option<fd_set>; 3],
}

impl Sets {
    unsafe fn new(pointers: [*mut fd_set; 3]) -> Sets {
        // SAFETY: the caller passes valid sets or null.
        let asked = pointers.map(|p| unsafe { p.as_ref() }.copied());
        Sets { pointers, asked }
    }

    /// `select` without waiting, on what was asked for.
    fn ask(&self, count: c_int) -> SysResult {
        for (pointer, asked) in self.pointers.iter().zip(&self.asked) {
            if let Some(asked) = asked {
                // SAFETY: valid if it was asked for.
                unsafe { **pointer = *asked };
            }
        }
        let none = timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let [read, write, except] = self.pointers;
        // SAFETY: valid sets or null.
        unsafe {
            call!(
                libc::SYS_pselect6,
                count,
                read,
                write,
                except,
                &raw const none,
                0
            )
        }
    }

    fn watched(&self, count: c_int) -> Vec<(c_int, bool, bool)> {
        let has = |set: &Option<fd_set>, fd: c_int| {
            // SAFETY: below FD_SETSIZE.
            set.as_ref()
                .is_some_and(|set| unsafe { libc::FD_ISSET(fd, set) })
        };
        let [read, write, except] = &self.asked;
        (0..count.min(FD_SETSIZE as c_int))
            .map(|fd| (fd, has(read, fd) || has(except, fd), has(write, fd)))
            .filter(|&(_, read, write)| read || write)
            .collect()
    }
}

unsafe fn select_virtually(
    count: c_int,
    sets: [*mut fd_set; 3],
    timeout: Option<u64>,
) -> SysResult {
    // SAFETY: the caller's contract.
    let sets = unsafe { Sets::new(sets) };
    let first = sets.ask(count)?;
    if first > 0 || timeout == Some(0) {
        return Ok(first);
    }
    wait_for_any(
        &sets.watched(count),
        Deadline::after_timeout(timeout),
        Hearing::Always,
        || sets.ask(count),
    )
}

/// `select`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: the caller's contract.
    sys::to_c(unsafe {
        if virtual_thread().is_none() {
            call!(libc::SYS_select, count, read, write, except, timeout)
        } else {
            match timeout.as_ref() {
                Some(t) if t.tv_sec < 0 || t.tv_usec < 0 => Err(Errno(libc::EINVAL)),
                t => {
                    let nanos =
                        t.map(|t| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000);
                    let start = sys::now();
                    let result = select_virtually(count, [read, write, except], nanos);
                    if let Some(left) = nanos.map(|n| n.saturating_sub(sys::now() - start)) {
                        // Linux says how much of the time was left.
                        let (tv_sec, tv_usec) = (left / 1_000_000_000, left % 1_000_000_000 / 1000);
                        *timeout = timeval {
                            tv_sec: tv_sec as i64,
                            tv_usec: tv_usec as i64,
                        };
                    }
                    result
                }
            }
        }
    }) as c_int
}

/// `pselect`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's contract.
    sys::to_c(unsafe {
        if virtual_thread().is_some() && mask.is_null() {
            select_virtually(
                count,
                [read, write, except],
                timeout.as_ref().map(sys::nanos),
            )
        } else {
            // As in ppoll: the kernel writes the time left, which libc hides. The mask comes with
            // its size.
            let mut copy = timeout.as_ref().copied();
            let timeout = copy
                .as_mut()
                .map_or(core::ptr::null_mut(), |t| t as *mut timespec);
            let mask = [mask as usize, 8];
            call!(
                libc::SYS_pselect6,
                count,
                read,
                write,
                except,
                timeout,
                mask.as_ptr()
            )
        }
    }) as c_int
}

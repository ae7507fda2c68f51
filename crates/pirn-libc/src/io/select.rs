//! `sys/select.h`.

use crate::io::poll::{Watched, wait_for_any};
use crate::registry::interposed;
use crate::signals::masks;
use crate::virtual_thread;
use core::ffi::c_int;
use core::ptr;
use libc::{fd_set, sigset_t, timespec, timeval};
use pirn_libc_macros::libc_fn;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_word::Interruptible;

interposed! {
    family "Waiting for descriptors, in sets" for Scaling;

    Parks by hand { select, pselect }
    Parks alias { __select = select }
}

/// Bits per word of a set.
const BITS: usize = 64;
/// The maximum number of descriptors of a process.
const MOST: usize = 1 << 20;

/// The three sets of a call: the number of descriptors they cover, their addresses, and the bits
/// asked for. A set may be larger than `fd_set`. If `count` claims more than the program has room
/// for, the kernel only reads as far as there can be open descriptors.
struct Sets {
    count: usize,
    pointers: [*mut u64; 3],
    asked: [Vec<u64>; 3],
}

impl Sets {
    /// Copies the bits asked for, as far as there is memory; the kernel reports what is missing.
    fn new(count: c_int, pointers: [*mut fd_set; 3]) -> Sets {
        let count = usize::try_from(count).unwrap_or(0).min(MOST);
        let pointers = pointers.map(<*mut fd_set>::cast::<u64>);
        let asked = pointers.map(|pointer| {
            let words = if pointer.is_null() {
                0
            } else {
                count.div_ceil(BITS)
            };
            (0..words)
                .map_while(|i| sys::fetch_u64(pointer.wrapping_add(i).addr()).ok())
                .collect()
        });
        Sets {
            count,
            pointers,
            asked,
        }
    }

    /// Removes the words that the kernel has not read: after a call that has found nothing, it has
    /// cleared those that it has read.
    ///
    /// # Safety
    /// The kernel has accepted the sets.
    unsafe fn keep_seen(&mut self) {
        for (&pointer, asked) in self.pointers.iter().zip(&self.asked) {
            let cleared = |&(i, &word): &(usize, &u64)| {
                // SAFETY: the word was read before.
                word == 0 || unsafe { *pointer.add(i) } == 0
            };
            if !pointer.is_null() {
                let seen = asked.iter().enumerate().take_while(cleared).count();
                self.count = self.count.min(seen * BITS);
            }
        }
    }

    /// Calls `select` without waiting, on the bits asked for. Stores the result for the program.
    ///
    /// # Safety
    /// As for [`keep_seen`](Self::keep_seen), which has been called.
    unsafe fn ask(&self) -> SysResult {
        let mut found = self.asked.clone();
        let [read, write, except] = found.each_mut().map(|set| match set.is_empty() {
            true => core::ptr::null_mut(),
            false => set.as_mut_ptr(),
        });
        // SAFETY: sets of our own, as large as the count says, or null.
        let result = unsafe { select_now(self.count, read, write, except) };
        if let Ok(1..) = result {
            // SAFETY: the caller's contract.
            unsafe { self.store(&found) };
        }
        result
    }

    /// Stores sets for the program, in the words in which it has asked for any.
    ///
    /// # Safety
    /// As for `ask`.
    unsafe fn store(&self, sets: &[Vec<u64>; 3]) {
        for ((&pointer, set), asked) in self.pointers.iter().zip(sets).zip(&self.asked) {
            let words = asked.iter().take(self.count.div_ceil(BITS)).enumerate();
            for (i, _) in words.filter(|&(_, &asked)| asked != 0) {
                // SAFETY: the kernel has cleared this word, and written it before.
                unsafe { *pointer.add(i) = set[i] };
            }
        }
    }

    /// Returns the descriptors asked for.
    fn watched(&self) -> Vec<Watched> {
        let has = |set: &[u64], fd: usize| {
            set.get(fd / BITS)
                .is_some_and(|word| word >> (fd % BITS) & 1 != 0)
        };
        let [read, write, except] = &self.asked;
        (0..self.count)
            .map(|fd| (fd, has(read, fd) || has(except, fd), has(write, fd)))
            .filter(|&(_, read, write)| read || write)
            .map(|(fd, read, write)| Watched::new(fd as c_int, read, write))
            .collect()
    }
}

/// Calls `select` without waiting.
///
/// # Safety
/// As for `select(2)`.
unsafe fn select_now(count: usize, read: *mut u64, write: *mut u64, except: *mut u64) -> SysResult {
    let none = sys::timespec(0);
    let none = &raw const none;
    // A signal ends even a call that does not wait; then the sets are as they were.
    sys::uninterrupted(|| {
        // SAFETY: the caller's contract, and a valid timespec.
        unsafe { call!(libc::SYS_pselect6, count, read, write, except, none, 0) }
    })
}

unsafe fn select_virtually(
    count: c_int,
    pointers: [*mut fd_set; 3],
    timeout: Option<u64>,
) -> SysResult {
    let mut sets = Sets::new(count, pointers);
    let [read, write, except] = sets.pointers;
    // SAFETY: the caller's contract.
    let first = unsafe { select_now(count as usize, read, write, except)? };
    if first > 0 || timeout == Some(0) {
        return Ok(first);
    }
    // A handler that leaves the wait by a jump leaves them as the program has given them.
    // SAFETY: the kernel has just accepted them.
    unsafe {
        sets.keep_seen();
        sets.store(&sets.asked);
    }
    let deadline = Deadline::after_timeout(timeout);
    // SAFETY: the kernel has just accepted them.
    let ask = || unsafe { sets.ask() };
    let result = wait_for_any(sets.watched(), deadline, Interruptible::Always, ask);
    if let Ok(0) = result {
        let none = sets.asked.each_ref().map(|set| vec![0; set.len()]);
        // SAFETY: the kernel has just accepted them.
        unsafe { sets.store(&none) };
    }
    result
}

/// Reads a timeout from a `timeval`, in nanoseconds. `EINVAL`: it is not a valid time.
fn fetch_timeout(address: *const timeval) -> Result<Option<u64>, Errno> {
    if address.is_null() {
        return Ok(None);
    }
    let [seconds, micros] = sys::fetch_time(address.addr())?.map(u64::try_from);
    let (Ok(seconds), Ok(micros)) = (seconds, micros) else {
        return Err(Errno(libc::EINVAL));
    };
    let nanos = micros.saturating_mul(1000);
    Ok(Some(
        seconds.saturating_mul(1_000_000_000).saturating_add(nanos),
    ))
}

#[libc_fn(point)]
pub unsafe fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    if virtual_thread().is_none() {
        let selected = fetch_timeout(timeout).and_then(|nanos| {
            let mut left = sys::timespec(nanos.unwrap_or(0));
            let time = nanos.map_or(ptr::null_mut(), |_| &raw mut left);
            let result = call!(libc::SYS_pselect6, count, read, write, except, time, 0);
            if !timeout.is_null() {
                let (tv_sec, tv_usec) = (left.tv_sec, left.tv_nsec / 1000);
                *timeout = timeval { tv_sec, tv_usec };
            }
            result
        });
        return sys::to_c(selected) as c_int;
    }
    let start = sys::now();
    sys::to_c(fetch_timeout(timeout).and_then(|nanos| {
        let result = select_virtually(count, [read, write, except], nanos);
        if let Some(left) = nanos.map(|n| n.saturating_sub(sys::now() - start)) {
            let tv_sec = (left / 1_000_000_000) as i64;
            let tv_usec = (left % 1_000_000_000 / 1000) as i64;
            // Linux stores the time left.
            // SAFETY: the caller's; it was read before.
            unsafe { *timeout = timeval { tv_sec, tv_usec } };
        }
        result
    })) as c_int
}

#[libc_fn(point)]
pub unsafe fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    sys::to_c({
        if let Some(thread) = virtual_thread() {
            sys::fetch_timeout(timeout).and_then(|nanos| {
                let sets = [read, write, except];
                let wait = |nanos| select_virtually(count, sets, nanos);
                masks::waiting(thread, mask, nanos, wait)
            })
        } else {
            // As in ppoll: the kernel writes the time left, which libc hides. The mask comes
            // with its size.
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

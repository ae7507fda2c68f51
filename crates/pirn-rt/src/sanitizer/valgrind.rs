//! Valgrind, in particular its tool memcheck.
//!
//! How it follows a switch is told in `arch/x86_64/valgrind.rs`. Beside that, memcheck must know
//! which memory of a slot may be used: it sees that frames come and go, but neither that a thread's
//! end leaves its frames behind, nor that a new thread starts on the same stack.
//!
//! Valgrind makes the system calls of the program, and complains about those that it does not know.
//! The runtime's own calls have substitutes for old kernels: [`kernel_has`] chooses these.

use super::{MEMCHECK, VALGRIND, is};
use crate::arch::{self, Memory};
use crate::glibc::{objects, tls};
use crate::lock::Lock;
use core::ops::Range;

/// Returns whether this process runs under memcheck, which preloads a library of its own.
pub(super) fn is_memcheck() -> bool {
    let preloaded = |object: objects::Object<'_>| {
        let name = object.name().to_bytes();
        let library = b"/vgpreload_memcheck-";
        name.windows(library.len())
            .any(|w| w == library)
            .then_some(())
    };
    arch::on_valgrind() && objects::find_in(preloaded).is_some()
}

/// Returns whether a system call of the runtime's own may be tried, which is not in all kernels.
#[inline]
pub fn kernel_has(number: libc::c_long) -> bool {
    /// What valgrind 3.19 does not know. Newer ones do, but no user would notice.
    const UNKNOWN: [libc::c_long; 4] = [
        libc::SYS_pidfd_open,
        libc::SYS_openat2,
        libc::SYS_process_madvise,
        libc::SYS_epoll_pwait2,
    ];
    !(is(VALGRIND) && UNKNOWN.contains(&number))
}

/// Returns the address that the stack pointer must have for a moment on the way to `sp`.
pub(crate) fn way_to(sp: *mut u8) -> *mut u8 {
    match is(VALGRIND) {
        true => arch::NOWHERE as *mut u8,
        false => sp,
    }
}

/// Records where the table of the running platform thread's TLS blocks (its dtv) was allocated.
/// glibc has a pointer into it only, so that memcheck would report the tables of all threads that
/// run at the end of the program as possibly lost. Called by the runtime's own threads.
pub fn note_platform_thread() {
    static TABLES: Lock<Vec<usize>> = Lock::new(Vec::new());
    if is(MEMCHECK) {
        let table = tls::own_dtv_memory();
        let mut tables = TABLES.lock();
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
}

/// Returns the maximum size of a mapping: memcheck writes a line about each that is larger.
pub(crate) fn largest_mapping(otherwise: usize) -> usize {
    match is(MEMCHECK) {
        true => 128 << 20,
        false => otherwise,
    }
}

/// Announces address space that has been reserved for slots.
pub(crate) fn reserved(addresses: Range<usize>) {
    if is(MEMCHECK) {
        arch::tell_memcheck(Memory::Closed, addresses);
    }
}

/// Announces the memory above the stack of a slot that is ready for its first thread.
pub(crate) fn created(block: Range<usize>) {
    if is(MEMCHECK) {
        arch::tell_memcheck(Memory::Defined, block);
    }
}

/// Announces that a thread is about to start on a stack.
pub(crate) fn begin(frames: Range<usize>) {
    /// Bytes that the first frame has when it is entered, and those that a frame may use below
    /// itself.
    const FIRST: usize = 32 + 128;
    if is(MEMCHECK) {
        let first = frames.end - FIRST;
        arch::tell_memcheck(Memory::Closed, frames.start..first);
        arch::tell_memcheck(Memory::Undefined, first..frames.end);
    }
}

/// Announces that a thread has left its stack for good.
pub(crate) fn end(frames: Range<usize>) {
    if is(MEMCHECK) {
        arch::tell_memcheck(Memory::Closed, frames);
    }
}

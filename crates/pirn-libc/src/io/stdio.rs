//! `stdio.h`: opening and closing streams.
//!
//! libc's streams read and write from inside libc, where nothing can be interposed. The calling
//! thread may have locked a stream (`flockfile`), so its functions cannot run on another thread.
//! Hence reading and writing a `FILE` (`fgets`, `fprintf`, `fflush`, …) blocks the carrier for as
//! long as the kernel makes it wait. For files that is short; streams on pipes and sockets are
//! better read with `read`.
//!
//! Opening and closing are interposed to keep the table of descriptors correct, and because an open
//! may take long. `fclose` writes the rest of the buffer, and blocks the carrier meanwhile.

use crate::Text;
use crate::forward::from_c;
use crate::fs::lock::lock_released;
use crate::fs::open::{obstacle, patiently};
use crate::process::inherit;
use crate::registry::interposed;
use core::ffi::{c_char, c_int};
use libc::FILE;
use pirn_rt::blocking::{fds, pool};
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys::{self, Errno};
use pirn_rt::vthread::awaited::Awaited;

type Stream = *mut FILE;

interposed! {
    family "Streams" for Scaling,
        cannot "read, write or flush a `FILE` without blocking the carrier";

    Pool as {
        fn fopen(path: Text, mode: Text) -> Stream
            = open(path, || real!(fn fopen(path: Text, mode: Text) -> Stream));
        fn fopen64(path: Text, mode: Text) -> Stream
            = open(path, || real!(fn fopen64(path: Text, mode: Text) -> Stream));
    }
    Pool as {
        fn _IO_fopen(path: Text, mode: Text) -> Stream = fopen(path, mode);
        fn popen(command: Text, mode: Text) -> Stream
            = opened(inherit::starting(
                c"popen",
                || real!(fn popen(command: Text, mode: Text) -> Stream) as usize,
            ) as Stream);
        fn _IO_popen(command: Text, mode: Text) -> Stream = popen(command, mode);
    }
    Pool then opened {
        fn tmpfile() -> Stream;
        fn tmpfile64() -> Stream;
    }
    Blocks as {
        fn freopen(path: Text, mode: Text, stream: Stream) -> Stream
            = reopen(stream, || real!(fn freopen(path: Text, mode: Text, stream: Stream) -> Stream));
        fn freopen64(path: Text, mode: Text, stream: Stream) -> Stream
            = reopen(stream, || real!(fn freopen64(path: Text, mode: Text, stream: Stream) -> Stream));
    }
    Blocks by hand { fclose: "while it writes the rest of the buffer" }
    Blocks as { fn _IO_fclose(stream: Stream) -> c_int = fclose(stream); }
    Dedicated by hand { pclose }
}

/// Returns the descriptor of a stream; -1 if it has none.
unsafe fn descriptor(stream: *mut FILE) -> c_int {
    if stream.is_null() {
        return -1;
    }
    let errno = sys::errno();
    // SAFETY: the caller passes a stream.
    let fd = unsafe { libc::fileno(stream) };
    sys::set_errno(Errno(errno)); // Streams in memory have no descriptor.
    fd
}

/// Notes the descriptor of a stream that libc has just opened.
unsafe fn opened(stream: *mut FILE) -> *mut FILE {
    // SAFETY: null or a stream.
    fds::opened(unsafe { descriptor(stream) });
    stream
}

/// Opens the stream of a path on the pool, or on a thread of its own if the open may wait.
unsafe fn open(path: *const c_char, open: impl Fn() -> *mut FILE) -> *mut FILE {
    let open = || match open() {
        stream if stream.is_null() => Err(Errno(sys::errno())),
        stream => Ok(stream as usize),
    };
    // Whatever the mode: a wait on a thread of its own is harmless even if it was not needed.
    // SAFETY: the caller's path.
    let stream = patiently(|| unsafe { obstacle(libc::AT_FDCWD, path, 0) }, open);
    match sys::to_c(stream) {
        -1 => core::ptr::null_mut(),
        // SAFETY: a stream that libc has opened.
        stream => unsafe { opened(stream as *mut FILE) },
    }
}

/// Opens another file for a stream, by libc's function. Runs on this thread, which may have locked
/// the stream.
unsafe fn reopen(stream: *mut FILE, open: impl FnOnce() -> *mut FILE) -> *mut FILE {
    // SAFETY: the caller's stream.
    unsafe {
        fds::closing(descriptor(stream));
        opened(open())
    }
}

/// `fclose`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fclose(stream: *mut FILE) -> c_int {
    // SAFETY: the caller's contract.
    let result = unsafe {
        fds::closing(descriptor(stream));
        real!(fn fclose(stream: *mut FILE) -> c_int)
    };
    lock_released();
    result
}

/// `pclose`: waits for the command to end.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pclose(stream: *mut FILE) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { fds::closing(descriptor(stream)) };
    // SAFETY: as above.
    let close = || from_c(unsafe { real!(fn pclose(stream: *mut FILE) -> c_int) });
    sys::to_c(pool::dedicated(Awaited::call(c"pclose"), close)) as c_int
}

//! `stdio.h`: streams, and formatted output to descriptors.
//!
//! libc locks a stream inside each function, and waits for the lock and for the descriptor in the
//! kernel, by calls that cannot be interposed. A virtual thread that waited there would hold its
//! carrier. If a thread that has locked a stream by `flockfile` is parked, threads that print could
//! then hold all carriers, for ever. So a virtual thread takes the lock here first, where it parks;
//! libc's own lock counts, and lets its owner in again. Before a virtual thread reads from a stream
//! whose buffer is empty, it parks until there is something to read.
//!
//! ```text
//!   fgets(stream)     lock: try libc's lock, park while it is taken
//!                     buffer empty? park until the descriptor is readable
//!                     libc's fgets, which has the lock already
//!                     unlock: libc's, and wake one that is parked
//! ```
//!
//! The rest of the wait, and a flush, block the carrier for as long as the kernel makes them wait:
//! the thread has the lock, so another thread cannot make the call for it. For files that is short;
//! streams on pipes and sockets are better read with `read`.
//!
//! A thread that prints by a function that is not listed unlocks the stream without a look for
//! parked threads: those look again by themselves after some milliseconds.
//!
//! Opening and closing are interposed to keep the table of descriptors correct, and because an open
//! may take long. `dprintf` has no stream: a virtual thread formats into memory, and writes the
//! result with our [`write`](crate::io::rw::write).

use crate::forward::dedicated_call;
use crate::fs::lock::lock_released;
use crate::fs::open::{obstacle, patiently};
use crate::io::{poll, rw};
use crate::process::inherit;
use crate::registry::interposed;
use crate::sync::{self, Recursive};
use crate::{Text, simulated, virtual_thread};
use core::ffi::{c_char, c_int, c_long, c_void};
use core::ptr;
use libc::{FILE, size_t, ssize_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::fds;
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys::{self, Errno};

type Stream = *mut FILE;
/// A `va_list`, which on this machine is passed as a pointer.
type Arguments = *mut c_void;

unsafe extern "C" {
    static stdin: Stream;
    static stdout: Stream;
    fn fwide(stream: Stream, mode: c_int) -> c_int;
    fn vasprintf(text: *mut *mut c_char, format: Text, arguments: Arguments) -> c_int;
    fn __vasprintf_chk(
        text: *mut *mut c_char,
        flag: c_int,
        format: Text,
        arguments: Arguments,
    ) -> c_int;
}

interposed! {
    family "Streams" for Scaling,
        cannot "read a long piece of a slow stream, or write to a slow one, without blocking the \
            carrier: it parks for the lock and for the first byte";

    Pool as {
        fn fopen(path: Text, mode: Text) -> Stream = open(path, || libcs!());
        fn popen(command: Text, mode: Text) -> Stream
            = opened(inherit::starting(c"popen", || libcs!() as usize) as Stream);
    }
    Pool alias { fopen64 = fopen, _IO_fopen = fopen, _IO_popen = popen }
    Pool then opened { fn tmpfile() -> Stream; }
    Pool alias { tmpfile64 = tmpfile }
    Blocks as {
        fn freopen(path: Text, mode: Text, stream: Stream) -> Stream
            = reopen(stream, || libcs!());
    }
    Blocks alias { freopen64 = freopen }
    Blocks by hand { fclose: "while it writes the rest of the buffer" }
    Blocks alias { _IO_fclose = fclose }
    Dedicated by hand { pclose }

    Parks as {
        fn flockfile(stream: Stream) -> () = lock(stream);
        fn fgetc(stream: Stream) -> c_int = reading(stream, true, || libcs!());
        fn getchar() -> c_int = fgetc(stdin);
        fn fgets(text: *mut c_char, size: c_int, stream: Stream) -> *mut c_char
            = reading(stream, size > 1, || libcs!());
        fn __fgets_chk(text: *mut c_char, room: size_t, size: c_int, stream: Stream) -> *mut c_char
            = reading(stream, size > 1, || libcs!());
        fn fread(data: *mut c_void, size: size_t, count: size_t, stream: Stream) -> size_t
            = reading(stream, size != 0 && count != 0, || libcs!());
        fn __fread_chk(
            data: *mut c_void, room: size_t, size: size_t, count: size_t, stream: Stream,
        ) -> size_t = reading(stream, size != 0 && count != 0, || libcs!());
        fn getline(text: *mut *mut c_char, room: *mut size_t, stream: Stream) -> ssize_t
            = getdelim(text, room, c_int::from(b'\n'), stream);
        fn getdelim(text: *mut *mut c_char, room: *mut size_t, end: c_int, stream: Stream) -> ssize_t
            = reading(stream, !text.is_null() && !room.is_null(), || libcs!());
        fn vfprintf(stream: Stream, format: Text, arguments: Arguments) -> c_int
            = locked(stream, || libcs!());
        fn vprintf(format: Text, arguments: Arguments) -> c_int
            = vfprintf(stdout, format, arguments);
        fn __vfprintf_chk(stream: Stream, flag: c_int, format: Text, arguments: Arguments) -> c_int
            = locked(stream, || libcs!());
        fn __vprintf_chk(flag: c_int, format: Text, arguments: Arguments) -> c_int
            = __vfprintf_chk(stdout, flag, format, arguments);
        fn puts(text: Text) -> c_int = locked(stdout, || libcs!());
        fn fputs(text: Text, stream: Stream) -> c_int = locked(stream, || libcs!());
        fn fputc(letter: c_int, stream: Stream) -> c_int = locked(stream, || libcs!());
        fn putchar(letter: c_int) -> c_int = fputc(letter, stdout);
        fn fwrite(data: *const c_void, size: size_t, count: size_t, stream: Stream) -> size_t
            = locked(stream, || libcs!());
        fn fflush(stream: Stream) -> c_int = match stream.is_null() {
            true => FLUSHING.while_locked(|| libcs!()),
            false => locked(stream, || libcs!()),
        };
        fn fseek(stream: Stream, offset: c_long, whence: c_int) -> c_int
            = locked(stream, || libcs!());
        fn ftell(stream: Stream) -> c_long = locked(stream, || libcs!());
        fn rewind(stream: Stream) -> () = locked(stream, || libcs!());
        fn ungetc(letter: c_int, stream: Stream) -> c_int = locked(stream, || libcs!());
        fn vdprintf(fd: c_int, format: Text, arguments: Arguments) -> c_int
            = print(fd, || libcs!(), |text| vasprintf(text, format, arguments));
        fn __vdprintf_chk(fd: c_int, flag: c_int, format: Text, arguments: Arguments) -> c_int
            = print(fd, || libcs!(), |text| __vasprintf_chk(text, flag, format, arguments));
    }
    Parks variadic {
        printf(1 named) = vprintf, _IO_printf(1 named) = vprintf,
        __printf_chk(2 named) = __vprintf_chk,
        fprintf(2 named) = vfprintf, _IO_fprintf(2 named) = vfprintf,
        __fprintf_chk(3 named) = __vfprintf_chk,
        dprintf(2 named) = vdprintf, __dprintf_chk(3 named) = __vdprintf_chk,
    }
    Parks alias {
        _IO_flockfile = flockfile, getc = fgetc, _IO_getc = fgetc, _IO_fgets = fgets,
        _IO_fread = fread, __getdelim = getdelim, _IO_vfprintf = vfprintf, _IO_puts = puts,
        _IO_fputs = fputs, putc = fputc, _IO_putc = fputc, _IO_fwrite = fwrite, _IO_fflush = fflush,
        fseeko = fseek, fseeko64 = fseek, _IO_ftell = ftell, ftello = ftell, ftello64 = ftell,
        _IO_ungetc = ungetc,
    }
    Own as { fn funlockfile(stream: Stream) -> () = unlock(stream); }
    Own alias { _IO_funlockfile = funlockfile }
}

/// Locks a stream.
///
/// # Safety
/// `stream` is a stream.
unsafe fn lock(stream: Stream) {
    if virtual_thread().is_none() {
        // SAFETY: the caller's contract.
        return unsafe { real!(fn flockfile(stream: Stream) -> ()) };
    }
    // SAFETY: the caller's contract.
    sync::lock_by_trying(c"flockfile", stream.cast_const(), || unsafe {
        libc_try(stream)
    });
}

/// Tries libc's lock; returns whether the thread has it.
///
/// # Safety
/// `stream` is a stream.
unsafe fn libc_try(stream: Stream) -> bool {
    // SAFETY: the caller's contract.
    unsafe { real!(fn ftrylockfile(stream: Stream) -> c_int) == 0 }
}

/// Unlocks a stream.
///
/// # Safety
/// The running thread has locked it.
unsafe fn unlock(stream: Stream) {
    // SAFETY: the caller's contract.
    unsafe { real!(fn funlockfile(stream: Stream) -> ()) };
    sync::released(stream.cast_const());
}

/// Held while the buffers of all streams are written: libc keeps the list of streams locked while
/// the function of a stream of the program's (`fopencookie`) writes, which may park.
static FLUSHING: Recursive = Recursive::new();

/// Forgets what threads of the parent were doing.
///
/// # Safety
/// In the child of a fork, by its only thread.
pub(crate) unsafe fn after_fork() {
    // SAFETY: the caller's contract.
    unsafe { FLUSHING.renew() };
}

/// Calls libc's function; on a virtual thread, with the stream locked, unless its caller locks it
/// (`__fsetlocking`). The stream that `snprintf` gives to a function of `register_printf_specifier`
/// has no lock, and so has this flag, too.
///
/// # Safety
/// `stream` is null, or a stream.
unsafe fn locked<R>(stream: Stream, function: impl FnOnce() -> R) -> R {
    // SAFETY: the caller's contract.
    if virtual_thread().is_none() || stream.is_null() || unsafe { has(stream, USER_LOCK) } {
        return function();
    }
    // SAFETY: the caller's contract.
    unsafe {
        lock(stream);
        let result = function();
        unlock(stream);
        result
    }
}

/// Calls a function under the lock of its stream. If the function asks for something, waits before
/// the call until that can be read.
///
/// # Safety
/// `stream` is a stream.
unsafe fn reading<R>(stream: Stream, asks: bool, function: impl FnOnce() -> R) -> R {
    // SAFETY: the caller's contract.
    unsafe {
        locked(stream, || {
            if asks && virtual_thread().is_some() {
                let errno = sys::errno();
                wait_for_input(stream);
                sys::set_errno(Errno(errno));
            }
            function()
        })
    }
}

/// The head of libc's `FILE`, which is public: macros of earlier versions read it.
#[repr(C)]
struct Head {
    flags: c_int,
    read_at: *const c_char,
    read_end: *const c_char,
}

// libc's flags of a stream, as its `libio.h` has them.
const UNBUFFERED: c_int = 0x2;
const NO_READS: c_int = 0x4;
const EOF_SEEN: c_int = 0x10;
/// What it reads next was given back by `ungetc`, and is not in its buffer.
const IN_BACKUP: c_int = 0x100;
const LINE_BUFFERED: c_int = 0x200;
/// The last call has written.
const PUTTING: c_int = 0x800;
const USER_LOCK: c_int = 0x8000;

/// Returns whether a stream has one of these flags.
///
/// # Safety
/// `stream` is a stream.
unsafe fn has(stream: Stream, flags: c_int) -> bool {
    // SAFETY: the caller's contract. Others may write the word: a load of it, as libc's.
    unsafe { (&raw const (*stream.cast::<Head>()).flags).read_volatile() & flags != 0 }
}

/// Waits until libc would not wait for the first byte. Where libc does not read, nothing is waited
/// for; what it writes before it reads, which the input may answer, is written before the wait.
///
/// # Safety
/// `stream` is a stream, and locked.
unsafe fn wait_for_input(stream: Stream) {
    // SAFETY: the caller's contract.
    unsafe {
        let head = &*stream.cast::<Head>();
        if head.read_at != head.read_end
            || has(stream, NO_READS | EOF_SEEN | IN_BACKUP)
            || fwide(stream, 0) > 0
        {
            return;
        }
        let fd = libc::fileno(stream);
        let waits = fd >= 0
            && sys::events_now(fd, libc::POLLIN) == 0
            && sys::status_flags(fd).is_ok_and(|flags| flags & libc::O_NONBLOCK == 0);
        if !waits || has(stream, PUTTING) && fflush(stream) != 0 {
            return;
        }
        // A prompt. (A terminal's stream is line-buffered from its first use on.)
        let by_line = has(stream, UNBUFFERED | LINE_BUFFERED) || libc::isatty(fd) == 1;
        if by_line && has(stdout, LINE_BUFFERED) {
            fflush(stdout);
        }
        poll::wait_until_readable(fd);
    }
}

/// Returns the descriptor of a stream; -1 if it has none.
unsafe fn descriptor(stream: Stream) -> c_int {
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
unsafe fn opened(stream: Stream) -> Stream {
    // SAFETY: null or a stream.
    let fd = unsafe { descriptor(stream) };
    fds::opened(fd);
    simulated::opened(fd, true);
    stream
}

/// Opens the stream of a path on the pool, or on a thread of its own if the open may wait.
unsafe fn open(path: Text, open: impl Fn() -> Stream) -> Stream {
    let open = || match open() {
        stream if stream.is_null() => Err(Errno(sys::errno())),
        stream => Ok(stream as usize),
    };
    // Whatever the mode: a wait on a thread of its own is harmless even if it was not needed.
    // SAFETY: the caller's path.
    let stream = patiently(|| unsafe { obstacle(libc::AT_FDCWD, path, 0) }, open);
    match sys::to_c(stream) {
        -1 => ptr::null_mut(),
        // SAFETY: a stream that libc has opened.
        stream => unsafe { opened(stream as Stream) },
    }
}

/// Opens another file for a stream, by libc's function. Runs on this thread, which may have locked
/// the stream.
unsafe fn reopen(stream: Stream, open: impl FnOnce() -> Stream) -> Stream {
    // SAFETY: the caller's stream.
    unsafe {
        fds::closing(descriptor(stream));
        opened(open())
    }
}

#[libc_fn]
pub unsafe fn fclose(stream: Stream) -> c_int {
    fds::closing(descriptor(stream));
    let result = libcs!();
    lock_released();
    result
}

/// Waits for the command to end.
#[libc_fn]
pub unsafe fn pclose(stream: Stream) -> c_int {
    fds::closing(descriptor(stream));
    dedicated_call(c"pclose", || libcs!())
}

/// Runs libc's function on a platform thread; on a virtual thread, writes the text that `format`
/// leaves in memory. Returns the number of bytes, or -1.
fn print(
    fd: c_int,
    libc_print: impl FnOnce() -> c_int,
    format: impl FnOnce(*mut *mut c_char) -> c_int,
) -> c_int {
    if virtual_thread().is_none() {
        return libc_print();
    }
    let mut text = ptr::null_mut();
    let length = format(&mut text);
    let Ok(total) = usize::try_from(length) else {
        return -1;
    };
    // SAFETY: `vasprintf` has written this many bytes.
    let written = unsafe { write_all(fd, text, total) };
    let errno = sys::errno();
    // SAFETY: from `vasprintf`, and not used again.
    unsafe { libc::free(text.cast()) };
    sys::set_errno(Errno(errno));
    if written { length } else { -1 }
}

/// Returns whether all of the text was written; if not, `errno` says why.
///
/// # Safety
/// `text` points to `total` bytes.
unsafe fn write_all(fd: c_int, text: *const c_char, total: usize) -> bool {
    let mut done = 0;
    while done < total {
        // SAFETY: the caller's contract: the text has `total` bytes.
        match unsafe { rw::write(fd, text.add(done).cast(), total - done) } {
            -1 => return false,
            count => done += count as usize,
        }
    }
    true
}

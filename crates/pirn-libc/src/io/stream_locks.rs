//! `stdio.h`: locks of streams, and reading and writing under them.
//!
//! libc locks a stream inside each function, and waits for it, and for the descriptor, in the
//! kernel. A virtual thread that waited there would hold its carrier, and if one that has locked a
//! stream by `flockfile` is parked, many that print could hold all carriers, for ever. So a virtual
//! thread locks first, here, where it parks; libc's own lock counts, and lets its owner in again.
//! Before it reads from a stream whose buffer is empty it parks until there is something to read.
//!
//! ```text
//!   fgets(stream)     lock: try libc's lock, park while it is taken
//!                     buffer empty? park until the descriptor is readable
//!                     libc's fgets, which has the lock already
//!                     unlock: libc's, and wake one that is parked
//! ```
//!
//! A thread that prints by a function that is not listed unlocks the stream without a look at who
//! is parked: those look again by themselves after some milliseconds.

use crate::io::poll;
use crate::registry::interposed;
use crate::sync::{self, Recursive};
use crate::{Text, virtual_thread};
use core::ffi::{c_char, c_int, c_long, c_void};
use libc::{FILE, off_t, size_t, ssize_t};
use pirn_rt::arch::forward_variadic;
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys;

type Stream = *mut FILE;
/// A `va_list`, which on this machine is passed as a pointer.
type Arguments = *mut c_void;

unsafe extern "C" {
    static stdin: Stream;
    static stdout: Stream;
    fn fwide(stream: Stream, mode: c_int) -> c_int;
}

interposed! {
    family "Reading and writing streams" for Scaling,
        cannot "read a long piece of a slow stream, or write to a slow one, without blocking the \
            carrier: it parks for the lock and for the first byte";

    Parks by hand { printf, fprintf, _IO_printf, _IO_fprintf, __printf_chk, __fprintf_chk }
    Parks as {
        fn flockfile(stream: Stream) -> () = lock(stream);
        fn _IO_flockfile(stream: Stream) -> () = lock(stream);
        fn fgetc(stream: Stream) -> c_int
            = reading(stream, true, || real!(fn fgetc(stream: Stream) -> c_int));
        fn getc(stream: Stream) -> c_int
            = reading(stream, true, || real!(fn getc(stream: Stream) -> c_int));
        fn _IO_getc(stream: Stream) -> c_int = getc(stream);
        fn getchar() -> c_int = reading(stdin, true, || real!(fn getchar() -> c_int));
        fn fgets(text: *mut c_char, size: c_int, stream: Stream) -> *mut c_char
            = reading(stream, size > 1, || real!(
                fn fgets(text: *mut c_char, size: c_int, stream: Stream) -> *mut c_char
            ));
        fn _IO_fgets(text: *mut c_char, size: c_int, stream: Stream) -> *mut c_char
            = fgets(text, size, stream);
        fn __fgets_chk(text: *mut c_char, room: size_t, size: c_int, stream: Stream) -> *mut c_char
            = reading(stream, size > 1, || real!(
                fn __fgets_chk(text: *mut c_char, room: size_t, size: c_int, stream: Stream)
                    -> *mut c_char
            ));
        fn fread(data: *mut c_void, size: size_t, count: size_t, stream: Stream) -> size_t
            = reading(stream, size != 0 && count != 0, || real!(
                fn fread(data: *mut c_void, size: size_t, count: size_t, stream: Stream) -> size_t
            ));
        fn _IO_fread(data: *mut c_void, size: size_t, count: size_t, stream: Stream) -> size_t
            = fread(data, size, count, stream);
        fn __fread_chk(
            data: *mut c_void, room: size_t, size: size_t, count: size_t, stream: Stream,
        ) -> size_t = reading(stream, size != 0 && count != 0, || real!(
            fn __fread_chk(
                data: *mut c_void, room: size_t, size: size_t, count: size_t, stream: Stream,
            ) -> size_t
        ));
        fn getline(text: *mut *mut c_char, room: *mut size_t, stream: Stream) -> ssize_t
            = getdelim(text, room, c_int::from(b'\n'), stream);
        fn getdelim(text: *mut *mut c_char, room: *mut size_t, end: c_int, stream: Stream) -> ssize_t
            = reading(stream, !text.is_null() && !room.is_null(), || real!(
                fn getdelim(text: *mut *mut c_char, room: *mut size_t, end: c_int, stream: Stream)
                    -> ssize_t
            ));
        fn __getdelim(text: *mut *mut c_char, room: *mut size_t, end: c_int, stream: Stream)
            -> ssize_t = getdelim(text, room, end, stream);
        fn vfprintf(stream: Stream, format: Text, arguments: Arguments) -> c_int
            = locked(stream, || real!(
                fn vfprintf(stream: Stream, format: Text, arguments: Arguments) -> c_int
            ));
        fn _IO_vfprintf(stream: Stream, format: Text, arguments: Arguments) -> c_int
            = vfprintf(stream, format, arguments);
        fn vprintf(format: Text, arguments: Arguments) -> c_int
            = vfprintf(stdout, format, arguments);
        fn __vfprintf_chk(stream: Stream, flag: c_int, format: Text, arguments: Arguments) -> c_int
            = locked(stream, || real!(
                fn __vfprintf_chk(stream: Stream, flag: c_int, format: Text, arguments: Arguments)
                    -> c_int
            ));
        fn __vprintf_chk(flag: c_int, format: Text, arguments: Arguments) -> c_int
            = __vfprintf_chk(stdout, flag, format, arguments);
        fn puts(text: Text) -> c_int = locked(stdout, || real!(fn puts(text: Text) -> c_int));
        fn _IO_puts(text: Text) -> c_int = puts(text);
        fn fputs(text: Text, stream: Stream) -> c_int
            = locked(stream, || real!(fn fputs(text: Text, stream: Stream) -> c_int));
        fn _IO_fputs(text: Text, stream: Stream) -> c_int = fputs(text, stream);
        fn fputc(letter: c_int, stream: Stream) -> c_int
            = locked(stream, || real!(fn fputc(letter: c_int, stream: Stream) -> c_int));
        fn putc(letter: c_int, stream: Stream) -> c_int
            = locked(stream, || real!(fn putc(letter: c_int, stream: Stream) -> c_int));
        fn _IO_putc(letter: c_int, stream: Stream) -> c_int = putc(letter, stream);
        fn putchar(letter: c_int) -> c_int
            = locked(stdout, || real!(fn putchar(letter: c_int) -> c_int));
        fn fwrite(data: *const c_void, size: size_t, count: size_t, stream: Stream) -> size_t
            = locked(stream, || real!(
                fn fwrite(data: *const c_void, size: size_t, count: size_t, stream: Stream)
                    -> size_t
            ));
        fn _IO_fwrite(data: *const c_void, size: size_t, count: size_t, stream: Stream) -> size_t
            = fwrite(data, size, count, stream);
        fn fflush(stream: Stream) -> c_int = match stream.is_null() {
            true => flush_all(),
            false => locked(stream, || real!(fn fflush(stream: Stream) -> c_int)),
        };
        fn fseek(stream: Stream, offset: c_long, whence: c_int) -> c_int
            = locked(stream, || real!(
                fn fseek(stream: Stream, offset: c_long, whence: c_int) -> c_int
            ));
        fn fseeko(stream: Stream, offset: off_t, whence: c_int) -> c_int
            = fseek(stream, offset, whence);
        fn fseeko64(stream: Stream, offset: off_t, whence: c_int) -> c_int
            = fseek(stream, offset, whence);
        fn ftell(stream: Stream) -> c_long
            = locked(stream, || real!(fn ftell(stream: Stream) -> c_long));
        fn _IO_ftell(stream: Stream) -> c_long = ftell(stream);
        fn ftello(stream: Stream) -> off_t = ftell(stream);
        fn ftello64(stream: Stream) -> off_t = ftell(stream);
        fn rewind(stream: Stream) -> () = locked(stream, || real!(fn rewind(stream: Stream) -> ()));
        fn ungetc(letter: c_int, stream: Stream) -> c_int
            = locked(stream, || real!(fn ungetc(letter: c_int, stream: Stream) -> c_int));
        fn _IO_ungetc(letter: c_int, stream: Stream) -> c_int = ungetc(letter, stream);
        fn _IO_fflush(stream: Stream) -> c_int = fflush(stream);
    }
    Own as {
        fn funlockfile(stream: Stream) -> () = unlock(stream);
        fn _IO_funlockfile(stream: Stream) -> () = unlock(stream);
    }
}

forward_variadic! {
    /// `printf`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    printf(1 named) => vprintf
}

forward_variadic! {
    /// `fprintf`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    fprintf(2 named) => vfprintf
}

forward_variadic! {
    /// `_IO_printf`, an alias.
    ///
    /// # Safety
    /// As for libc's function of this name.
    _IO_printf(1 named) => vprintf
}

forward_variadic! {
    /// `_IO_fprintf`, an alias.
    ///
    /// # Safety
    /// As for libc's function of this name.
    _IO_fprintf(2 named) => vfprintf
}

forward_variadic! {
    /// `__printf_chk`, which a fortified program calls for `printf`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    __printf_chk(2 named) => __vprintf_chk
}

forward_variadic! {
    /// `__fprintf_chk`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    __fprintf_chk(3 named) => __vfprintf_chk
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
    // SAFETY: as above.
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

static FLUSHING: Recursive = Recursive::new();

/// Forgets what threads of the parent were doing.
///
/// # Safety
/// In the child of a fork, by its only thread.
pub(crate) unsafe fn after_fork() {
    // SAFETY: the caller's contract.
    unsafe { FLUSHING.renew() };
}

/// Writes the buffers of all streams. libc keeps the list of streams locked while the function of a
/// stream of the program's (`fopencookie`) writes, which may park: a virtual thread locks first.
///
/// # Safety
/// As for `fflush`.
unsafe fn flush_all() -> c_int {
    FLUSHING.while_locked(|| {
        let stream: Stream = core::ptr::null_mut();
        // SAFETY: null is allowed.
        unsafe { real!(fn fflush(stream: Stream) -> c_int) }
    })
}

/// Calls libc's function; on a virtual thread, with the stream locked, unless its caller locks it
/// (`__fsetlocking`). The stream that a function of `register_printf_specifier` is given by
/// `snprintf` is such a one, and has no lock.
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

/// Does the same; if the function asks for something, waits before it until that can be read.
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
                sys::set_errno(sys::Errno(errno));
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

//! System calls and their results.

/// An error number of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub i32);

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

/// The result of a system call.
pub type SysResult = Result<usize, Errno>;

/// Turns the kernel's `-errno` convention into a `Result`.
#[inline(always)]
pub fn check(value: isize) -> SysResult {
    if (-4095..0).contains(&value) {
        Err(Errno(-value as i32))
    } else {
        Ok(value as usize)
    }
}

/// Makes a system call by name and arguments: `call!(libc::SYS_close, fd)`. Evaluates to a
/// [`SysResult`]. The call is an `unsafe` operation; the arguments may be any integers or pointers.
#[macro_export]
macro_rules! call {
    ($number:expr $(, $arg:expr)* $(,)?) => {{
        #[allow(unused_mut)] // of a call without arguments
        let mut args = [0usize; 6];
        let mut _n = 0;
        $( #[allow(clippy::cast_lossless)] { args[_n] = $arg as usize; _n += 1; } )*
        $crate::sys::check($crate::arch::syscall($number, args))
    }};
}
pub use call;

/// Makes a system call that does not wait, again if a signal has ended it.
pub fn uninterrupted(call: impl Fn() -> SysResult) -> SysResult {
    loop {
        match call() {
            Err(Errno(libc::EINTR)) => {}
            result => return result,
        }
    }
}

/// Sets `errno` of the running thread, virtual or platform.
#[inline]
pub fn set_errno(e: Errno) {
    // SAFETY: always points to the running thread's errno.
    unsafe { *libc::__errno_location() = e.0 };
}

/// Returns `errno` of the running thread.
#[inline]
pub fn errno() -> i32 {
    // SAFETY: always points to the running thread's errno.
    unsafe { *libc::__errno_location() }
}

/// Converts a [`SysResult`] for a C caller: the value, or -1 with `errno` set.
#[inline]
pub fn to_c(result: SysResult) -> isize {
    match result {
        Ok(value) => value as isize,
        Err(e) => {
            set_errno(e);
            -1
        }
    }
}

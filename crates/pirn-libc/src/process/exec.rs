//! The end of a program: replaced by another (`exec`), or by `exit`. What the other program
//! inherits is in [`inherit`](crate::process::inherit).
//!
//! `execl` and its kin may be called in the child of a fork and in handlers of signals, so they
//! allocate only for more than [`FEW`] arguments.
//!
//! The functions that a program has given to `atexit` may park. Since glibc 2.41 the first thread
//! that calls `exit` keeps all others waiting in libc until the process has ended. The virtual
//! threads among them park here instead.

use crate::process::inherit::becoming;
use crate::registry::interposed;
use crate::sync::Recursive;
use crate::{Path, Text};
use core::ffi::c_int;
use core::ptr;
use pirn_rt::arch::{VaList, forward_variadic};
use pirn_rt::sys::{self, call};

/// A null-terminated array of strings.
pub(crate) type Texts = *const Text;

interposed! {
    family "Becoming another program" for Correctness;

    Carrier as {
        fn execve(path: Path, arguments: Texts, environment: Texts) -> c_int
            = becoming(|| libcs!());
        fn execv(path: Path, arguments: Texts) -> c_int
            = becoming(|| libcs!());
        fn execvp(file: Path, arguments: Texts) -> c_int
            = becoming(|| libcs!());
        fn execvpe(file: Path, arguments: Texts, environment: Texts) -> c_int
            = becoming(|| libcs!());
        fn fexecve(fd: c_int, arguments: Texts, environment: Texts) -> c_int
            = becoming(|| libcs!());
        fn execveat(dir: c_int, path: Path, arguments: Texts, environment: Texts, flags: c_int) -> c_int
            = becoming(|| sys::to_c(
                call!(libc::SYS_execveat, dir, path, arguments, environment, flags)
            ) as c_int);
    }
    Carrier by hand { execl, execlp, execle }
}

interposed! {
    /// The functions that end the process.
    EXITS:
    family "The end of the process" for Scaling;

    Parks as {
        fn exit(status: c_int) -> () = EXITING.while_locked(|| libcs!());
        fn quick_exit(status: c_int) -> () = EXITING.while_locked(|| libcs!());
    }
}

/// Never unlocked. The functions may themselves call `exit`.
static EXITING: Recursive = Recursive::new();

/// Forgets that a thread of the parent was ending the process.
///
/// # Safety
/// In the child of a fork, by its only thread.
pub(crate) unsafe fn after_fork() {
    // SAFETY: the caller's contract.
    unsafe { EXITING.renew() };
}

/// The number of arguments, with the null at their end, for which the stack has room.
const FEW: usize = 128;

/// Calls `exec` with the arguments of a list, up to a null, as an array.
///
/// # Safety
/// The list has a null.
unsafe fn with_array(
    first: Text,
    list: &mut VaList,
    exec: impl FnOnce(Texts, &mut VaList) -> c_int,
) -> c_int {
    let (mut few, mut many) = ([ptr::null(); FEW], Vec::new());
    let (mut count, mut next) = (0, first);
    while !next.is_null() {
        match few.get_mut(count + 1) {
            Some(_) => few[count] = next,
            None if many.is_empty() => many = [&few[..count], &[next]].concat(),
            None => many.push(next),
        }
        count += 1;
        // SAFETY: the caller's contract.
        next = unsafe { list.next() } as Text;
    }
    if many.is_empty() {
        return exec(few.as_ptr(), list);
    }
    many.push(ptr::null());
    exec(many.as_ptr(), list)
}

/// Defines a variadic function by one that takes an array.
macro_rules! listed {
    ($($name:ident => $by_list:ident($path:ident, $array:ident, $list:ident): $exec:expr;)*) => {$(
        forward_variadic! {
            #[doc = concat!("`", stringify!($name), "`.")]
            ///
            /// # Safety
            /// As for libc's function of this name.
            $name(2 named) => $by_list
        }

        unsafe extern "C" fn $by_list($path: Path, first: Text, list: &mut VaList) -> c_int {
            // SAFETY: the caller's contract.
            unsafe { with_array(first, list, |$array, $list| $exec) }
        }
    )*};
}

listed! {
    execl => by_path(path, array, _list): execv(path, array);
    execlp => by_name(file, array, _list): execvp(file, array);
    execle => with_environment(path, array, list): execve(path, array, list.next() as Texts);
}

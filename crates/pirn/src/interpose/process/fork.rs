//! `fork`: the child's only thread is the one that forked, which becomes a platform thread.
//!
//! libc's `fork` runs unchanged, on the thread pointer of the virtual thread: the program's
//! `pthread_atfork` handlers find their thread-locals and may park. In the child libc puts the
//! caller's TCB into its list of threads and writes the child's thread id into it. It first takes
//! the TCB out of "the list it is in", which works because the TCB is linked to itself. So the
//! forked thread becomes, for libc too, a thread like any other. The carriers' stacks go to libc's
//! cache of unused stacks there.
//!
//! A handler does the rest in the child. It is registered before those of the program, so that it
//! covers forks made inside libc (`daemon`, `forkpty`) as well. In the child
//! * there are no other virtual threads, no carriers, and no spawning: a spawn fails with an error
//!   that says so. Only where `pthread_create` makes virtual threads, the first one starts
//!   [another runtime](crate::runtime);
//! * until then every interposed function acts as libc does. None needs a lock that another thread
//!   may have held at the fork, nor touches the epoll instance, which is the parent's.

use super::signals::{information, process_wide};
use crate::glibc::rseq;
use crate::glibc::symbols::real;
use crate::interpose::registry::interposed;
use crate::interpose::thread::{self, identity};
use crate::mark::Raised;
use crate::vthread::signals;
use crate::{runtime, sys, vthread};
use libc::pid_t;

interposed! {
    family "Forking" for Correctness;

    Own by hand { vfork: "as `fork`, which libc does on the virtual thread; see the limits", _Fork }
    Own as { fn __vfork() -> pid_t = vfork(); }
}

/// Makes every child call the handler from now on. Called once, at the start.
pub(crate) fn install() -> Result<(), String> {
    // SAFETY: the handler stays valid for ever.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => Ok(()),
        _ => Err("no memory for a fork handler".into()),
    }
}

/// Makes the running thread, the only one of a new process, a platform thread.
unsafe extern "C" fn in_child() {
    let mark = Raised::new();
    let carrier = vthread::current().and(vthread::carrier(&mark));
    if vthread::current().is_some() {
        // The child's only thread has the mask of the one that forked, and nothing is pending.
        sys::block_only(signals::mask());
        identity::after_fork();
    }
    information::after_fork();
    process_wide::after_fork();
    vthread::mount::become_platform_thread();
    runtime::stop();
    if let Some(carrier) = carrier {
        rseq::move_here(carrier.native_tp());
    }
}

/// `vfork`: does the same as `fork`, which POSIX allows. The child of a real one would share the
/// table of descriptors with its parent, and close the parent's in it.
#[unsafe(no_mangle)]
pub extern "C" fn vfork() -> pid_t {
    // SAFETY: no arguments.
    unsafe { libc::fork() }
}

/// `_Fork`: without the program's handlers.
#[unsafe(no_mangle)]
pub extern "C" fn _Fork() -> pid_t {
    // SAFETY: no arguments.
    let pid = unsafe { real!(fn _Fork() -> pid_t) };
    if pid == 0 && runtime::is_started() {
        thread::count_anew();
        // SAFETY: in the child.
        unsafe { in_child() };
    }
    pid
}

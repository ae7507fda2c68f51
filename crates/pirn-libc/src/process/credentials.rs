//! `unistd.h`, `grp.h`: changing the identity of the process.
//!
//! To the kernel, identity belongs to the OS thread; glibc makes it the process's. glibc sends the
//! signal [`SIGSETXID`] to every thread in its lists. The handler makes the same system call there,
//! and notes in the thread's descriptor that it has; the caller waits for that. The handler finds
//! the descriptor by the thread pointer, and the lists contain platform threads only. So
//!
//! * `setuid` and its relatives run with the carrier's thread pointer;
//! * so must the handler, on a carrier that has a virtual thread mounted: [`on_setxid`] replaces
//!   it.
//!
//! `setfsuid` and `setfsgid` are per OS thread in glibc too: [`os_thread`](super::os_thread).

use crate::registry::interposed;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use libc::{gid_t, siginfo_t, size_t, uid_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::arch;
use pirn_rt::blocking::pool;
use pirn_rt::sys::{self, Errno, call};
use pirn_rt::vthread::wait_reason::WaitReason;

interposed! {
    family "Identity of the process" for Correctness;

    Carrier {
        fn setuid(user: uid_t) -> c_int;
        fn setgid(group: gid_t) -> c_int;
        fn seteuid(user: uid_t) -> c_int;
        fn setegid(group: gid_t) -> c_int;
        fn setreuid(real: uid_t, effective: uid_t) -> c_int;
        fn setregid(real: gid_t, effective: gid_t) -> c_int;
        fn setresuid(real: uid_t, effective: uid_t, saved: uid_t) -> c_int;
        fn setresgid(real: gid_t, effective: gid_t, saved: gid_t) -> c_int;
        fn setgroups(count: size_t, groups: *const gid_t) -> c_int;
    }
    Pool by hand { initgroups }
}

/// Looks the groups up, which may take long, and sets them.
#[libc_fn]
pub unsafe fn initgroups(user: *const c_char, group: gid_t) -> c_int {
    if crate::virtual_thread().is_none() {
        return libcs!();
    }
    const MOST: usize = 1 << 16; // linux/limits.h: what the kernel takes.
    let mut groups = match crate::zeros(MOST) {
        Ok(groups) => groups,
        Err(error) => return sys::to_c(Err(error)) as c_int,
    };
    let mut count = MOST as c_int;
    // SAFETY: room for that many; the caller's string.
    let found = pool::bounded(WaitReason::call(c"getgrouplist"), || unsafe {
        libc::getgrouplist(user, group, groups.as_mut_ptr(), &mut count)
    });
    if found < 0 && count as usize <= MOST {
        return sys::to_c(Err(Errno(libc::ENOMEM))) as c_int;
    }
    // If there are more, the first ones, as libc does.
    setgroups(MOST.min(count as usize), groups.as_ptr())
}

/// glibc's second internal signal (`internal-signals.h`); its own `sigaction` refuses to touch it.
const SIGSETXID: c_int = 33;

/// The kernel's `struct sigaction`.
#[repr(C)]
pub(crate) struct KernelAction {
    pub(crate) handler: usize,
    pub(crate) flags: u64,
    pub(crate) restorer: usize,
    pub(crate) mask: u64,
}

/// glibc's handler.
static HANDLER: AtomicUsize = AtomicUsize::new(0);
/// Distance from the thread pointer to the list of robust mutexes.
static ROBUST_LIST: AtomicIsize = AtomicIsize::new(0);

/// Installs our handler in front of glibc's, which the first `pthread_create` has installed.
pub(crate) fn take_over_handler() {
    // SAFETY: an action is plain data.
    let mut action: KernelAction = unsafe { core::mem::zeroed() };
    // SAFETY: queries; the kernel writes at most what there is room for; a signal set has 8 bytes.
    let known = unsafe { call!(libc::SYS_rt_sigaction, SIGSETXID, 0, &raw mut action, 8) };
    let list = robust_list();
    if known.is_err() || action.handler <= libc::SIG_IGN || list == 0 {
        return; // Another libc, for which the description above does not hold.
    }
    if action.handler == on_setxid as *const () as usize {
        return; // An earlier start has done it.
    }
    let distance = list.wrapping_sub(arch::thread_pointer()) as isize;
    ROBUST_LIST.store(distance, Ordering::Relaxed); // Relaxed: before the handler is installed.
    HANDLER.store(action.handler, Ordering::Relaxed);
    action.handler = on_setxid as *const () as usize;
    // No other handler may run with the carrier's thread pointer; and virtual threads' stacks are
    // small.
    action.mask = u64::MAX;
    action.flags |= libc::SA_ONSTACK as u64;
    // SAFETY: an action like the installed one.
    let _ = unsafe { call!(libc::SYS_rt_sigaction, SIGSETXID, &raw const action, 0, 8) };
}

/// Returns the calling OS thread's list of robust mutexes, from the kernel. The list is in that
/// thread's descriptor, whatever is mounted on it.
fn robust_list() -> usize {
    let (mut head, mut length) = (0usize, 0usize);
    // SAFETY: the kernel writes two words.
    match unsafe { call!(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut length) } {
        Ok(_) => head,
        Err(_) => 0,
    }
}

/// Calls glibc's handler with the OS thread's own thread pointer.
///
/// The runtime cannot be asked for the thread pointer: the signal may come during a switch, when
/// the stack is one thread's and the thread pointer another's, or to a virtual thread that has not
/// yet noted its identity. The kernel always knows. While glibc's handler runs, all signals are
/// blocked, and it only makes system calls. Afterwards the thread pointer is set back to its value
/// at the interruption.
/// at the interruption.
unsafe extern "C" fn on_setxid(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    struct Arguments(c_int, *mut siginfo_t, *mut c_void);
    unsafe extern "C" fn run(arguments: *mut u8) {
        type SignalAction = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
        // SAFETY: the arguments below; glibc's handler with its own.
        unsafe {
            let Arguments(signal, info, context) = arguments.cast::<Arguments>().read();
            let handler = HANDLER.load(Ordering::Relaxed); // Relaxed: set before this was installed.
            core::mem::transmute::<usize, SignalAction>(handler)(signal, info, context);
        }
    }
    let mut arguments = Arguments(signal, info, context);
    let list = robust_list();
    // SAFETY: the thread pointer of this very OS thread.
    unsafe {
        if list == 0 {
            run((&raw mut arguments).cast());
        } else {
            // Relaxed: set before this was installed.
            let tp = list.wrapping_sub_signed(ROBUST_LIST.load(Ordering::Relaxed));
            arch::call_with_tp(tp, run, (&raw mut arguments).cast());
        }
    }
}

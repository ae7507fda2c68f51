//! Starting the runtime's own platform threads: carriers, the monitor, the pool, the server, …
//!
//! `std::thread` does not make them: it registers a destructor on each thread that it makes, and on
//! the thread that calls it, and for that glibc takes the dynamic linker's lock. A thread that
//! loads a library holds this lock while the library's constructors run. A constructor that waited
//! for a virtual thread would then wait for ever, because no carrier could begin.

use crate::glibc::symbols::find;
use crate::panic;
use crate::sys::{self, call, page_size};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::hint::black_box;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::{AtomicBool, AtomicUsize};
use std::io;

/// The stack of a helper that runs more than the runtime's own code: what `std` gives to a thread.
pub const HELPER_STACK: usize = 2 << 20;

/// The kernel's limit for a name, with the zero at its end.
const NAME: usize = 16;

/// The helpers that run.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Whether a helper has begun when [`start_helper`] returns.
static IN_ORDER: AtomicBool = AtomicBool::new(false);

/// Has helpers begin in their order from now on. For simulations of programs, whose addresses must
/// not depend on when a helper begins.
pub fn begin_in_order() {
    IN_ORDER.store(true, SeqCst);
}

/// Calls `list`, which counts threads. Returns the number of helpers among them, and their number.
/// Leaves out helpers that start or end meanwhile.
#[cfg(feature = "dump")]
#[inline]
pub fn among(list: impl FnOnce() -> Option<usize>) -> Option<(usize, usize)> {
    let before = RUNNING.load(SeqCst);
    let all = list()?;
    Some((RUNNING.load(SeqCst).min(before), all))
}

/// Forgets the helpers of the parent, in the child of a fork that has no runtime yet.
pub(crate) fn after_fork() {
    RUNNING.store(0, SeqCst);
    IN_ORDER.store(false, SeqCst);
}

/// The argument of a new helper.
struct Task<F> {
    name: [u8; NAME],
    f: F,
}

type Run = extern "C" fn(*mut c_void) -> *mut c_void;

/// Starts a platform thread with a stack of `stack` bytes, which no thread joins. If `f` panics,
/// the thread ends, and the program goes on without it.
///
/// # Errors
/// The system refuses another thread.
pub fn start_helper<F>(name: &str, stack: usize, f: F) -> io::Result<()>
where
    F: FnOnce() + Send + 'static,
{
    let mut short = [0; NAME];
    let length = name.len().min(NAME - 1);
    short[..length].copy_from_slice(&name.as_bytes()[..length]);
    let task = Box::into_raw(Box::new(Task { name: short, f }));
    let before = RUNNING.load(SeqCst);
    // SAFETY: the task is for `run`, which is for this type.
    let created = unsafe { create(stack, run::<F>, task.cast()) };
    match created {
        0 => {
            for look in 0.. {
                if !IN_ORDER.load(SeqCst) || RUNNING.load(SeqCst) != before {
                    break;
                }
                sys::back_off(look);
            }
            Ok(())
        }
        error => {
            // SAFETY: no thread has got it.
            drop(unsafe { Box::from_raw(task) });
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// Makes a detached platform thread. Returns an error's number, or 0.
///
/// # Safety
/// The new thread may call `run` with `task`.
unsafe fn create(stack: usize, run: Run, task: *mut c_void) -> c_int {
    let _forced = ForcePlatform::helpers();
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let attributes = attributes.as_mut_ptr();
    let mut thread: libc::pthread_t = 0;
    // SAFETY: attributes that are initialised first, and destroyed last; the caller's contract.
    unsafe {
        libc::pthread_attr_init(attributes);
        libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED);
        let stack = stack
            .max(least_stack(attributes))
            .next_multiple_of(page_size());
        libc::pthread_attr_setstacksize(attributes, stack);
        let created = libc::pthread_create(&mut thread, attributes, run, task);
        libc::pthread_attr_destroy(attributes);
        created
    }
}

/// Returns the size of the smallest stack: the thread-local data of all libraries is in it.
///
/// # Safety
/// The attributes are initialised.
unsafe fn least_stack(attributes: *const libc::pthread_attr_t) -> usize {
    type LeastStack = unsafe extern "C" fn(*const libc::pthread_attr_t) -> usize;
    match find!(c"__pthread_get_minstack") {
        // SAFETY: glibc's function with this signature, which std uses for the same purpose.
        Ok(found) => unsafe { core::mem::transmute::<*mut c_void, LeastStack>(found)(attributes) },
        Err(_) => libc::PTHREAD_STACK_MIN,
    }
}

extern "C" fn run<F: FnOnce()>(task: *mut c_void) -> *mut c_void {
    // SAFETY: `start_helper` has made it for this thread alone.
    let task = unsafe { Box::from_raw(task.cast::<Task<F>>()) };
    // SAFETY: a name that ends with a zero.
    let _ = unsafe { call!(libc::SYS_prctl, libc::PR_SET_NAME, task.name.as_ptr()) };
    if IN_ORDER.load(SeqCst) {
        // The allocator maps memory for each thread at its first use.
        drop(black_box(Box::new(0_u64)));
    }
    RUNNING.fetch_add(1, SeqCst);
    let _ = panic::catch(task.f);
    RUNNING.fetch_sub(1, SeqCst);
    core::ptr::null_mut()
}

thread_local! {
    /// The sum of the numbers of the thread's [`ForcePlatform`]s.
    static FORCED: Cell<u32> = const { Cell::new(0) };
}

const HELPER: u32 = 1 << 16;

/// While this lives, the threads that the calling thread makes are platform threads.
#[must_use = "it has no effect once it is dropped"]
pub struct ForcePlatform(u32, PhantomData<*const ()>);

impl ForcePlatform {
    fn new(number: u32) -> ForcePlatform {
        FORCED.set(FORCED.get() + number);
        ForcePlatform(number, PhantomData)
    }

    /// They are helpers of the runtime.
    #[inline]
    pub fn helpers() -> ForcePlatform {
        ForcePlatform::new(HELPER)
    }
}

impl Drop for ForcePlatform {
    fn drop(&mut self) {
        FORCED.set(FORCED.get() - self.0);
    }
}

/// Calls `f`, which makes platform threads of the program.
pub fn force_platform<R>(f: impl FnOnce() -> R) -> R {
    let _forced = ForcePlatform::new(1);
    f()
}

/// Returns whether the calling thread makes a platform thread.
#[inline]
pub fn is_platform_forced() -> bool {
    FORCED.get() > 0
}

/// Returns whether the calling thread makes a helper of the runtime.
#[inline]
pub fn is_making_helper() -> bool {
    FORCED.get() >= HELPER
}

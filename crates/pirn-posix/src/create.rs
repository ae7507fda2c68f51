//! Creating virtual threads by `pthread_create` and `thrd_create`, where the [`policy`] asks for
//! it.
//!
//! A thread with an attribute that only an OS thread can have becomes a platform thread, as does
//! each thread while there is no runtime. The reason is counted.

use crate::account::{self, Why};
use crate::record::Pthread;
use crate::{chosen, leaving};
use core::ffi::{c_int, c_void};
use core::mem::{self, MaybeUninit};
use core::panic::Location;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use libc::{cpu_set_t, pthread_attr_t, pthread_t, sched_param, sigset_t, size_t};
use pirn_libc::posix::{self, Record, Routine};
use pirn_libc::signals::process_wide;
use pirn_libc::thread::{names, scheduling};
use pirn_libc::time;
use pirn_rt::glibc::symbols::find;
use pirn_rt::glibc::tls;
use pirn_rt::no_suspend;
use pirn_rt::sanitizer;
use pirn_rt::sched::body;
use pirn_rt::sched::runtime::{self, Runtime};
use pirn_rt::sched::{self, Cause};
use pirn_rt::stack::{LARGEST_STACK, SizeClass};
use pirn_rt::sys::page_size;
use pirn_rt::vthread::record::Attributes;
use pirn_rt::vthread::signals::NEVER_BLOCKED;
use pirn_rt::vthread::{Core, Ready, ThreadRef};

unsafe extern "C" {
    fn pthread_getattr_default_np(attributes: *mut pthread_attr_t) -> c_int;
    fn pthread_attr_getdetachstate(attributes: *const pthread_attr_t, state: *mut c_int) -> c_int;
    fn pthread_attr_getstack(
        attributes: *const pthread_attr_t,
        stack: *mut *mut c_void,
        size: *mut size_t,
    ) -> c_int;
    fn pthread_attr_getinheritsched(
        attributes: *const pthread_attr_t,
        inherit: *mut c_int,
    ) -> c_int;
    fn pthread_attr_getschedpolicy(attributes: *const pthread_attr_t, policy: *mut c_int) -> c_int;
    fn pthread_attr_getschedparam(
        attributes: *const pthread_attr_t,
        param: *mut sched_param,
    ) -> c_int;
}

/// What threads without attributes get: the size of the stack, above [`GUARD_BITS`] bits with the
/// size of the guard; 0: not known yet. To answer, libc takes a lock and copies. Once the program
/// has changed the defaults, each creation asks libc.
static DEFAULT: AtomicU64 = AtomicU64::new(0);
const GUARD_BITS: u32 = 20;

/// What a program asks for, as far as a virtual thread can have it.
struct Wanted {
    stack: usize,
    guard: usize,
    detached: bool,
    /// The signals that it is to block, if not those that its creator blocks.
    blocked: Option<u64>,
}

impl Wanted {
    /// Reads attributes.
    ///
    /// # Errors
    /// Why only a platform thread can have them.
    ///
    /// # Safety
    /// `attributes` are initialised.
    unsafe fn read(attributes: &pthread_attr_t) -> Result<Wanted, Why> {
        let (mut stack, mut guard, mut state) = (0, 0, 0);
        // SAFETY: the caller's contract. The functions cannot fail.
        unsafe {
            libc::pthread_attr_getstacksize(attributes, &mut stack);
            libc::pthread_attr_getguardsize(attributes, &mut guard);
            pthread_attr_getdetachstate(attributes, &mut state);
            if has_own_stack(attributes) {
                return Err(Why::OwnStack);
            }
            if is_scheduled(attributes) {
                return Err(Why::Scheduling);
            }
            if is_bound(attributes) {
                return Err(Why::Affinity);
            }
        }
        Ok(Wanted {
            stack,
            guard,
            detached: state == libc::PTHREAD_CREATE_DETACHED,
            // SAFETY: the caller's contract.
            blocked: unsafe { blocked(attributes) },
        })
    }

    /// Returns what threads without attributes get.
    fn default() -> Result<Wanted, Why> {
        // Relaxed: carries no other data.
        let packed = DEFAULT.load(Ordering::Relaxed);
        if packed == 0 || posix::has_defaults() {
            return Wanted::read_default();
        }
        Ok(Wanted {
            stack: (packed >> GUARD_BITS) as usize,
            guard: (packed & ((1 << GUARD_BITS) - 1)) as usize,
            detached: false,
            blocked: None,
        })
    }

    /// Asks libc what threads without attributes get, and keeps the answer if it is an ordinary
    /// one.
    #[cold]
    fn read_default() -> Result<Wanted, Why> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the function initialises the attributes, which are destroyed once.
        let wanted = unsafe {
            if pthread_getattr_default_np(attributes.as_mut_ptr()) != 0 {
                return Err(Why::NoRuntime); // No memory: libc's own function will say so.
            }
            let wanted = Wanted::read(attributes.assume_init_ref());
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            wanted?
        };
        let plain = !wanted.detached && wanted.blocked.is_none();
        if plain && wanted.stack >> (64 - GUARD_BITS) == 0 && wanted.guard >> GUARD_BITS == 0 {
            let packed = (wanted.stack as u64) << GUARD_BITS | wanted.guard as u64;
            DEFAULT.store(packed, Ordering::Relaxed); // Relaxed: carries no other data.
        }
        Ok(wanted)
    }

    /// Returns the class of stacks that has room for it.
    fn class(&self) -> Result<SizeClass, Why> {
        /// What the runtime needs at a park, and what is in a slot besides, beyond what a thread of
        /// libc's has: a stack of `PTHREAD_STACK_MIN` is to be as useful as there.
        const RUNTIME: usize = 16 << 10;
        let template = tls::template();
        let page = page_size();
        let more_guard = self.guard.next_multiple_of(page).saturating_sub(page);
        let extra = template.bytes()
            + RUNTIME
            + more_guard
            + sanitizer::extra_stack(template.image_bytes());
        match self.stack.checked_add(extra) {
            Some(bytes) if bytes <= LARGEST_STACK => Ok(SizeClass::for_bytes(bytes)),
            _ => Err(Why::LargeStack),
        }
    }
}

/// Returns whether the program has set a stack.
///
/// # Safety
/// `attributes` are initialised, here and below.
unsafe fn has_own_stack(attributes: &pthread_attr_t) -> bool {
    let (mut lowest, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the caller's contract.
    unsafe { pthread_attr_getstack(attributes, &mut lowest, &mut size) };
    // libc keeps the end, which is null if none was set.
    lowest.addr().wrapping_add(size) != 0
}

/// Returns whether the program asks for another policy than the ordinary one, or for a priority,
/// which the ordinary one does not have: the kernel refuses it.
unsafe fn is_scheduled(attributes: &pthread_attr_t) -> bool {
    let (mut inherit, mut policy, mut param) = (0, 0, sched_param { sched_priority: 0 });
    // SAFETY: the caller's contract.
    unsafe {
        pthread_attr_getinheritsched(attributes, &mut inherit);
        pthread_attr_getschedpolicy(attributes, &mut policy);
        pthread_attr_getschedparam(attributes, &mut param);
    }
    inherit == libc::PTHREAD_EXPLICIT_SCHED
        && (policy != libc::SCHED_OTHER || param.sched_priority != 0)
}

/// Returns the signals that the program wants the thread to block (`pthread_attr_setsigmask_np`),
/// if it says so.
unsafe fn blocked(attributes: &pthread_attr_t) -> Option<u64> {
    type Get = unsafe extern "C" fn(*const pthread_attr_t, *mut sigset_t) -> c_int;
    // glibc has it since 2.32.
    let get = find!(c"pthread_attr_getsigmask_np").ok()?;
    let mut set = MaybeUninit::<sigset_t>::zeroed();
    // SAFETY: the function's type; the caller's contract; the first eight bytes are all signals.
    unsafe {
        let get = mem::transmute::<*mut c_void, Get>(get);
        let found = get(attributes, set.as_mut_ptr()) == 0; // Else it is to inherit them.
        found.then(|| set.as_ptr().cast::<u64>().read() & !NEVER_BLOCKED)
    }
}

/// Returns whether the program binds the thread to some CPUs.
unsafe fn is_bound(attributes: &pthread_attr_t) -> bool {
    let mut set = [0_u64; size_of::<cpu_set_t>() / 8];
    // SAFETY: the caller's contract; libc fills the set, with ones if none was chosen.
    let error = unsafe {
        libc::pthread_attr_getaffinity_np(attributes, size_of_val(&set), set.as_mut_ptr().cast())
    };
    error != 0 || set.iter().any(|&part| part != u64::MAX)
}

/// Creates a virtual thread if the policy says so. Returns libc's result, or `None` if the thread
/// is to be a platform thread.
///
/// # Safety
/// As for `pthread_create`.
pub(crate) unsafe fn virtually(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> Option<c_int> {
    let code = match routine {
        Routine::Posix(start) => start as usize,
        Routine::C11(start) => start as usize,
    };
    if let Some(why) = chosen::why(code) {
        account::count_platform(why);
        return None;
    }
    // SAFETY: the caller's contract.
    match unsafe { create(thread, attributes, routine, argument) } {
        Ok(result) => Some(result),
        Err(why) => {
            account::count_platform(why);
            None
        }
    }
}

/// Creates a virtual thread. Returns libc's result, or why it must be a platform thread.
///
/// # Safety
/// As for `pthread_create`.
pub(crate) unsafe fn create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> Result<c_int, Why> {
    if no_suspend::is_on() {
        return Err(Why::InHandler);
    }
    // SAFETY: the caller's contract.
    let attributes = unsafe { attributes.as_ref() };
    let wanted = match attributes {
        // SAFETY: the caller's contract.
        Some(attributes) => unsafe { Wanted::read(attributes)? },
        None => Wanted::default()?,
    };
    let runtime = runtime::ensure_started().map_err(|error| account::no_runtime(&error))?;
    let class = wanted.class()?;
    if runtime.reserve_stack(class).is_err() {
        // The threads that have been made may be about to end, if they get to run.
        time::sched_yield();
        if runtime.reserve_stack(class).is_err() {
            return Ok(libc::EAGAIN);
        }
    }
    let body = Pthread::new(routine, argument, wanted.guard, class, runtime);
    let Some((record, new, ready)) = allocate(body, class, runtime) else {
        runtime.stacks.unreserve(class, 1);
        return Ok(libc::EAGAIN);
    };
    // SAFETY: new, and ours; `record`, which is forgotten, leaves it its reference.
    let address = unsafe { new.lay_out(&record) };
    // SAFETY: new, and ours; `record`, which is forgotten, leaves it its reference.
    if !unsafe { new.widen_guard() } {
        let own = ready.into_raw();
        // SAFETY: the thread's own reference: it never starts. The other goes with `record`.
        unsafe { Core::release(own) };
        return Ok(libc::EAGAIN);
    }
    // SAFETY: the thread has not started.
    unsafe {
        names::inherit(address);
        scheduling::inherit(address);
    }
    if let Some(blocked) = wanted.blocked {
        record.signals.mask.store(blocked, Ordering::SeqCst);
        process_wide::watch(); // The thread may take signals that its creator blocks.
    }
    // SAFETY: the thread is scheduled below.
    unsafe { new.enter() };
    leaving::enter();
    account::count_virtual();
    // SAFETY: the caller's contract. Before the thread starts: it may look there.
    unsafe { *thread = address };
    mem::forget(record);
    if wanted.detached {
        // SAFETY: no other code has the thread yet.
        unsafe { new.detach() };
    }
    sched::schedule(ready, Cause::Start);
    Ok(0)
}

/// Makes the record of a new thread, and the right to run it. `None`: there is no memory.
fn allocate<'a>(
    body: Pthread,
    class: SizeClass,
    runtime: &'static Runtime,
) -> Option<(ThreadRef, &'a Pthread, Ready)> {
    let attributes = Attributes {
        home: runtime.home(),
        name: None,
        class,
        scheduler: None,
        place: Location::caller(),
    };
    // SAFETY: writes the whole body.
    let made = unsafe { body::allocate(attributes, |place: *mut Pthread| place.write(body)) };
    // SAFETY: the body is part of the record, to which there are references until it is joined.
    made.map(|(thread, ready, body)| (thread, unsafe { body.as_ref() }, ready))
}

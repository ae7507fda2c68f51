//! Foreign carriers: platform threads of the program that run virtual threads, inline: for a
//! scheduler of the program, or while a platform thread joins the thread.

use super::carrier::{Carrier, on_carrier};
use super::{Holder, Runtime, os_thread};
use crate::panic;
use crate::recorder::kinds::FOREIGN;
use crate::sys;
use crate::vthread::{Core, Dispatch, Ready, join};
use core::cell::OnceCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Gives up the right to run a thread without using it. A thread that has never run ends as if it
/// had panicked; one that has run stays parked for good.
pub fn abandon(thread: Ready) {
    let core = thread.core();
    if core.slot().is_none() {
        // SAFETY: it has never run, and now never will.
        unsafe { (core.vtable().abandon)(NonNull::from(core)) };
        Runtime::of(core).stacks.unreserve(core.class(), 1);
        join::publish(core);
        // SAFETY: the thread's own reference, which its end would have given up.
        unsafe { Core::release(thread.into_raw()) };
    }
}

/// Returns the printable name of the carrier with this number.
pub fn carrier_name(number: u32) -> String {
    if number & FOREIGN == 0 {
        return format!("carrier-{number}");
    }
    let id = number & !FOREIGN;
    if id == std::process::id() {
        return "main".into();
    }
    os_thread::name(id).unwrap_or_else(|| format!("thread-{id}"))
}

/// Mounts a thread on the calling platform thread until it parks, yields or ends.
///
/// # Safety
/// The caller is not a virtual thread.
pub unsafe fn run_inline(thread: Ready) {
    // SAFETY: the caller's contract.
    unsafe { run_on(thread, None) };
}

/// Does what [`run_inline`] does; `processor` is reserved for the thread.
///
/// # Safety
/// As for [`run_inline`].
unsafe fn run_on(thread: Ready, processor: Option<Holder<'_>>) {
    thread_local! {
        // Boxed: these bytes are in the page of each virtual thread, too.
        static CARRIER: OnceCell<Box<Carrier>> = const { OnceCell::new() };
    }
    let runtime = Runtime::of(thread.core());
    let new = || Carrier::new(FOREIGN | os_thread::id(), runtime);
    let mut thread = Some(thread);
    let mut mount = |carrier: &Carrier| {
        if let Some(thread) = thread.take() {
            // SAFETY: the caller's contract.
            carrier.enter(runtime, || unsafe {
                match processor {
                    None => carrier.mount(thread),
                    Some(processor) => carrier.mount_reserved(thread, processor),
                }
            });
        }
    };
    let mounted = CARRIER.try_with(|carrier| {
        let carrier = carrier.get_or_init(|| Box::new(new()));
        // In the child of a fork the carrier may be the parent's.
        let usable = carrier.number == FOREIGN | os_thread::id();
        if usable {
            mount(carrier);
        }
        usable
    });
    if mounted != Ok(true) {
        // The carrier is the parent's, or a destructor of a thread-local calls this at the end of
        // the platform thread.
        mount(&new());
    }
}

/// Whether a join runs no thread inline.
static NEVER_INLINE: AtomicBool = AtomicBool::new(false);

/// Makes joins on platform threads run no thread inline from now on: the program handles signals. A
/// handler on a foreign carrier would run as the thread that it carries; and a thread that sends a
/// signal to its own carrier and waits for what the handler does (a garbage collector stops all
/// threads this way) would wait for itself.
pub fn never_run_inline() {
    // Relaxed: carries no other data. A thread that runs inline already leaves when it parks.
    NEVER_INLINE.store(true, Ordering::Relaxed);
}

/// Runs `thread` inline until it parks, if no carrier has begun to run it and a processor is idle:
/// the calling platform thread is about to join it. A spawn and a join from `main` then wake no
/// other OS thread.
pub fn help_join(thread: &Core) {
    // Relaxed: as in `never_run_inline`.
    if NEVER_INLINE.load(Ordering::Relaxed) {
        return;
    }
    let runtime = Runtime::of(thread);
    // The processor is only reserved, so that no more threads run than there are processors.
    // Nothing is queued on it, since this platform thread soon leaves.
    let Some(processor) = runtime.acquire_processor() else {
        return;
    };
    if let Some(thread) = runtime.injector.take_first(thread) {
        // SAFETY: the caller is a platform thread.
        unsafe { run_on(thread, Some(processor.holder())) };
    }
    runtime.give_back_processor(processor);
}

/// Hands a thread to the scheduler it was built with.
///
/// A scheduler is platform code: if the waking thread were unmounted in the middle of `schedule`,
/// it would itself have to be scheduled, perhaps by the very scheduler whose lock it holds. So the
/// carrier runs it, and a blocking call in it blocks the carrier.
#[cold]
pub(super) fn dispatch(scheduler: Arc<dyn Dispatch>, thread: Ready) {
    let call = move || {
        if panic::catch(|| scheduler.dispatch(thread)).is_none() {
            sys::fatal(&["a scheduler panicked: the wake-up of a virtual thread is lost"]);
        }
    };
    // SAFETY: `call` does not unwind.
    unsafe { on_carrier(call) };
}

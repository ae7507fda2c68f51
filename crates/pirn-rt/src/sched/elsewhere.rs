//! Running threads on platform threads that are not the scheduler's carriers: for a scheduler of
//! the program, or while a platform thread waits for the thread.

use super::{Holder, os_thread};
use crate::panic;
use crate::sys;
use crate::vthread::Dispatch;
use crate::vthread::record::Phase;
use crate::vthread::{self, Carrier, Core, Ready};
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
        core.set_phase(Phase::Terminated);
        core.runtime().stacks.unreserve(core.class(), 1);
        vthread::life::publish(core);
        // SAFETY: the thread's own reference, which its end would have given up.
        unsafe { Core::release(thread.into_raw()) };
    }
}

/// Marks the number of a carrier that is a platform thread of the program; the rest is its kernel
/// id, which is below 2^22. Numbers have 24 bits (`Core::set_running`).
const FOREIGN: u32 = 1 << 23;

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
pub unsafe fn mount_here(thread: Ready) {
    // SAFETY: the caller's contract.
    unsafe { mount_on_this(thread, None) };
}

/// The same; `processor` is one that is reserved for it.
///
/// # Safety
/// As for [`mount_here`].
unsafe fn mount_on_this(thread: Ready, processor: Option<Holder<'_>>) {
    thread_local! {
        // Boxed: these bytes are in the page of each virtual thread, too.
        static CARRIER: OnceCell<Box<Carrier>> = const { OnceCell::new() };
    }
    let runtime = thread.core().runtime();
    let new = || Carrier::new(FOREIGN | os_thread::id(), runtime);
    let mut thread = Some(thread);
    let mut mount = |carrier: &Carrier| {
        if let Some(thread) = thread.take() {
            // SAFETY: the caller's contract.
            carrier.enter(runtime, || unsafe {
                match processor {
                    None => carrier.mount(thread),
                    Some(processor) => carrier.mount_lent(thread, processor),
                }
            });
        }
    };
    let mounted = CARRIER.try_with(|carrier| {
        let carrier = carrier.get_or_init(|| Box::new(new()));
        // In the child of a fork it may be one of the parent's.
        let usable = carrier.number == FOREIGN | os_thread::id();
        if usable {
            mount(carrier);
        }
        usable
    });
    if mounted != Ok(true) {
        // As above, or in a destructor of a thread-local, at the end of the platform thread.
        mount(&new());
    }
}

/// Whether platform threads are not lent.
static ARE_KEPT: AtomicBool = AtomicBool::new(false);

/// Has platform threads wait by themselves from now on: they may get signals. While one of them is
/// lent, a handler would run as the thread that it carries; and a thread that sends one to the
/// platform thread that carries it, and waits for what the handler does (a garbage collector stops
/// all threads so), would wait for itself.
pub fn keep_platform_threads() {
    // Relaxed: complete in itself. One that is lent already comes back when the thread parks.
    ARE_KEPT.store(true, Ordering::Relaxed);
}

/// Lends the calling platform thread, which is about to wait for `thread`, as its carrier: if
/// nobody has begun to run it and a processor is idle, runs it here until it parks. So a spawn and
/// a join from `main` wake no other OS thread.
pub fn lend(thread: &Core) {
    // Relaxed: as above.
    if ARE_KEPT.load(Ordering::Relaxed) {
        return;
    }
    let runtime = thread.runtime();
    // The processor is only reserved, so that no more threads run than there are processors.
    // Nothing is queued on it, since this platform thread will not stay.
    let Some(processor) = runtime.acquire_processor() else {
        return;
    };
    if let Some(thread) = runtime.injector.take_first(thread) {
        // SAFETY: the caller is a platform thread.
        unsafe { mount_on_this(thread, Some(processor.holder())) };
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
    unsafe { vthread::on_carrier(call) };
}

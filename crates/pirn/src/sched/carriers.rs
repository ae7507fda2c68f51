//! The carriers: platform threads that hold a processor and run what is in its queue.

use super::driver::driver;
use super::spare::{self, Spare};
use super::{Processor, idle, injector, processors, settings};
use crate::stack::pool;
use crate::sys;
use crate::vthread::{Carrier, Core, magazines};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Threads fetched from the injector at once at the most.
const INJECTOR_BATCH: usize = 64;
/// A processor whose tick has stood still for so long is stuck in one thread, and loses even the
/// [few](idle::FEW) threads in its queue to a searcher. Before that, taking them would only move
/// them away from their cache.
const STUCK_NS: u64 = 5_000;
/// A searching carrier asks for descriptors' events about this often.
const SEARCH_POLL_NS: u64 = 5_000;

/// Starts the carriers.
pub(crate) fn start() -> io::Result<()> {
    processors().iter().try_for_each(start_one)
}

/// Starts the carrier that begins with this processor.
pub(crate) fn start_one(processor: &'static Processor) -> io::Result<()> {
    let builder = std::thread::Builder::new().name(format!("pirn-carrier-{}", processor.index));
    builder.spawn(move || run(processor)).map(drop)
}

fn run(processor: &'static Processor) {
    let carrier = Carrier::new(processor.index as u32);
    carrier.set_processor(Some(processor));
    // SAFETY: it was made, or added, for this carrier.
    unsafe { processor.held_here() };
    // A carrier that ended would leave its threads waiting for ever, without a word.
    let panic = catch_unwind(AssertUnwindSafe(|| {
        carrier.enter(|| {
            loop {
                let thread = next(&carrier);
                // SAFETY: `next` passes on the right to run it; this is the carrier's own stack.
                unsafe { carrier.mount(thread) };
            }
        })
    }));
    let Err(payload): Result<(), _> = panic else {
        return;
    };
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or(payload.downcast_ref::<&str>().copied());
    sys::fatal(&["a carrier panicked: ", text.unwrap_or("(no message)")])
}

/// The next thread to run; sleeps until there is one.
fn next(carrier: &Carrier) -> NonNull<Core> {
    let mut searching = false;
    loop {
        if let Some(processor) = carrier.processor() {
            if processor.spare.is_some() {
                // SAFETY: this carrier holds it.
                match unsafe { stand_in(processor) } {
                    Some(thread) => return thread,
                    None => continue,
                }
            }
            // SAFETY: this carrier holds it.
            let found = unsafe { look(processor) }.or_else(|| {
                searching = searching || idle::take_request() || idle::start_searching();
                if !searching {
                    return None;
                }
                // SAFETY: as above.
                unsafe { search(processor) }
            });
            if searching {
                searching = false;
                idle::stop_searching(found.is_some());
            }
            if let Some(thread) = found {
                return thread;
            }
            carrier.set_processor(None);
            if idle::release(processor) {
                carrier.set_processor(idle::acquire());
                super::monitor::stir();
                continue;
            }
        }
        searching = sleep(carrier);
    }
}

/// One look for a thread with a spare processor, which rests if there is none.
///
/// # Safety
/// The caller's carrier holds `processor`.
unsafe fn stand_in(processor: &'static Processor) -> Option<NonNull<Core>> {
    let leaving = processor.spare.as_ref().is_some_and(Spare::is_leaving);
    // A kick that this look takes from a sleeper may have been for a search: then this is the
    // search.
    let searching = !leaving && idle::take_request();
    // SAFETY: the caller's contract.
    unsafe {
        let found = if leaving { None } else { look(processor) };
        if searching {
            idle::stop_searching(found.is_some());
        }
        if found.is_none() {
            spare::rest(processor);
        }
        found
    }
}

/// One look everywhere, in the order of cost.
///
/// # Safety
/// The caller's carrier holds `processor`.
unsafe fn look(processor: &'static Processor) -> Option<NonNull<Core>> {
    // SAFETY: the holder's operations, by the caller's contract.
    unsafe {
        if processor.maintenance_due() {
            if processor.look_due() {
                driver().turn();
            }
            // Whoever always has threads of its own would else never come to those behind a stuck
            // one.
            if let Some(thread) = injector::pop(1, |_| {}).or_else(|| relieve(processor)) {
                return Some(thread);
            }
        }
        if let Some(thread) = processor.pop() {
            return Some(thread);
        }
        if let Some(thread) = fetch(processor) {
            return Some(thread);
        }
        if driver().turn()
            && let Some(thread) = processor.pop()
        {
            return Some(thread);
        }
        steal(processor, idle::FEW + 1).or_else(|| relieve(processor))
    }
}

/// One more than the index of a processor that the monitor has found stuck in one thread while
/// others wait in its queue; 0: none.
static STUCK: AtomicUsize = AtomicUsize::new(0);

/// Has the next carrier that looks for work relieve this processor, be it of a single thread.
pub(crate) fn report_stuck(index: usize) {
    STUCK.store(index + 1, Ordering::Relaxed); // Relaxed: a hint; the kick that follows orders.
}

/// Relieves the processor that was reported stuck.
unsafe fn relieve(processor: &'static Processor) -> Option<NonNull<Core>> {
    if STUCK.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let index = STUCK.swap(0, Ordering::Relaxed).checked_sub(1)?;
    let victim = processors()
        .get(index)
        .filter(|p| p.index != processor.index)?;
    // SAFETY: the caller holds `processor`.
    unsafe { victim.queue.steal_into(&processor.queue) }
}

/// Takes a share of the injector.
unsafe fn fetch(processor: &'static Processor) -> Option<NonNull<Core>> {
    let share = injector::len() / settings().parallelism + 1;
    let mut batch = [None; INJECTOR_BATCH];
    let mut len = 0;
    let first = injector::pop(share.min(INJECTOR_BATCH), |thread| {
        batch[len] = Some(thread);
        len += 1;
    });
    for thread in batch[..len].iter().flatten() {
        // SAFETY: the holder's operation, and the threads are ours to run.
        unsafe { processor.enqueue(*thread) };
    }
    first
}

/// Takes half of another processor's queue, if that has at least `least` threads.
unsafe fn steal(processor: &'static Processor, least: usize) -> Option<NonNull<Core>> {
    let all = processors();
    let start = processor.index + 1;
    (0..all.len() - 1).find_map(|i| {
        let victim = &all[(start + i) % all.len()];
        if victim.queue.len() < least {
            return None;
        }
        // SAFETY: the caller holds `processor`.
        unsafe { victim.queue.steal_into(&processor.queue) }
    })
}

/// Looks for work for a while.
unsafe fn search(processor: &'static Processor) -> Option<NonNull<Core>> {
    let begin = sys::now();
    let mut polled = begin;
    let mut suspects = Suspects::new();
    loop {
        for _ in 0..8 {
            core::hint::spin_loop();
        }
        // SAFETY: the caller holds `processor`.
        unsafe {
            if injector::len() > 0
                && let Some(thread) = fetch(processor)
            {
                return Some(thread);
            }
            if let Some(thread) = steal(processor, idle::FEW + 1) {
                return Some(thread);
            }
            let now = sys::now();
            if suspects.any_stuck(now)
                && let Some(thread) = steal(processor, 1)
            {
                return Some(thread);
            }
            if now - polled >= SEARCH_POLL_NS {
                polled = now;
                if driver().turn()
                    && let Some(thread) = processor.pop()
                {
                    return Some(thread);
                }
            }
            if now - begin >= settings().spin_ns {
                return None;
            }
        }
    }
}

/// Finds out which processors are stuck in one thread while a few others wait in their queue.
struct Suspects {
    seen: Option<(usize, u32, u64)>,
}

impl Suspects {
    fn new() -> Suspects {
        Suspects { seen: None }
    }

    fn any_stuck(&mut self, now: u64) -> bool {
        let few = 1..=idle::FEW;
        let Some(victim) = processors().iter().find(|p| few.contains(&p.queue.len())) else {
            self.seen = None;
            return false;
        };
        let tick = victim.tick.load(Ordering::Relaxed); // Relaxed: a hint.
        match self.seen {
            Some((index, seen, since)) if index == victim.index && seen == tick => {
                now - since >= STUCK_NS
            }
            _ => {
                self.seen = Some((victim.index, tick, now));
                false
            }
        }
    }
}

/// Sleeps without a processor until there is an event or a kick, and takes a processor again if
/// there is one. Returns whether this carrier has been asked to search.
fn sleep(carrier: &Carrier) -> bool {
    driver().wait(&mut || {
        carrier.set_processor(idle::acquire());
        super::monitor::stir();
    });
    if carrier.processor().is_none() || !idle::take_request() {
        // Without a processor there is nothing to search with. Whoever has the last one takes up
        // the request when it runs out of work.
        return false;
    }
    true
}

/// Gives the memory of unused stacks and cells back, unless threads become runnable. For carriers
/// that have nothing else to do.
pub(crate) fn trim() {
    while injector::len() == 0 && pool::trim() {}
    if injector::len() == 0 {
        magazines::trim();
    }
}

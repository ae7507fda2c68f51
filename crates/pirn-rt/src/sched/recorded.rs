//! What the [recorder] is told of virtual threads.
//!
//! The callers ask first whether it is [on](recorder::is_on). The functions here are cold, so that
//! callers pay for that question only. A switch asks instead whether anything is
//! [watched](recorder::is_watched): events, [CPU time](cpu_time) or [more state](extra_state).
//!
//! All accesses to [`Core::woken`](Core) are relaxed: statistics only. (A waker and
//! the carrier of a preempted thread that is about to park may access it at once.)

use super::carrier::{Carrier, carrier};
use super::cpu_time;
use super::mount::After;
use crate::no_suspend::{self, NoSuspend};
use crate::recorder::carrier_ring::Writer;
use crate::recorder::{self, kinds};
use crate::vthread::{Core, current, extra_state};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

/// Notes that `thread` is about to leave its carrier, which will go on with `next`.
#[cold]
#[inline(never)]
pub(crate) fn left(carrier: &Carrier, thread: &Core, after: After, next: Option<&Core>) {
    if recorder::carries_extra_state() {
        extra_state::switch(carrier.native_tp(), Some(thread), next);
    }
    if recorder::counts_cpu_time() {
        cpu_time::switched(carrier, Some(thread));
    }
    if !recorder::is_on() {
        return;
    }
    let (id, next_id) = (thread.id(), next.map_or(0, Core::id));
    let kind = match after {
        After::Park => kinds::PARK,
        After::Yield | After::MakeWay => kinds::YIELD,
        After::Preempt => kinds::PREEMPT,
        After::Exit => kinds::EXIT,
    };
    let Some(writer) = carrier.writer() else {
        if let After::Exit = after {
            thread.with_name(|name| name.map(|name| recorder::outside_name(id, name)));
        }
        return recorder::outside(id, kind, next_id, thread.wait_info.what().word());
    };
    if let Some(next) = next {
        order(writer, carrier, next);
    }
    match after {
        After::Park => writer.push_with(id, kind, next_id, thread.wait_info.what().word()),
        After::Exit => exit(writer, thread, next_id),
        _ => writer.push(id, kind, next_id),
    }
    if let Some(next) = next {
        end_wait(next, writer.last_stamp());
    }
}

#[cold]
fn exit(writer: Writer, thread: &Core, next: u64) {
    thread.with_name(|name| name.map(|name| writer.name(thread.id(), name)));
    writer.push(thread.id(), kinds::EXIT, next);
}

/// Notes that a carrier is about to mount a thread from its own stack.
#[cold]
#[inline(never)]
pub(crate) fn mounted(carrier: &Carrier, thread: &Core) {
    let outer = current(); // A thread that carries others itself runs until here.
    let outer = outer.as_deref();
    if recorder::carries_extra_state() {
        extra_state::switch(carrier.native_tp(), outer, Some(thread));
    }
    if recorder::counts_cpu_time() {
        cpu_time::switched(carrier, outer);
    }
    if !recorder::is_on() {
        return;
    }
    let Some(writer) = carrier.writer() else {
        return recorder::outside(0, kinds::MOUNT, thread.id(), 0);
    };
    order(writer, carrier, thread);
    writer.push(0, kinds::MOUNT, thread.id());
    end_wait(thread, writer.last_stamp());
}

/// Lets the next stamp be later than the events of `next` on another carrier.
#[inline(always)]
fn order(writer: Writer, carrier: &Carrier, next: &Core) {
    if !ptr::eq(next.carrier.get(), ptr::from_ref(carrier).cast())
        || next.woken.load(Relaxed) > writer.last_stamp()
    {
        writer.read_clock();
    }
}

/// Notes that a thread that was woken runs, at the time `stamp`.
#[inline(always)]
fn end_wait(thread: &Core, stamp: u64) {
    let woken = thread.woken.load(Relaxed);
    if woken != 0 {
        thread.woken.store(0, Relaxed);
        recorder::note_latency(thread.id(), stamp.saturating_sub(woken));
    }
}

/// Notes that a thread is woken. The caller has the right to wake it.
#[cold]
#[inline(never)]
pub(crate) fn woken(thread: &Core) {
    thread
        .woken
        .store(note(kinds::WAKE, thread.id(), None), Relaxed);
}

/// Notes that a thread is spawned. The caller has the right to run it.
#[cold]
#[inline(never)]
pub(crate) fn spawned(thread: &Core) {
    let place = ptr::from_ref(thread.place()).addr();
    let stamp = note(kinds::SPAWN, thread.id(), Some(place as u64));
    thread.woken.store(stamp, Relaxed);
}

/// Writes an event of the running thread, if the recorder is on.
#[inline]
pub fn event(kind: u8, payload: u64) {
    if recorder::is_on() {
        note(kind, payload, None);
    }
}

/// Notes that a scope is closed.
pub fn scope_closed(id: u64, name: Option<&str>) {
    if !recorder::is_on() {
        return;
    }
    if let Some(name) = name {
        let section = NoSuspend::new();
        match carrier(&section).and_then(Carrier::writer) {
            Some(writer) => writer.name(id, name),
            None => recorder::outside_name(id, name),
        }
    }
    note(kinds::SCOPE_CLOSE, id, None);
}

/// Notes that the running thread's code has panicked, if it is a virtual thread.
#[cold]
pub(crate) fn panicked() {
    if let Some(thread) = current().filter(|_| recorder::is_on()) {
        note(kinds::PANIC, thread.id(), None);
        recorder::fire(recorder::PANIC_RULE, thread.id());
    }
}

/// Writes an event where the caller runs. Returns its stamp.
#[cold]
#[inline(never)]
fn note(kind: u8, payload: u64, detail: Option<u64>) -> u64 {
    let running = current().map_or(0, |thread| thread.id());
    if !no_suspend::in_handler() {
        let section = NoSuspend::new();
        if let Some(writer) = carrier(&section).and_then(Carrier::writer) {
            match detail {
                None => writer.push(running, kind, payload),
                Some(detail) => writer.push_with(running, kind, payload, detail),
            }
            return writer.last_stamp();
        }
    }
    recorder::outside(running, kind, payload, detail.unwrap_or(0));
    recorder::clock()
}

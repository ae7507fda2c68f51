//! Starting a subtask on a virtual thread.

use super::JoinerFor;
use super::member::{Member, Who};
use super::packet::{self, Packet, complete};
use super::state::Cause;
use super::subtask::{Keeps, Subtask};
use super::task_scope::Frame;
use crate::thread::{Builder, Panic};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ops::ControlFlow;
use core::ptr::NonNull;
use pirn_rt::sched;
use pirn_rt::vthread::body::{self, Body, write_fields};
use pirn_rt::vthread::record::Place;
use std::io;

/// The body of a virtual thread that runs a subtask: its membership, its result, and, until the
/// subtask starts, its closure.
struct Fork<T, J: JoinerFor<T>, F> {
    member: Member,
    packet: Packet<T, J::Error>,
    index: usize,
    /// On the owner's stack, for as long as the member has not left.
    frame: NonNull<Frame<J>>,
    closure: UnsafeCell<MaybeUninit<F>>,
}

impl<T, J, F> Body for Fork<T, J, F>
where
    J: JoinerFor<T>,
    F: FnOnce() -> Result<T, J::Error>,
{
    fn code() -> &'static str {
        core::any::type_name::<F>()
    }

    unsafe fn run(&self) {
        // SAFETY: called once, by a member that has entered.
        let (frame, closure) = unsafe {
            (
                self.frame.as_ref(),
                (*self.closure.get()).assume_init_read(),
            )
        };
        packet::run(frame, self.index, &self.packet, &self.member, closure);
    }

    unsafe fn abandon(&self) {
        // SAFETY: the member has entered. If it could not, because the scope is cancelled, the
        // owner is still in its `fork`.
        let frame = unsafe { self.frame.as_ref() };
        let tell = || {
            // SAFETY: called instead of `run`: the closure has not run, and never will.
            unsafe {
                (*self.closure.get()).assume_init_drop();
                self.packet
                    .fail("the scheduler dropped this virtual thread before it ran");
            }
            complete(frame, self.index, &self.packet)
        };
        let cause = match Panic::catch(tell) {
            Ok(ControlFlow::Continue(())) => return,
            Ok(ControlFlow::Break(())) => Cause::Joiner,
            Err(panic) => Cause::Panicked(panic),
        };
        frame.state.cancel(cause, Some(&self.member));
    }

    unsafe fn drop_result(&self) {
        // SAFETY: the caller's contract: there is no handle.
        drop(unsafe { self.packet.take() });
    }

    unsafe fn ended(&self) {
        // SAFETY: called once; the member can have entered only in `fork`, and only its own scope.
        unsafe { self.member.leave() };
    }
}

/// Forks a subtask on a virtual thread, which is not started if the scope is cancelled.
pub(super) fn fork<'scope, T, J, F>(
    builder: &Builder,
    place: Place,
    frame: &Frame<J>,
    index: usize,
    closure: F,
) -> io::Result<Subtask<'scope, T, J::Error>>
where
    J: JoinerFor<T>,
    F: FnOnce() -> Result<T, J::Error> + Send + 'scope,
    T: Send + 'scope,
{
    let write = |place: *mut Fork<T, J, F>| {
        // Unsafe: `allocate` passes memory that is valid for writes.
        write_fields!(unsafe place => Fork {
            member: Member::new(&frame.state),
            packet: Packet::new(),
            index: index,
            frame: NonNull::from(frame),
            closure: UnsafeCell::new(MaybeUninit::new(closure)),
        });
    };
    let (thread, ready, fork) =
        // SAFETY: `write` writes the whole body.
        builder.make(place, |attributes| unsafe { body::allocate(attributes, write) })?;
    // SAFETY: the body is in the thread's allocation, of which we have a reference.
    let fork = unsafe { fork.as_ref() };
    thread.set_scope(frame.state.id);
    fork.member.set_thread(Who::Virtual(thread.as_ptr()));
    // SAFETY: the member is new, and its thread's own reference keeps it until it leaves in
    // `ended`.
    if !unsafe { frame.state.enter(&fork.member) } {
        // We have the right to run it and give it up: its closure is dropped, and its resources are
        // freed.
        sched::abandon(ready);
        return Ok(Subtask::unavailable(index));
    }
    sched::start(ready);
    let packet = NonNull::from(&fork.packet);
    // SAFETY: the packet is in the thread's allocation, which `thread` keeps.
    Ok(unsafe { Subtask::new(index, packet, Keeps::Virtual(thread)) })
}

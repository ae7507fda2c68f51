//! Starting a subtask on a platform thread.

use super::JoinerFor;
use super::member::{Member, Who};
use super::packet::{self, Packet};
use super::subtask::{Keeps, Subtask};
use super::task_scope::Frame;
use crate::thread::PlatformThreads;
use core::ptr::NonNull;
use pirn_rt::vthread::{self, identity::Platform};
use std::io;
use std::sync::Arc;

/// Forks a subtask on a platform thread, which is not started if the scope is cancelled.
pub(super) fn fork<'scope, T, J, F>(
    threads: &PlatformThreads,
    frame: &Frame<J>,
    index: usize,
    closure: F,
) -> io::Result<Subtask<'scope, T, J::Error>>
where
    J: JoinerFor<T>,
    F: FnOnce() -> Result<T, J::Error> + Send + 'scope,
    T: Send + 'scope,
{
    let builder = threads.builder()?;
    let packet = Arc::new(Packet::new());
    let of_thread = Arc::clone(&packet);
    let shared = Shared(NonNull::from(frame));
    let main = move || {
        // SAFETY: the owner has counted this thread, and waits until it has left.
        let frame: &Frame<J> = unsafe { shared.get().as_ref() };
        run(frame, index, of_thread, closure);
    };
    if !frame.state.reserve_place() {
        return Ok(Subtask::unavailable(index));
    }
    // Also runs if the start fails by a panic of the closure's destructor.
    let missing = OnDrop(|| frame.state.give_up_place());
    // SAFETY: the owner does not leave the scope before the thread has left it, and the thread uses
    // nothing of `'scope` after that.
    vthread::force_platform(|| unsafe { builder.spawn_unchecked(main) })?; // detached
    core::mem::forget(missing);
    let place = NonNull::from(&*packet);
    // SAFETY: the reference keeps the packet.
    Ok(unsafe { Subtask::new(index, place, Keeps::Platform(packet)) })
}

/// Runs a subtask on its thread, for which a place in the scope has been reserved.
fn run<T, J, F>(frame: &Frame<J>, index: usize, packet: Arc<Packet<T, J::Error>>, closure: F)
where
    J: JoinerFor<T>,
    F: FnOnce() -> Result<T, J::Error>,
{
    let member = Member::new(&frame.state);
    member.set_thread(Who::Platform(Platform::current()));
    // SAFETY: the member leaves below, before it goes away.
    unsafe { frame.state.take_place(&member) };
    // Leaves the scope even if the destructor of the result panics.
    let leaving = OnDrop(|| {
        // SAFETY: called once, and the member has taken its place above.
        unsafe { member.leave() };
    });
    packet::run(frame, index, &packet, &member, closure);
    // Drops the result if there is no handle any more. It may borrow, so before we leave.
    drop(packet);
    drop(leaving);
}

/// A pointer to the frame that all subtasks share.
struct Shared<T>(NonNull<T>);

// SAFETY: the subtasks' threads share the frame, and `Frame` is made for that.
unsafe impl<T> Send for Shared<T> {}

impl<T> Shared<T> {
    /// Returns the pointer. A method, so that closures capture the whole struct.
    fn get(&self) -> NonNull<T> {
        self.0
    }
}

/// Calls the function when it is dropped.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

//! How the thread of a subtask is started, virtual or platform.

use super::Joins;
use super::member::{Member, Who};
use super::packet::{Packet, complete, run};
use super::state::Cause;
use super::subtask::{Keeps, Subtask};
use super::task_scope::Frame;
use crate::sched::{self, Runnable};
use crate::thread::{Builder, Panic};
use crate::vthread::body::{self, Body};
use crate::vthread::platform;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The body of a virtual thread that runs a subtask: its membership, its result, and, until it
/// starts, its closure.
struct Fork<T, J: Joins<T>, F> {
    member: Member,
    packet: Packet<T, J::Error>,
    index: usize,
    /// On the owner's stack, for as long as the member has not left.
    frame: NonNull<Frame<J>>,
    closure: UnsafeCell<MaybeUninit<F>>,
}

impl<T, J, F> Body for Fork<T, J, F>
where
    J: Joins<T>,
    F: FnOnce() -> Result<T, J::Error>,
{
    unsafe fn run(&self) {
        // SAFETY: called once, by a member that has entered.
        let (frame, closure) = unsafe {
            (
                self.frame.as_ref(),
                (*self.closure.get()).assume_init_read(),
            )
        };
        run(frame, self.index, &self.packet, &self.member, closure);
    }

    unsafe fn abandon(&self) {
        // SAFETY: a member that has entered; or it could not, as the scope is cancelled, and the
        // owner is still in its `fork`.
        let frame = unsafe { self.frame.as_ref() };
        let tell = || {
            // SAFETY: instead of `run`. It has not run, and never will.
            unsafe {
                (*self.closure.get()).assume_init_drop();
                self.packet
                    .fail("the scheduler dropped this virtual thread before it ran");
            }
            complete(frame, self.index, &self.packet)
        };
        let cause = match catch_unwind(AssertUnwindSafe(tell)) {
            Ok(super::Flow::Continue) => return,
            Ok(super::Flow::Cancel) => Cause::Joiner,
            Err(payload) => Cause::Panicked(Panic::new(payload)),
        };
        frame.state.cancel(cause, Some(&self.member));
    }

    unsafe fn drop_result(&self) {
        // SAFETY: the caller's contract: there is no handle.
        drop(unsafe { self.packet.take() });
    }

    unsafe fn ended(&self) {
        self.member.leave();
    }
}

/// Forks a subtask on a virtual thread. Not started, if the scope is cancelled.
pub(super) fn on_virtual<'scope, T, J, F>(
    builder: &Builder,
    frame: &Frame<J>,
    index: usize,
    closure: F,
) -> io::Result<Subtask<'scope, T, J::Error>>
where
    J: Joins<T>,
    F: FnOnce() -> Result<T, J::Error> + Send + 'scope,
    T: Send + 'scope,
{
    let write = |place: *mut Fork<T, J, F>| {
        // Field by field, as it would be made elsewhere and copied otherwise.
        // SAFETY: all fields, in memory that is valid for writes.
        unsafe {
            (&raw mut (*place).member).write(Member::new(&frame.state));
            (&raw mut (*place).packet).write(Packet::new());
            (&raw mut (*place).index).write(index);
            (&raw mut (*place).frame).write(NonNull::from(frame));
            (&raw mut (*place).closure).write(UnsafeCell::new(MaybeUninit::new(closure)));
        }
    };
    // SAFETY: `write` writes all fields.
    let (thread, fork) = builder.make(|attributes| unsafe { body::allocate(attributes, write) })?;
    // SAFETY: in the thread's allocation, of which we have a reference.
    let fork = unsafe { fork.as_ref() };
    fork.member.is(Who::Virtual(thread.as_ptr()));
    if !frame.state.enter(&fork.member) {
        // The right to run it, and nobody will: its closure is dropped, and all that it took is
        // given back.
        drop(Runnable::of(thread.as_ptr()));
        return Ok(Subtask::unavailable(index));
    }
    sched::make_runnable(thread.as_ptr());
    let packet = NonNull::from(&fork.packet);
    Ok(Subtask::new(index, packet, Keeps::Virtual(thread)))
}

/// Calls this when it is dropped.
struct Guard<F: Fn()>(F);

impl<F: Fn()> Drop for Guard<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// How platform threads of a scope are made.
#[derive(Clone, Debug, Default)]
pub(super) struct PlatformThreads {
    pub(super) name: Option<Box<str>>,
}

/// Forks a subtask on a platform thread. Not started, if the scope is cancelled.
pub(super) fn on_platform<'scope, T, J, F>(
    threads: &PlatformThreads,
    frame: &Frame<J>,
    index: usize,
    closure: F,
) -> io::Result<Subtask<'scope, T, J::Error>>
where
    J: Joins<T>,
    F: FnOnce() -> Result<T, J::Error> + Send + 'scope,
    T: Send + 'scope,
{
    struct Shared<T>(NonNull<T>);
    // SAFETY: made of a frame that is shared by all subtasks.
    unsafe impl<T> Send for Shared<T> {}
    impl<T> Shared<T> {
        /// A method, so that closures capture the whole.
        fn get(&self) -> NonNull<T> {
            self.0
        }
    }

    let packet = Arc::new(Packet::new());
    let of_thread = Arc::clone(&packet);
    let shared = Shared(NonNull::from(frame));
    let main = move || {
        // SAFETY: the owner expects us, and waits until we have left.
        let frame: &Frame<J> = unsafe { shared.get().as_ref() };
        let member = Member::new(&frame.state);
        member.is(Who::Platform(platform::current()));
        frame.state.appear(&member);
        let leaving = Guard(|| member.leave());
        run(frame, index, &of_thread, &member, closure);
        // The result, if there is no handle any more: before we leave, as it may borrow.
        drop(of_thread);
        drop(leaving); // Or by the panic of the result's destructor.
    };
    let mut builder = std::thread::Builder::new();
    if let Some(name) = &threads.name {
        if name.contains('\0') {
            let text = format!("the prefix of thread names {name:?} contains a NUL byte");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        builder = builder.name(format!("{name}{index}"));
    }
    if !frame.state.expect() {
        return Ok(Subtask::unavailable(index));
    }
    // If the start fails, also by the panic of the closure's destructor.
    let missing = Guard(|| frame.state.miss());
    // SAFETY: the owner does not leave the scope before the thread has left it, and what the thread
    // does after that uses nothing of `'scope`.
    match unsafe { builder.spawn_unchecked(main) } {
        Ok(_detached) => {
            core::mem::forget(missing);
            let place = NonNull::from(&*packet);
            Ok(Subtask::new(index, place, Keeps::Platform(packet)))
        }
        Err(error) => Err(error),
    }
}

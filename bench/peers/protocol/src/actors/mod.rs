//! The workloads of actors, written once: [`find`] makes them for any [`System`], which each peer
//! implements in some 80 lines.
//!
//! All of it is generic, so that the compiler makes a program for each peer without a call through
//! a table. Where a peer's calls block, its futures are ready when they are first polled ([`now`]).
//! A peer on tokio returns its library's futures.

mod outcome;
mod workloads;

pub use outcome::Outcome;
pub use workloads::find;

use anyhow::Result;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// A library of actors, or what is written by hand in its place.
pub trait System: Sized + Send + Sync + 'static {
    /// What keeps the actors running.
    type Runtime: 'static;
    /// The reference by which an actor is sent messages.
    type Ref<A: Actor<Self>>: Clone + Send + Sync + 'static;
    /// What the creator keeps beside the reference, to end the actor.
    type Life: Send + Sync + 'static;
    /// What tells that an actor has ended.
    type End<A: Actor<Self>>: Send;

    /// Starts the runtime.
    fn start() -> Result<Self::Runtime>;

    /// Gives what `work` returns when a thread of the kind does it: a task, a virtual thread.
    fn run<T: Send + 'static>(
        runtime: &Self::Runtime,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T>;

    /// Starts another thread of the kind, beside the one that calls; gives what waits for it.
    fn task(
        work: impl Future<Output = Result<()>> + Send + 'static,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Creates an actor.
    fn spawn<A: Actor<Self>>(
        actor: A,
    ) -> impl Future<Output = Result<(Self::Ref<A>, Self::Life)>> + Send;

    /// Sends a message and goes on.
    fn tell<A: Actor<Self>>(
        actor: &Self::Ref<A>,
        message: A::Tell,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Sends a question and waits for its answer.
    fn ask<A: Actor<Self>>(
        actor: &Self::Ref<A>,
        question: A::Ask,
    ) -> impl Future<Output = Result<u64>> + Send;

    /// Sends a question; gives what waits for its answer.
    fn ask_later<A: Actor<Self>>(
        actor: &Self::Ref<A>,
        question: A::Ask,
    ) -> impl Future<Output = Result<impl Future<Output = Result<u64>> + Send + 'static>> + Send;

    /// Has an actor end, by the usual means, when it has handled its messages.
    fn close<A: Actor<Self>>(
        actor: Self::Ref<A>,
        life: Self::Life,
    ) -> impl Future<Output = Result<Self::End<A>>> + Send;

    /// Waits for the end of an actor that has been closed.
    fn ended<A: Actor<Self>>(end: Self::End<A>) -> impl Future<Output = Result<()>> + Send;

    /// Waits for the end of all that have been closed, where these do not tell it one by one.
    fn all_ended() -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// The runtime of a [`System`] on tokio: the multi-threaded one as it comes.
#[macro_export]
macro_rules! on_tokio {
    () => {
        type Runtime = ::tokio::runtime::Runtime;

        fn start() -> ::anyhow::Result<Self::Runtime> {
            ::anyhow::Context::context(Self::Runtime::new(), "cannot start the runtime")
        }

        fn run<T: Send + 'static>(
            runtime: &Self::Runtime,
            work: impl Future<Output = ::anyhow::Result<T>> + Send + 'static,
        ) -> ::anyhow::Result<T> {
            runtime.block_on(runtime.spawn(work))?
        }

        fn task(
            work: impl Future<Output = ::anyhow::Result<()>> + Send + 'static,
        ) -> impl Future<Output = ::anyhow::Result<()>> + Send {
            let task = ::tokio::spawn(work);
            async move { task.await? }
        }
    };
}

/// What an actor does with its messages, in whatever system.
pub trait Actor<S: System>: Send + 'static {
    /// A message that is not answered.
    type Tell: Send + 'static;
    /// A message that is answered by a number.
    type Ask: Send + 'static;
    /// Whether the actor ends after its first answer.
    const ONCE: bool = false;

    /// Handles a message.
    fn told(&mut self, message: Self::Tell) -> impl Future<Output = ()> + Send;

    /// Answers a question.
    fn asked(&mut self, question: Self::Ask) -> Answer;
}

/// The answer to a question.
pub enum Answer {
    /// It is known.
    Now(u64),
    /// It needs the answers of others.
    Later(Pin<Box<dyn Future<Output = u64> + Send>>),
}

impl Answer {
    /// Waits for the number.
    pub async fn number(self) -> u64 {
        match self {
            Answer::Now(number) => number,
            Answer::Later(number) => number.await,
        }
    }
}

/// What comes into a mailbox where all messages of an actor have one type: `R` is where an answer
/// goes.
pub enum Letter<S: System, A: Actor<S>, R> {
    /// Not to be answered.
    Tell(A::Tell),
    /// To be answered.
    Ask(A::Ask, R),
}

/// Returns the value of a future of a system whose calls block.
///
/// # Panics
///
/// The future is not ready when it is first polled.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a call that blocks has not blocked"),
    }
}

//! `actors`: the ones of `pirn_actor`, in both forms. [`Handlers`] are called for each message; a
//! process ([`Processes`], the peer `pirn-process`) has a virtual thread for its whole life, and
//! receives its messages where it wants to.

use anyhow::{Context as _, Result, anyhow, ensure};
use peer_protocol::actors::{Actor, Letter, System, now};
use pirn::thread::{self, JoinHandle, Thread};
use pirn_actor::process::{Inbox, Process};
use pirn_actor::reply::ReplyTo;
use pirn_actor::{self as actor, Context, Exit, Handler, Ref};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

/// Gives what a future returns; the virtual thread waits for it, unless its calls block anyway.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        let mut context = std::task::Context::from_waker(&waker);
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        thread::park();
    }
}

fn spawn<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> JoinHandle<Result<T>> {
    thread::spawn(|| block_on(work))
}

fn join<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    thread
        .join()
        .map_err(|_| anyhow!("a thread has panicked"))?
}

fn closed(exit: &Exit) -> Result<()> {
    ensure!(*exit == Exit::Closed, "an actor ended otherwise: {exit}");
    Ok(())
}

/// The methods that are the same for both.
macro_rules! on_virtual_threads {
    () => {
        type Runtime = ();
        type Life = ();

        fn start() -> Result<()> {
            Ok(())
        }

        fn run<T: Send + 'static>(
            (): &(),
            work: impl Future<Output = Result<T>> + Send + 'static,
        ) -> Result<T> {
            join(spawn(work))
        }

        fn task(
            work: impl Future<Output = Result<()>> + Send + 'static,
        ) -> impl Future<Output = Result<()>> + Send {
            let thread = spawn(work);
            async { join(thread) }
        }

        async fn tell<A: Actor<Self>>(actor: &Self::Ref<A>, message: A::Tell) -> Result<()> {
            actor
                .send(Self::message::<A>(message))
                .ok()
                .context("the actor has gone")
        }

        async fn close<A: Actor<Self>>(actor: Self::Ref<A>, (): ()) -> Result<Self::Ref<A>> {
            actor.close();
            Ok(actor)
        }

        async fn ended<A: Actor<Self>>(actor: Self::Ref<A>) -> Result<()> {
            closed(&actor.join())
        }
    };
}

pub struct Handlers;

/// An actor of the workloads as one of `pirn_actor`'s.
pub struct Shell<A>(A);

pub struct Tell<M>(M);

pub struct Ask<Q>(Q);

impl<A: Actor<Handlers>> Handler<Tell<A::Tell>> for Shell<A> {
    type Reply = ();

    fn handle(&mut self, Tell(message): Tell<A::Tell>, _: &Context<Self>) {
        now(self.0.told(message));
    }
}

impl<A: Actor<Handlers>> Handler<Ask<A::Ask>> for Shell<A> {
    type Reply = u64;

    fn handle(&mut self, Ask(question): Ask<A::Ask>, _: &Context<Self>) -> u64 {
        now(self.0.asked(question).number())
    }
}

impl Handlers {
    fn message<A: Actor<Self>>(message: A::Tell) -> Tell<A::Tell> {
        Tell(message)
    }
}

impl System for Handlers {
    type Ref<A: Actor<Self>> = Ref<Shell<A>>;
    type End<A: Actor<Self>> = Ref<Shell<A>>;

    on_virtual_threads!();

    async fn spawn<A: Actor<Self>>(actor: A) -> Result<(Ref<Shell<A>>, ())> {
        Ok((actor::spawn(Shell(actor)), ()))
    }

    async fn ask<A: Actor<Self>>(actor: &Ref<Shell<A>>, question: A::Ask) -> Result<u64> {
        Ok(actor.ask(Ask(question))?)
    }

    async fn ask_later<A: Actor<Self>>(
        actor: &Ref<Shell<A>>,
        question: A::Ask,
    ) -> Result<impl Future<Output = Result<u64>> + Send + 'static> {
        let answer = actor
            .ask_later(Ask(question))
            .ok()
            .context("the actor has gone")?;
        Ok(async { Ok(answer.recv()?) })
    }
}

pub struct Processes;

type Message<A> = Letter<Processes, A, ReplyTo<u64>>;

impl Processes {
    fn message<A: Actor<Self>>(message: A::Tell) -> Message<A> {
        Letter::Tell(message)
    }
}

impl System for Processes {
    type Ref<A: Actor<Self>> = Process<Message<A>, ()>;
    type End<A: Actor<Self>> = Process<Message<A>, ()>;

    on_virtual_threads!();

    async fn spawn<A: Actor<Self>>(mut actor: A) -> Result<(Self::Ref<A>, ())> {
        let process = actor::process::spawn(move |inbox: &mut Inbox<Message<A>>| {
            while let Ok(message) = inbox.recv() {
                match message {
                    Letter::Tell(message) => now(actor.told(message)),
                    Letter::Ask(question, reply) => reply.send(now(actor.asked(question).number())),
                }
                if A::ONCE {
                    break;
                }
            }
        });
        Ok((process, ()))
    }

    async fn ask<A: Actor<Self>>(actor: &Self::Ref<A>, question: A::Ask) -> Result<u64> {
        Ok(actor.ask(|reply| Letter::Ask(question, reply))?)
    }

    async fn ask_later<A: Actor<Self>>(
        actor: &Self::Ref<A>,
        question: A::Ask,
    ) -> Result<impl Future<Output = Result<u64>> + Send + 'static> {
        let answer = actor.ask_later(|reply| Letter::Ask(question, reply));
        let answer = answer.ok().context("the actor has gone")?;
        Ok(async { Ok(answer.recv()?) })
    }
}

//! Benchmark peer: actors of ractor, on tokio's multi-threaded runtime as it comes. Their mailboxes
//! are not bounded.

use anyhow::{Context, Result};
use peer_protocol::actors::{self, Actor, Letter, System};
use peer_protocol::on_tokio;
use ractor::concurrency::{self, JoinHandle};
use ractor::{ActorProcessingErr, ActorRef, RpcReplyPort};
use std::marker::PhantomData;
use std::process::ExitCode;

fn main() -> ExitCode {
    peer_protocol::run("ractor", env!("MEASURED"), actors::find::<Ractor>)
}

struct Ractor;

type Message<A> = Letter<Ractor, A, RpcReplyPort<u64>>;

/// An actor of the workloads as one of ractor's, which keep their state apart.
struct Shell<A>(PhantomData<fn() -> A>);

impl<A: Actor<Ractor>> ractor::Actor for Shell<A> {
    type Msg = Message<A>;
    type State = A;
    type Arguments = A;

    async fn pre_start(&self, _: ActorRef<Message<A>>, actor: A) -> Result<A, ActorProcessingErr> {
        Ok(actor)
    }

    async fn handle(
        &self,
        myself: ActorRef<Message<A>>,
        message: Message<A>,
        actor: &mut A,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Letter::Tell(message) => actor.told(message).await,
            Letter::Ask(question, reply) => {
                reply.send(actor.asked(question).number().await)?;
                if A::ONCE {
                    myself.stop(None);
                }
            }
        }
        Ok(())
    }
}

impl System for Ractor {
    on_tokio!();

    type Ref<A: Actor<Self>> = ActorRef<Message<A>>;
    type Life = JoinHandle<()>;
    type End<A: Actor<Self>> = JoinHandle<()>;

    async fn spawn<A: Actor<Self>>(actor: A) -> Result<(Self::Ref<A>, JoinHandle<()>)> {
        Ok(ractor::Actor::spawn(None, Shell(PhantomData), actor).await?)
    }

    async fn tell<A: Actor<Self>>(actor: &Self::Ref<A>, message: A::Tell) -> Result<()> {
        let sent = actor.cast(Letter::Tell(message));
        sent.ok().context("the actor has gone")
    }

    async fn ask<A: Actor<Self>>(actor: &Self::Ref<A>, question: A::Ask) -> Result<u64> {
        Self::ask_later(actor, question).await?.await
    }

    /// What the macro `call!` does.
    async fn ask_later<A: Actor<Self>>(
        actor: &Self::Ref<A>,
        question: A::Ask,
    ) -> Result<impl Future<Output = Result<u64>> + Send + 'static> {
        let (reply, answer) = concurrency::oneshot();
        let sent = actor.cast(Letter::Ask(question, reply.into()));
        sent.ok().context("the actor has gone")?;
        Ok(async { Ok(answer.await?) })
    }

    async fn close<A: Actor<Self>>(
        actor: Self::Ref<A>,
        end: JoinHandle<()>,
    ) -> Result<JoinHandle<()>> {
        actor.drain().ok().context("the actor has gone")?;
        Ok(end)
    }

    async fn ended<A: Actor<Self>>(end: JoinHandle<()>) -> Result<()> {
        Ok(end.await?)
    }
}

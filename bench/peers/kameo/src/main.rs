//! Benchmark peer: actors of kameo, on tokio's multi-threaded runtime as it comes. Their mailboxes
//! have room for 64 messages, as they have by default.

use anyhow::{Context as _, Result};
use kameo::actor::{ActorRef, Spawn};
use kameo::message::{Context, Message};
use peer_protocol::actors::{self, Actor, System};
use peer_protocol::on_tokio;
use std::convert::Infallible;
use std::process::ExitCode;

fn main() -> ExitCode {
    peer_protocol::run("kameo", env!("MEASURED"), actors::find::<Kameo>)
}

struct Kameo;

/// An actor of the workloads as one of kameo's.
struct Shell<A>(A);

struct Tell<M>(M);

struct Ask<Q>(Q);

impl<A: Actor<Kameo>> kameo::Actor for Shell<A> {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(shell: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(shell)
    }
}

impl<A: Actor<Kameo>> Message<Tell<A::Tell>> for Shell<A> {
    type Reply = ();

    async fn handle(&mut self, Tell(message): Tell<A::Tell>, _: &mut Context<Self, ()>) {
        self.0.told(message).await;
    }
}

impl<A: Actor<Kameo>> Message<Ask<A::Ask>> for Shell<A> {
    type Reply = u64;

    async fn handle(&mut self, Ask(question): Ask<A::Ask>, _: &mut Context<Self, u64>) -> u64 {
        self.0.asked(question).number().await
    }
}

impl System for Kameo {
    on_tokio!();

    type Ref<A: Actor<Self>> = ActorRef<Shell<A>>;
    type Life = ();
    type End<A: Actor<Self>> = ActorRef<Shell<A>>;

    async fn spawn<A: Actor<Self>>(actor: A) -> Result<(ActorRef<Shell<A>>, ())> {
        Ok((Shell::spawn(Shell(actor)), ()))
    }

    async fn tell<A: Actor<Self>>(actor: &ActorRef<Shell<A>>, message: A::Tell) -> Result<()> {
        let sent = actor.tell(Tell(message)).await;
        sent.ok().context("the actor has gone")
    }

    async fn ask<A: Actor<Self>>(actor: &ActorRef<Shell<A>>, question: A::Ask) -> Result<u64> {
        let answer = actor.ask(Ask(question)).await;
        answer.ok().context("the actor has not answered")
    }

    async fn ask_later<A: Actor<Self>>(
        actor: &ActorRef<Shell<A>>,
        question: A::Ask,
    ) -> Result<impl Future<Output = Result<u64>> + Send + 'static> {
        let answer = actor.ask(Ask(question)).enqueue().await;
        let answer = answer.ok().context("the actor has gone")?;
        Ok(async { answer.await.ok().context("the actor has not answered") })
    }

    async fn close<A: Actor<Self>>(
        actor: ActorRef<Shell<A>>,
        (): (),
    ) -> Result<ActorRef<Shell<A>>> {
        actor.stop_gracefully().await?;
        Ok(actor)
    }

    async fn ended<A: Actor<Self>>(actor: ActorRef<Shell<A>>) -> Result<()> {
        actor.wait_for_shutdown().await;
        Ok(())
    }
}

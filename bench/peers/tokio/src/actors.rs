//! `actors`: tasks with a channel each. tokio has no actors; this is how they are written by hand.

use anyhow::{Context, Result};
use peer_protocol::actors::{Actor, Letter, System};
use peer_protocol::on_tokio;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// The room of a channel, which must be given: as much as Pirn's mailboxes have.
const ROOM: usize = 1024;

pub struct Tasks;

type Message<A> = Letter<Tasks, A, oneshot::Sender<u64>>;

impl System for Tasks {
    on_tokio!();

    type Ref<A: Actor<Self>> = mpsc::Sender<Message<A>>;
    type Life = JoinHandle<()>;
    type End<A: Actor<Self>> = JoinHandle<()>;

    async fn spawn<A: Actor<Self>>(actor: A) -> Result<(Self::Ref<A>, JoinHandle<()>)> {
        let (sender, inbox) = mpsc::channel(ROOM);
        Ok((sender, tokio::spawn(live(actor, inbox))))
    }

    async fn tell<A: Actor<Self>>(actor: &Self::Ref<A>, message: A::Tell) -> Result<()> {
        let sent = actor.send(Letter::Tell(message)).await;
        sent.ok().context("the actor has gone")
    }

    async fn ask<A: Actor<Self>>(actor: &Self::Ref<A>, question: A::Ask) -> Result<u64> {
        Self::ask_later(actor, question).await?.await
    }

    async fn ask_later<A: Actor<Self>>(
        actor: &Self::Ref<A>,
        question: A::Ask,
    ) -> Result<impl Future<Output = Result<u64>> + Send + 'static> {
        let (reply, answer) = oneshot::channel();
        let sent = actor.send(Letter::Ask(question, reply)).await;
        sent.ok().context("the actor has gone")?;
        Ok(async { Ok(answer.await?) })
    }

    async fn close<A: Actor<Self>>(
        _: Self::Ref<A>,
        task: JoinHandle<()>,
    ) -> Result<JoinHandle<()>> {
        Ok(task)
    }

    async fn ended<A: Actor<Self>>(task: JoinHandle<()>) -> Result<()> {
        Ok(task.await?)
    }
}

/// An actor's life, which ends when no sender is left.
async fn live<A: Actor<Tasks>>(mut actor: A, mut inbox: mpsc::Receiver<Message<A>>) {
    while let Some(message) = inbox.recv().await {
        match message {
            Letter::Tell(message) => actor.told(message).await,
            // If the asker does not wait for the answer any more it needs none.
            Letter::Ask(question, reply) => drop(reply.send(actor.asked(question).number().await)),
        }
    }
}

//! Durable queues: a stream of JetStream with one consumer that all workers share, and a second
//! stream for what has failed too often.

use super::nats::{headers, packet};
use super::runtime::Runtime;
use super::{Job, Queue, Work};
use crate::error::NodeError;
use crate::packet::{Head, Packet};
use crate::poison::locked;
use crate::subject::{Place, subject, token};
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType, Stream as Messages};
use async_nats::jetstream::{AckKind, Context, Message};
use core::time::Duration;
use futures_util::StreamExt;
use std::sync::{Arc, Mutex};
use tokio::task::AbortHandle;

/// How long the server may take for one thing.
const LIMIT: Duration = Duration::from_secs(5);
/// How much longer than the server a worker waits for the end of an empty fetch.
const GRACE: Duration = Duration::from_secs(2);

pub(super) struct Stream {
    runtime: Arc<Runtime>,
    jetstream: Context,
    queue: Queue,
    made: Mutex<Made>,
}

/// What a queue is on the server.
#[derive(Clone)]
struct Made {
    letters: Messages,
    consumer: PullConsumer,
}

impl Stream {
    pub(super) fn open(
        runtime: Arc<Runtime>,
        jetstream: Context,
        queue: Queue,
    ) -> Result<Stream, NodeError> {
        let made = runtime.run_within(LIMIT, make(jetstream.clone(), queue.clone()))??;
        Ok(Stream {
            runtime,
            jetstream,
            queue,
            made: Mutex::new(made),
        })
    }

    /// Asks the server for something. If it refuses, its store may be a new one: all is made again,
    /// and it is asked once more.
    fn ask<T, F>(&self, limit: Duration, ask: impl Fn(Made) -> F) -> Result<T, NodeError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, NodeError>> + Send + 'static,
    {
        let made = locked(&self.made).clone();
        let refusal = match self.runtime.run_within(limit, ask(made))? {
            Ok(answer) => return Ok(answer),
            Err(refusal) => refusal,
        };
        let again = make(self.jetstream.clone(), self.queue.clone());
        let made = self
            .runtime
            .run_within(LIMIT, again)?
            .map_err(|_| refusal)?;
        locked(&self.made).clone_from(&made);
        self.runtime.run_within(limit, ask(made))?
    }

    fn subject(&self, place: Place) -> String {
        subject(&self.queue.system, place, &self.queue.name)
    }
}

/// Makes a queue, or finds it.
async fn make(jetstream: Context, queue: Queue) -> Result<Made, NodeError> {
    let stream = |place, retention| Config {
        name: format!("pirn-{}-{place:?}-{}", queue.system, token(&queue.name)).to_lowercase(),
        subjects: vec![subject(&queue.system, place, &queue.name)],
        retention,
        storage: StorageType::File,
        num_replicas: queue.replicas,
        duplicate_window: queue.memory,
        ..Config::default()
    };
    let work = stream(Place::Work, RetentionPolicy::WorkQueue);
    let dead = stream(Place::Dead, RetentionPolicy::Limits);
    let made = jetstream.get_or_create_stream(work).await;
    let messages = made.map_err(NodeError::unavailable)?;
    let made = jetstream.get_or_create_stream(dead).await;
    let letters = made.map_err(NodeError::unavailable)?;
    let config = pull::Config {
        durable_name: Some("workers".to_string()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: queue.patience,
        // No limit here: a worker counts, and buries.
        max_deliver: -1,
        max_ack_pending: 10_000,
        ..pull::Config::default()
    };
    let consumer = messages.get_or_create_consumer("workers", config).await;
    Ok(Made {
        letters,
        consumer: consumer.map_err(NodeError::unavailable)?,
    })
}

/// Adds a packet, and waits until the server has it.
async fn put(jetstream: Context, packet: Packet) -> Result<bool, NodeError> {
    let headers = headers(&packet.head);
    let sent = jetstream.publish_with_headers(packet.subject, headers, packet.body);
    let ack = sent.await.map_err(NodeError::unavailable)?;
    let ack = ack.await.map_err(NodeError::unavailable)?;
    Ok(!ack.duplicate)
}

/// Takes one message, if one comes within `wait`.
async fn take(consumer: PullConsumer, wait: Duration) -> Result<Option<Message>, NodeError> {
    let batch = consumer.batch().max_messages(1).expires(wait);
    let mut batch = batch.messages().await.map_err(NodeError::unavailable)?;
    match batch.next().await {
        None => Ok(None),
        Some(Ok(message)) => Ok(Some(message)),
        Some(Err(error)) => Err(NodeError::unavailable(error)),
    }
}

/// Returns a dead letter as a packet.
fn letter(message: StreamMessage) -> Packet {
    Packet {
        subject: message.subject.into_string(),
        head: Head::of(|name| Some(message.headers.get(name)?.as_str())),
        body: message.payload,
        ..Packet::default()
    }
}

impl Work for Stream {
    fn put(&self, mut packet: Packet) -> Result<bool, NodeError> {
        let (size, limit) = (packet.body.len(), self.jetstream.client().max_payload());
        if size > limit {
            return Err(NodeError::TooLarge { size, limit });
        }
        packet.subject = self.subject(Place::Work);
        // Twice is once: the server knows the identity.
        self.ask(LIMIT, |_| put(self.jetstream.clone(), packet.clone()))
    }

    fn take(&self, wait: Duration) -> Result<Option<Box<dyn Job>>, NodeError> {
        let taken = self.ask(wait + GRACE, |made| take(made.consumer, wait))?;
        let Some(message) = taken else {
            return Ok(None);
        };
        Ok(Some(Box::new(Taken::new(self, message)?)))
    }

    fn dead(&self, most: usize) -> Result<Vec<Packet>, NodeError> {
        self.ask(LIMIT, |Made { letters, .. }| async move {
            let state = letters.get_info().await.map_err(NodeError::unavailable)?;
            let mut packets = Vec::new();
            for sequence in state.state.first_sequence..=state.state.last_sequence {
                if packets.len() == most {
                    break;
                }
                // One that has been deleted is skipped.
                if let Ok(message) = letters.get_raw_message(sequence).await {
                    packets.push(letter(message));
                }
            }
            Ok(packets)
        })
    }

    fn len(&self) -> Result<u64, NodeError> {
        // The consumer's numbers: a server that was killed may find messages in its stream again
        // that are done.
        self.ask(LIMIT, |made| async move {
            let info = made.consumer.get_info().await;
            let info = info.map_err(NodeError::unavailable)?;
            Ok(info.num_pending + info.num_ack_pending as u64)
        })
    }
}

/// A message that is being worked on. A task tells the server so, until this is dropped.
struct Taken {
    runtime: Arc<Runtime>,
    jetstream: Context,
    dead: String,
    packet: Packet,
    attempt: u64,
    message: Arc<Message>,
    progress: AbortHandle,
}

impl Taken {
    fn new(stream: &Stream, message: Message) -> Result<Taken, NodeError> {
        let info = message.info().map_err(NodeError::unavailable)?;
        let attempt = u64::try_from(info.delivered).unwrap_or(1);
        let message = Arc::new(message);
        let (working, pause) = (Arc::clone(&message), stream.queue.patience / 3);
        let progress = stream.runtime.handle().spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                drop(working.ack_with(AckKind::Progress).await);
            }
        });
        Ok(Taken {
            runtime: Arc::clone(&stream.runtime),
            jetstream: stream.jetstream.clone(),
            dead: stream.subject(Place::Dead),
            packet: packet(message.message.clone()),
            attempt,
            message,
            progress: progress.abort_handle(),
        })
    }

    /// Tells the server, and waits until it knows: an answer that gets lost means that another
    /// worker does it again.
    fn tell(&self, kind: AckKind) -> Result<(), NodeError> {
        let message = Arc::clone(&self.message);
        let told = async move { message.double_ack_with(kind).await };
        let told = self.runtime.run_within(LIMIT, told)?;
        told.map_err(NodeError::unavailable)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.progress.abort();
    }
}

impl Job for Taken {
    fn packet(&self) -> &Packet {
        &self.packet
    }

    fn attempt(&self) -> u64 {
        self.attempt
    }

    fn done(self: Box<Self>) -> Result<(), NodeError> {
        self.tell(AckKind::Ack)
    }

    fn again(self: Box<Self>, pause: Duration) -> Result<(), NodeError> {
        self.tell(AckKind::Nak(Some(pause)))
    }

    fn bury(self: Box<Self>, why: &str) -> Result<(), NodeError> {
        let mut letter = self.packet.clone();
        letter.subject.clone_from(&self.dead);
        // Its own identity: buried twice, if the answer to the first time gets lost, it is once
        // there. A message that is added again under the same identity is another one.
        let sequence = self.message.info().map(|info| info.stream_sequence);
        letter.head.id = sequence.ok().map(|sequence| format!("dead-{sequence}"));
        letter.head.reason = Some(why.to_string());
        let put = put(self.jetstream.clone(), letter);
        self.runtime.run_within(LIMIT, put)??;
        self.tell(AckKind::Term)
    }
}

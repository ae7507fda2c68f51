//! The engine that is NATS, by `async-nats`.

use super::kv::Kv;
use super::runtime::Runtime;
use super::work::Stream;
use super::{Engine, Incoming, Names, Queue, Stop, Task, Until, Work};
use crate::error::NodeError;
use crate::packet::{Fault, Head, Packet};
use async_nats::connection::State;
use async_nats::jetstream::Context;
use async_nats::{Client, ConnectOptions, Event, HeaderMap, Message, StatusCode, Subscriber};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use pirn_actor::AskError;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};

/// How often the server is asked for a sign of life. After three without, another one is looked
/// for.
const PING: Duration = Duration::from_secs(1);
/// How long a server may take to let this node in.
const CONNECT: Duration = Duration::from_secs(2);
/// The longest time between two attempts to connect again.
const RECONNECT: Duration = Duration::from_secs(1);
/// How long the last packets may take to leave a node that is being closed.
const FLUSH: Duration = Duration::from_secs(1);

pub(crate) struct Nats {
    runtime: Arc<Runtime>,
    client: Client,
    jetstream: Context,
    dropped: Arc<AtomicU64>,
    /// The number of packets that wait for each served actor.
    queue: usize,
    registry: Registry,
}

/// What the registry of names is to be like.
#[derive(Clone)]
pub(crate) struct Registry {
    pub(crate) bucket: String,
    pub(crate) lease: Duration,
    pub(crate) replicas: usize,
}

impl Nats {
    /// Connects to one of these servers.
    pub(crate) fn connect(
        servers: Vec<String>,
        options: ConnectOptions,
        queue: usize,
        registry: Registry,
    ) -> Result<Nats, NodeError> {
        let runtime = Runtime::start()?;
        let dropped = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&dropped);
        let options = options
            .ping_interval(PING)
            .connection_timeout(CONNECT)
            .reconnect_delay_callback(pause)
            .event_callback(move |event| {
                if let Event::SlowConsumer(_) = event {
                    // Relaxed: a number for people.
                    count.fetch_add(1, Ordering::Relaxed);
                }
                core::future::ready(())
            });
        let connected = runtime.run(async move { options.connect(servers).await });
        match connected.map_err(|_| NodeError::Closed) {
            Ok(Ok(client)) => Ok(Nats {
                jetstream: {
                    // It starts a task.
                    let _entered = runtime.handle().enter();
                    async_nats::jetstream::new(client.clone())
                },
                runtime: Arc::new(runtime),
                client,
                dropped,
                queue,
                registry,
            }),
            Ok(Err(error)) => {
                runtime.stop();
                Err(NodeError::Connect(error.to_string().into()))
            }
            Err(closed) => Err(closed),
        }
    }

    fn subscribe(&self, subject: String, group: Option<String>) -> Result<Subscriber, NodeError> {
        let client = self.client.clone();
        let subscribed = self.runtime.run(async move {
            match group {
                None => client.subscribe(subject).await,
                Some(group) => client.queue_subscribe(subject, group).await,
            }
        })?;
        subscribed.map_err(NodeError::unavailable)
    }
}

/// Returns how long to wait before an attempt to connect: longer each time, and not the same for
/// all nodes.
fn pause(attempt: usize) -> Duration {
    let most = Duration::from_millis(10) * 2_u32.pow(u32::try_from(attempt.min(8)).unwrap_or(8));
    let most = most.min(RECONNECT);
    let part = Instant::now().elapsed().subsec_nanos() ^ std::process::id();
    most / 2 + most / 2 * (part % 16) / 16
}

pub(super) fn headers(head: &Head) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in head.lines() {
        // A line break would end the header. The texts are types' names and identities.
        headers.insert(name, value.replace(['\r', '\n'], " "));
    }
    headers
}

pub(super) fn packet(message: Message) -> Packet {
    let headers = message.headers.as_ref();
    let get = |name| Some(headers?.get(name)?.as_str());
    let mut head = Head::of(get);
    if message.status == Some(StatusCode::NO_RESPONDERS) {
        head.fault = Some(Fault::Unserved);
    }
    Packet {
        subject: message.subject.into_string(),
        reply_to: message.reply.map(async_nats::Subject::into_string),
        head,
        body: message.payload,
        came: Some(Instant::now()),
    }
}

async fn publish(client: Client, packet: Packet) -> Result<(), NodeError> {
    let headers = headers(&packet.head);
    let size = packet.body.len() + headers.iter().map(size_of_header).sum::<usize>();
    let limit = client.max_payload();
    if size > limit {
        return Err(NodeError::TooLarge { size, limit });
    }
    let Packet {
        subject,
        reply_to,
        body,
        ..
    } = packet;
    let published = match (reply_to, headers.is_empty()) {
        (None, true) => client.publish(subject, body).await,
        (None, false) => client.publish_with_headers(subject, headers, body).await,
        (Some(to), _) => {
            client
                .publish_with_reply_and_headers(subject, to, headers, body)
                .await
        }
    };
    published.map_err(|error| match error.kind() {
        async_nats::PublishErrorKind::MaxPayloadExceeded => NodeError::TooLarge { size, limit },
        async_nats::PublishErrorKind::Send => NodeError::Closed,
        _ => NodeError::unavailable(error),
    })
}

/// Returns what a header adds to a message.
fn size_of_header(
    (name, values): (&async_nats::HeaderName, &Vec<async_nats::HeaderValue>),
) -> usize {
    let name: &str = name.as_ref();
    let size = |value: &async_nats::HeaderValue| name.len() + value.as_str().len() + 4;
    values.iter().map(size).sum()
}

impl Engine for Nats {
    fn publish(&self, packet: Packet) -> Task<Result<(), NodeError>> {
        Box::pin(publish(self.client.clone(), packet))
    }

    fn listen(
        &self,
        subject: String,
        mut deliver: Box<dyn FnMut(Packet) + Send>,
    ) -> Result<(), NodeError> {
        let mut subscriber = self.subscribe(subject, None)?;
        self.runtime.handle().spawn(async move {
            while let Some(message) = subscriber.next().await {
                deliver(packet(message));
            }
        });
        Ok(())
    }

    fn serve(
        &self,
        subject: String,
        group: Option<String>,
    ) -> Result<Box<dyn Incoming>, NodeError> {
        let subscriber = self.subscribe(subject, group)?;
        let (put, queue) = mpsc::channel(self.queue);
        let stop = Arc::new(Notify::new());
        self.runtime.handle().spawn(pump(
            self.client.clone(),
            subscriber,
            put,
            Arc::clone(&stop),
            Arc::clone(&self.dropped),
        ));
        Ok(Box::new(Served { queue, stop }))
    }

    fn names(&self) -> Box<dyn Names> {
        Box::new(Kv::new(
            Arc::clone(&self.runtime),
            self.jetstream.clone(),
            self.registry.clone(),
        ))
    }

    fn work(&self, queue: Queue) -> Result<Box<dyn Work>, NodeError> {
        let stream = Stream::open(Arc::clone(&self.runtime), self.jetstream.clone(), queue)?;
        Ok(Box::new(stream))
    }

    fn spawn(&self, task: Task<()>) {
        self.runtime.handle().spawn(task);
    }

    fn until(&self, deadline: Instant, task: Task<Result<(), NodeError>>) -> Until {
        let _entered = self.runtime.handle().enter();
        let limited = tokio::time::timeout_at(deadline.into(), task);
        Box::pin(async move { limited.await.ok() })
    }

    fn inbox(&self) -> String {
        self.client.new_inbox()
    }

    fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn close(&self) {
        let client = self.client.clone();
        let flush = async move { drop(client.flush().await) };
        drop(self.runtime.run_within(FLUSH, flush));
        self.runtime.stop();
    }
}

/// Takes what comes to one subject at once, so that it is known when each packet came, and keeps as
/// many as the queue has room for. An asker that finds none learns of it.
async fn pump(
    client: Client,
    mut subscriber: Subscriber,
    queue: mpsc::Sender<Packet>,
    stop: Arc<Notify>,
    dropped: Arc<AtomicU64>,
) {
    let mut is_stopped = false;
    loop {
        let message = if is_stopped {
            subscriber.next().await
        } else {
            let stopped = core::pin::pin!(stop.notified());
            match select(subscriber.next(), stopped).await {
                Either::Left((message, _)) => message,
                Either::Right(..) => {
                    is_stopped = true;
                    drop(subscriber.drain().await);
                    continue;
                }
            }
        };
        let Some(message) = message else { return };
        match queue.try_send(packet(message)) {
            Ok(()) => {}
            Err(TrySendError::Closed(_)) => return,
            Err(TrySendError::Full(packet)) => {
                // Relaxed: a number for people.
                dropped.fetch_add(1, Ordering::Relaxed);
                if let Some(to) = packet.reply_to {
                    let full = Packet::answer(to, Err(AskError::Full));
                    drop(publish(client.clone(), full).await);
                }
            }
        }
    }
}

/// What comes to one subject.
struct Served {
    queue: mpsc::Receiver<Packet>,
    stop: Arc<Notify>,
}

impl Incoming for Served {
    fn recv(&mut self) -> Option<Packet> {
        pirn::block_on(self.queue.recv())
    }

    fn stop(&self) -> Stop {
        let stop = Arc::clone(&self.stop);
        Box::new(move || stop.notify_one())
    }
}

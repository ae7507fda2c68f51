//! Servers that serve, until they are shut down.

use super::Handlers;
use super::listener::{Arrival, Listener, Queue};
use crate::h1::connection::Connection;
use crate::input::Input;
#[cfg(feature = "tls")]
use crate::limits::watch::Limit;
use crate::limits::watch::{LINGERING, Seat, Watch, take_interrupt};
use crate::poison::locked;
use crate::shared::Shared;
use crate::socket::Socket;
use crate::stream::Stream;
#[cfg(feature = "tls")]
use crate::tls::{Offered, TlsStream};
use crate::upgrade::Upgraded;
use pirn::thread::{self, Thread};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A server that listens.
#[derive(Debug)]
#[must_use = "it serves by `serve`"]
pub struct Bound {
    pub(super) handlers: Arc<Handlers>,
    pub(super) listeners: Vec<Listener>,
}

impl Bound {
    /// Serves the clients of another listener as well.
    pub fn and(mut self, listener: impl Into<Listener>) -> Bound {
        self.listeners.push(listener.into());
        self
    }

    /// Returns the address of the first listener of TCP.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.listeners.iter().find_map(Listener::local_addr)
    }

    /// Starts to serve, on threads of its own.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn start(self) -> io::Result<Running> {
        let address = self.local_addr();
        let shared = &self.handlers.shared;
        let watch = &shared.watch;
        watch.notice_hang_ups(shared.half_close)?;
        let (limits, clients) = (Arc::clone(watch), Arc::clone(watch));
        let hang_ups = spawn("http-hang-ups", move || clients.follow_clients())?;
        spawn("http-watch", move || limits.run())?;
        let mut acceptors = Vec::new();
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = processors.div_ceil(PROCESSORS_PER_ACCEPTOR);
        for listener in self.listeners {
            let listener = Arc::new(SharedListener {
                queue: listener.queue()?,
                listener,
                acceptors: AtomicUsize::new(threads),
            });
            for _ in 0..threads {
                let (handlers, listener) = (Arc::clone(&self.handlers), Arc::clone(&listener));
                let accept = move || listener.accept_all(&handlers);
                acceptors.push(spawn("http-accept", accept)?);
            }
        }
        Ok(Running {
            shared: Arc::clone(shared),
            acceptors: Mutex::new(acceptors),
            hang_ups: Thread::clone(hang_ups.thread()),
            address,
        })
    }

    /// Serves until the process gets one of these signals, then [shuts down](Running::shutdown):
    /// requests that have begun are answered. From then on such a signal ends the process at once,
    /// as it would without a handler.
    ///
    /// Returns how many connections were left.
    ///
    /// # Errors
    /// If no thread can be made, or a signal is one that has no handlers (`SIGKILL`).
    ///
    /// # Examples
    /// ```no_run
    /// use pirn_http::{SIGINT, SIGTERM, Server};
    /// fn main() -> std::io::Result<()> {
    ///     let server = Server::new().get("/", || "Hello, World!");
    ///     server.bind("127.0.0.1:8080")?.serve_until([SIGINT, SIGTERM])?;
    ///     println!("all requests have been answered");
    ///     Ok(())
    /// }
    /// ```
    pub fn serve_until(self, signals: impl IntoIterator<Item = c_int>) -> io::Result<usize> {
        // Before a client can know that there is a server.
        let mut signals = Signals::new(signals)?;
        let running = self.start()?;
        signals.forever().next();
        spawn("http-signals", move || {
            if let Some(signal) = signals.forever().next() {
                let _ = emulate_default_handler(signal); // It does not return from these.
            }
        })?;
        Ok(running.shutdown())
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn serve(self) -> io::Result<()> {
        self.start()?.join();
        Ok(())
    }
}

/// A server that serves. Dropping it goes on serving.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    acceptors: Mutex<Vec<thread::JoinHandle<()>>>,
    hang_ups: Thread,
    address: Option<SocketAddr>,
}

impl Running {
    /// Returns the address of the first listener of TCP.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns how many connections there are.
    pub fn connections(&self) -> usize {
        self.shared.watch.count()
    }

    /// Waits until the listeners have been closed, by [`shutdown`](Self::shutdown).
    pub fn join(&self) {
        let acceptors = std::mem::take(&mut *self.lock());
        acceptors
            .into_iter()
            .for_each(|acceptor| drop(acceptor.join()));
    }

    /// Ends the server: no more connections are accepted but those that have been made already,
    /// those that wait for a request are closed (for their first one, after a second), requests
    /// that have begun are answered with `Connection: close`, and clients of HTTP/2 get `GOAWAY`.
    /// After the [grace](crate::Timeouts::grace) their threads are interrupted. Returns how many
    /// connections are left a second after that; usually none.
    pub fn shutdown(&self) -> usize {
        let (shared, watch) = (&self.shared, &self.shared.watch);
        shared.stopping.store(true, SeqCst);
        let threads = Vec::from_iter(self.lock().iter().map(|one| Thread::clone(one.thread())));
        threads.iter().for_each(Thread::interrupt);
        self.join();
        let begin = Instant::now();
        let (grace, on_their_way) = (begin + watch.timeouts.grace, begin + LINGERING);
        let wait = |milliseconds| {
            watch.wait_for_fewer(watch.count(), Duration::from_millis(milliseconds));
        };
        while watch.count() > 0 && Instant::now() < grace {
            watch.dismiss_idle(Instant::now() > on_their_way); // Again: requests end meanwhile.
            wait(10);
        }
        let end = Instant::now() + Duration::from_secs(1);
        while watch.count() > 0 && Instant::now() < end {
            watch.interrupt_all();
            wait(100);
        }
        watch.end();
        self.hang_ups.interrupt();
        watch.count()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<thread::JoinHandle<()>>> {
        locked(&self.acceptors)
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.into()).spawn(run)
}

/// An acceptor takes some 100,000 connections per second; what follows, a short request and its
/// answer, keeps several processors busy.
const PROCESSORS_PER_ACCEPTOR: usize = 8;

/// How long an acceptor waits for room before it looks again.
const PAUSE: Duration = Duration::from_millis(100);

/// A listener whose clients several threads accept, as the kernel allows on one socket.
///
/// Rejected: a socket per thread (`SO_REUSEPORT`). A second server on the same port would start
/// without an error, and clients in the queue of a socket that is closed would be reset.
struct SharedListener {
    listener: Listener,
    queue: Queue,
    /// The number of threads that accept.
    acceptors: AtomicUsize,
}

impl SharedListener {
    /// Accepts connections until the server is shut down. Each gets a thread.
    fn accept_all(&self, handlers: &Arc<Handlers>) {
        let shared = &*handlers.shared;
        while !shared.is_stopping() {
            match self.listener.accept() {
                Ok(arrival) => begin(arrival, wait_for_seat(shared), handlers),
                // The client is gone already, or the server is shut down.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) if shared.is_stopping() => {}
                // There are no descriptors, or there is no memory.
                Err(_) if self.queue.has_client(PAUSE) => make_room(&shared.watch),
                Err(_) => {}
            }
        }
        take_interrupt(); // It has come, or is on its way.
        if self.acceptors.fetch_sub(1, SeqCst) > 1 {
            return;
        }
        // Closing the listener would reset those that have connected, and may have sent a request.
        while self.queue.has_client(Duration::ZERO)
            && let Ok(arrival) = self.listener.accept()
        {
            begin(arrival, wait_for_seat(shared), handlers);
        }
    }
}

/// Waits until there may be one connection more.
fn wait_for_seat(shared: &Shared) -> Seat {
    loop {
        let most = match shared.is_stopping() {
            true => usize::MAX,
            false => shared.limits.connections,
        };
        match shared.watch.seat(most) {
            Some(seat) => return seat,
            None => make_room(&shared.watch),
        }
    }
}

/// Closes the connection that has waited for a request for longest, for a client that waits, and
/// waits a moment until one has ended.
fn make_room(watch: &Watch) {
    let count = watch.count();
    watch.dismiss_longest_idle();
    watch.wait_for_fewer(count, PAUSE);
}

/// Serves a connection on a thread of its own.
fn begin(arrival: Arrival, seat: Seat, handlers: &Arc<Handlers>) {
    let threads = &handlers.shared.threads;
    let handlers = Arc::clone(handlers);
    let serve = move || {
        let shared = &handlers.shared;
        seat.sit_down();
        match shake_hands(arrival, &seat, shared) {
            Some(Opened::Plain(stream)) => match &shared.protocol {
                Some(protocol) => {
                    seat.no_limit(); // The handshake is over.
                    let connection = Upgraded::new(stream, Input::default(), &seat);
                    let _ = protocol(connection.clone()); // What it fails with is its own.
                    connection.linger();
                }
                None => {
                    seat.follow(&stream);
                    let connection = Connection::new(stream, Arc::clone(shared), seat);
                    if let Some(connection) = connection.serve(&*handlers) {
                        serve_http2(*connection, &handlers);
                    }
                }
            },
            #[cfg(all(feature = "http2", feature = "tls"))]
            Some(Opened::Http2(transport)) => {
                crate::h2::serve(transport, Arc::clone(shared), seat, &*handlers)
            }
            None => {}
        }
    };
    // Without memory for a thread, the stream is closed: the client sees that.
    drop(threads.spawn(serve));
}

/// Goes over to HTTP/2, with all that has come.
#[cfg(feature = "http2")]
fn serve_http2(connection: Connection, handlers: &Handlers) {
    let Stream::Plain(socket) = connection.stream else {
        return; // By TLS, HTTP/2 is agreed about before.
    };
    let transport = crate::h2::Transport {
        socket,
        #[cfg(feature = "tls")]
        tls: None,
        early: connection.input.unused().to_vec(),
    };
    crate::h2::serve(transport, connection.shared, connection.seat, handlers);
}

#[cfg(not(feature = "http2"))]
fn serve_http2(_: Connection, _: &Handlers) {}

/// A connection, and what is spoken on it.
enum Opened {
    /// HTTP/1.1, which may turn out to be HTTP/2, or no HTTP.
    Plain(Stream),
    #[cfg(all(feature = "http2", feature = "tls"))]
    Http2(crate::h2::Transport),
}

/// Agrees with the client about TLS, if that is spoken there.
#[cfg(feature = "tls")]
fn shake_hands(arrival: Arrival, seat: &Seat, shared: &Shared) -> Option<Opened> {
    let Some(tls) = arrival.tls else {
        return Some(Opened::Plain(Stream::Plain(arrival.socket)));
    };
    seat.limit(Limit::Handshake);
    let config = tls.config(match shared.protocol {
        Some(_) => Offered::NoHttp,
        None if shared.http2 => Offered::All,
        None => Offered::Http1,
    });
    // Failure: the client has been told why, if it is still there.
    let stream = TlsStream::accept(arrival.socket, Arc::clone(&config)).ok()?;
    #[cfg(feature = "http2")]
    if stream.is_http2() {
        let (socket, session) = stream.into_parts();
        return Some(Opened::Http2(crate::h2::Transport {
            socket,
            tls: Some(Box::new((session, config))),
            early: Vec::new(),
        }));
    }
    Some(Opened::Plain(Stream::Tls(Box::new(stream.into()))))
}

#[cfg(not(feature = "tls"))]
fn shake_hands(arrival: Arrival, _: &Seat, _: &Shared) -> Option<Opened> {
    Some(Opened::Plain(Stream::Plain(arrival.socket)))
}

/// Serves a connection inside the process.
pub(super) fn serve(stream: UnixStream, handlers: &Arc<Handlers>) {
    let arrival = Arrival::plain(Socket::Unix(stream));
    begin(arrival, wait_for_seat(&handlers.shared), handlers);
}

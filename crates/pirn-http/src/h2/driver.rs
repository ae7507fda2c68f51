//! The thread of a connection: it runs h2 and begins the streams.
//!
//! ```text
//!   phase    until                                           time limit
//!   Opening  the client's SETTINGS have come                 `Limit::Head`
//!   Idle     a stream begins                                 `Limit::Idle`; shutting down ends it
//!   Busy     the last stream has ended                       none; shutting down interrupts it
//!   Ending   the last stream has ended, after a GOAWAY       none
//!   Flushing the client has the answers                      `Limit::Write`
//!   Leaving  the client has seen that the connection ends    `Limit::Linger`
//! ```

use super::live::Live;
use super::stream::{Common, Stream};
use super::suspects::Suspects;
use super::wire::{Received, Transport, Wire};
use crate::limits::Limits;
use crate::limits::watch::{Limit, Seat};
use crate::poison::locked;
use crate::shared::{Serve, Shared};
use ::h2::RecvStream;
use ::h2::server::{Builder, Connection, SendResponse};
use bytes::Bytes;
use pirn::block_on_interruptible;
use pirn::thread::{self, Scope};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

/// How many bytes a client may send on one stream before the handler reads them.
const STREAM_WINDOW: u32 = 256 * 1024;

/// How many it may send on all streams of a connection.
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// How many bytes of an answer are kept for a client that does not take them.
const SEND_BUFFER: usize = 64 * 1024;

/// How many streams that the client has reset may wait to be accepted, and how many may have been
/// reset by the server for what the client did. More are a flood: the client is refused. These are
/// h2's own numbers, kept should h2 change them.
const RESETS: usize = 20;
const ERRORS: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Opening,
    Idle,
    Busy,
    Ending,
    Flushing,
    Leaving,
}

/// A request that has come, and the handle to answer it.
type Arrival = (http::Request<RecvStream>, SendResponse<Bytes>);

struct Driver {
    connection: Connection<Wire, Bytes>,
    common: Arc<Common>,
    seat: Seat,
    received: Arc<Received>,
    phase: Phase,
    /// GOAWAY has been sent.
    is_ending: bool,
}

/// Serves a connection until the client or the server is done.
pub(crate) fn serve(
    transport: Transport,
    shared: Arc<Shared>,
    seat: Seat,
    server: &impl Serve<Stream>,
) {
    seat.limit(Limit::Head);
    let Ok((wire, peer)) = transport.open() else {
        return; // The kernel is short of memory: the connection is closed.
    };
    let received = wire.received();
    let Ok(Ok(connection)) = block_on_interruptible(builder(&shared.limits).handshake(wire)) else {
        return; // The client sends no preface, or sends it too slowly.
    };
    let common = Arc::new(Common {
        most: shared.limits.streams as usize,
        shared,
        peer,
        live: Mutex::default(),
        suspects: Arc::<Suspects>::default(),
        moved: AtomicU64::new(0),
    });
    let driver = Driver {
        connection,
        common,
        seat,
        received,
        phase: Phase::Opening,
        is_ending: false,
    };
    // The seat is left when the streams' threads have ended: until then the connection counts.
    let _seat = thread::scope(|scope| driver.run(scope, server));
}

fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_connect_protocol()
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.header_list())
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(Some(ERRORS));
    builder
}

impl Driver {
    /// Runs the connection until it ends. Returns the seat, for which no time limit holds any more.
    fn run<'scope>(
        mut self,
        scope: &'scope Scope<'scope, '_>,
        server: &'scope impl Serve<Stream>,
    ) -> Seat {
        loop {
            match block_on_interruptible(poll_fn(|context| self.poll(context))) {
                Ok(Some(arrival)) => self.begin(scope, arrival, server),
                Ok(None) => break,
                Err(_) if self.goes_on() => {}
                Err(_) => break,
            }
        }
        let live = Vec::from_iter(locked(&self.common.live).values().cloned());
        live.iter().for_each(|live| live.hang_up());
        drop(live);
        self.seat.limit(Limit::Linger);
        // All that the streams' threads do with h2 fails from here on.
        drop(self.connection);
        self.seat.absorb();
        self.seat
    }

    /// Polls for the next request; `None`: the connection has ended.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Arrival>> {
        // Registers before it looks at what the others change: they change it, and then wake.
        self.common.suspects.register(context);
        let next = self.poll_connection(context);
        for number in self.common.suspects.take() {
            let live = locked(&self.common.live).get(&number).cloned();
            live.iter().for_each(|live| live.check());
        }
        if next.is_pending() {
            self.enter_phase();
        }
        next
    }

    fn poll_connection(&mut self, context: &mut Context<'_>) -> Poll<Option<Arrival>> {
        if locked(&self.common.live).len() >= self.common.most {
            // The threads of streams that have been reset may still run. h2 counts those that wait.
            let _ = ready!(self.connection.poll_closed(context));
            return Poll::Ready(None);
        }
        let arrival = ready!(pin!(self.connection.accept()).poll(context));
        // Failure: h2 has told the client what was wrong.
        Poll::Ready(arrival.and_then(Result::ok))
    }

    /// Sets the time limit for what the connection waits for from now on.
    fn enter_phase(&mut self) {
        let has_streams = !locked(&self.common.live).is_empty();
        let phase = match (self.is_ending, has_streams) {
            _ if self.phase == Phase::Opening && !self.received.has_begun() => return,
            (true, true) => Phase::Ending,
            (true, false) if self.connection.has_streams() => Phase::Flushing,
            (true, false) => Phase::Leaving,
            (false, true) => Phase::Busy,
            (false, false) => Phase::Idle,
        };
        if std::mem::replace(&mut self.phase, phase) == phase {
            return;
        }
        match phase {
            Phase::Opening => {}
            Phase::Idle => self.seat.limit(Limit::Idle),
            Phase::Busy => self.seat.limit(Limit::Dismissal),
            Phase::Ending => self.seat.no_limit(),
            Phase::Flushing => self.seat.limit(Limit::Write),
            Phase::Leaving => self.seat.limit(Limit::Linger),
        }
    }

    /// Finds out why the thread has been interrupted. Returns whether the connection goes on.
    fn goes_on(&mut self) -> bool {
        let is_late = self.seat.has_expired();
        self.seat.absorb();
        if !is_late {
            thread::take_interrupt(); // The end of the grace: the streams are interrupted as well.
        }
        match self.phase {
            Phase::Opening | Phase::Flushing | Phase::Leaving => return false,
            Phase::Idle | Phase::Busy | Phase::Ending => {}
        }
        if !self.is_ending {
            self.is_ending = true;
            self.connection.graceful_shutdown();
        }
        true
    }

    fn begin<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        (request, respond): Arrival,
        server: &'scope impl Serve<Stream>,
    ) {
        self.phase = Phase::Busy;
        self.seat.limit(Limit::Dismissal);
        let number = respond.stream_id().as_u32();
        let watch = &self.common.shared.watch;
        let seat = watch.stream_seat(self.seat.number());
        let waker = self.common.suspects.waker(number);
        let live = Live::new(respond, seat.line(), waker);
        locked(&self.common.live).insert(number, Arc::clone(&live));
        let (parts, body) = request.into_parts();
        let stream = Stream::new(
            number,
            &self.common,
            Arc::clone(&live),
            seat,
            (&parts, body),
        );
        live.check();
        let serve = move || stream.serve(parts, server);
        // Without memory for a thread, the stream is dropped, and so reset.
        let builder = self.common.shared.stream_thread();
        drop(builder.spawn_scoped(scope, serve));
    }
}

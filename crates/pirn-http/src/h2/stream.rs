//! One request and its answer, on a thread of its own.

use super::body::Incoming;
use super::head;
use super::live::Live;
use super::reply::{Answer, Body, PIECE, Reply, Way};
use super::suspects::Suspects;
use super::tunnel::Tunnel;
use super::wire::Peer;
use crate::input::Input;
use crate::limits::watch::{Limit, Seat};
use crate::poison::locked;
use crate::refusal::{Refusal, Refused};
use crate::response::{IntoResponse, Kind, Response, has_no_body, too_late};
use crate::shared::{Handled, Serve, Shared};
use crate::socket::retry;
use crate::transfer;
use crate::upgrade::{Upgrade, Upgraded};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// What the streams of a connection share.
pub(crate) struct Common {
    pub(super) shared: Arc<Shared>,
    pub(super) peer: Peer,
    /// The streams whose threads have not ended.
    pub(super) live: Mutex<HashMap<u32, Arc<Live>>>,
    pub(super) suspects: Arc<Suspects>,
    /// With this many streams the driver accepts no more.
    pub(super) most: usize,
    /// The bytes of bodies that all streams have moved, in both directions.
    pub(super) moved: AtomicU64,
}

impl Common {
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Waits for a piece of a body within the time limit for that. The streams of a connection
    /// share its window and the client's attention: as long as the others move together as much as
    /// one of them has to, one may pause for as long as a connection may be idle.
    ///
    /// The count of what the others move begins with the time of this body. It cannot begin with
    /// this wait: a stream that now and then gets a few bytes has little of its time left when its
    /// last wait begins, and the others cannot move enough in so short a wait.
    pub(super) fn patiently<R>(
        &self,
        seat: &Seat,
        limit: Limit,
        mut wait: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let (pace, timeouts) = seat.pace();
        let mut extensions = 0;
        loop {
            seat.limit(limit);
            let result = wait();
            if !seat.has_expired() || seat.is_handler_late() || seat.is_upload_late() {
                return result;
            }
            if result.is_ok() {
                seat.absorb(); // The piece came just then: the next wait is judged, not this one.
                return result;
            }
            // Relaxed: a number that stands for itself.
            let moved = pace.moved_by_all(self.moved.load(Relaxed));
            let by_others = moved.saturating_sub(pace.bytes());
            if by_others < timeouts.enough() || extensions == timeouts.most_extensions() {
                return result;
            }
            extensions += 1;
            seat.absorb();
            self.begin_body(seat);
        }
    }

    /// Notes that the time of a stream's body begins, or begins anew.
    pub(super) fn begin_body(&self, seat: &Seat) {
        seat.pace().0.begin_among(self.moved.load(Relaxed)); // Relaxed: no other data.
        seat.begin_body();
    }

    /// Notes that a body has moved by this many bytes.
    pub(super) fn note_moved(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Relaxed); // Relaxed: no other data.
    }
}

/// See the module's documentation.
pub(crate) struct Stream {
    pub(crate) place: Place,
    pub(crate) live: Arc<Live>,
    pub(crate) seat: Seat,
    pub(crate) incoming: Incoming,
    /// The client waits for `100 Continue`.
    continues: bool,
    pub(crate) reply: Reply,
}

impl Stream {
    pub(super) fn new(
        number: u32,
        common: &Arc<Common>,
        live: Arc<Live>,
        seat: Seat,
        request: (&Parts, ::h2::RecvStream),
    ) -> Box<Stream> {
        let (parts, body) = request;
        let expected = parts.headers.get(http::header::EXPECT);
        seat.pace().0.begin_among(common.moved.load(Relaxed)); // Relaxed: as in `patiently`.
        let incoming = Incoming::new(body, parts, common.shared.limits.body);
        Box::new(Stream {
            place: Place {
                number,
                common: Arc::clone(common),
            },
            live,
            seat,
            continues: expected
                .is_some_and(|one| one.as_bytes().eq_ignore_ascii_case(b"100-continue"))
                && !incoming.is_over(),
            incoming,
            reply: Reply::new(parts),
        })
    }

    /// Serves the request.
    pub(super) fn serve(self: Box<Self>, mut parts: Parts, server: &impl Serve<Self>) {
        self.seat.sit_down();
        let refused = head::adapt(&mut parts, &self.shared().limits.head);
        let handled = match refused {
            Ok(()) => server.handle(parts.into(), self),
            Err(Refusal { status, why }) => {
                server.refused(&Refused {
                    peer: self.peer().address,
                    line: format!("{} {} HTTP/2.0", parts.method, parts.uri).as_bytes(),
                    status,
                    reason: why,
                });
                Handled {
                    connection: self,
                    response: Some(Response::new(status).text(why)),
                    is_late: false,
                    trailers: None,
                }
            }
        };
        let (mut stream, trailers) = (handled.connection, handled.trailers);
        let response = match handled.response {
            Some(_) if handled.is_late && !stream.has_answered() => too_late(),
            Some(response) => response,
            None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        };
        match response.body.0 {
            Kind::Upgrade(upgrade) if stream.reply.is_extended && !stream.has_answered() => {
                let body = Default::default();
                stream.upgrade(Response { body, ..response }, upgrade);
            }
            _ => stream.finish(response, trailers.map(|trailers| *trailers)),
        }
    }

    /// Leaves HTTP: sends the answer, and passes the stream on. Here any status of success says
    /// that the protocol changes (RFC 8441, section 5).
    fn upgrade(mut self: Box<Self>, mut response: Response, upgrade: Upgrade) {
        self.reply.is_extended = false; // The client gets what it asked for.
        response.status = StatusCode::OK;
        let (reply, way) = self.parts();
        if reply.send_head(way, &response, None, Body::Open).is_err() {
            return; // The client is gone.
        }
        let Stream {
            place,
            live,
            seat,
            incoming,
            ..
        } = *self;
        let tunnel = Tunnel::new(Arc::clone(&place.common), live, incoming);
        let stream = crate::stream::Stream::Tunnel(Arc::new(tunnel));
        Upgraded::new(stream, Input::default(), &seat).pass_to(upgrade);
    }

    /// Sends what a handler has returned.
    fn finish(&mut self, response: Response, trailers: Option<HeaderMap>) {
        if self.seat.is_client_gone() {
            return; // The client is gone.
        }
        if self.seat.has_expired() {
            self.seat.absorb(); // The client is told why.
        }
        let result = match self.reply.answer {
            Answer::None => self.send(response.or_failed(), trailers),
            // Its body is incomplete: no end is sent, and the client sees that.
            Answer::Begun(body) if body != Body::Omitted && response.has_failed() => {
                Err(io::ErrorKind::Other.into())
            }
            Answer::Begun(_) => self.reply.end(&self.live, trailers),
        };
        match result {
            Ok(()) => self.linger(),
            Err(_) => self.live.reset(),
        }
    }

    /// Gives a client that still sends its body a moment to see the answer. What is then left of
    /// the stream is reset without an error (RFC 9113, section 8.1), but some clients take that for
    /// the lack of an answer.
    fn linger(&mut self) {
        if !self.incoming.is_over() {
            self.seat.limit(Limit::Linger);
            self.incoming.skip();
            self.seat.absorb();
        }
    }

    /// Sends a whole response.
    fn send(&mut self, response: Response, trailers: Option<HeaderMap>) -> io::Result<()> {
        let response = match response.body.0 {
            Kind::Upgrade(_) => not_here(),
            _ => response,
        };
        let has_body = !has_no_body(response.status);
        let length = response.body.len().filter(|_| has_body);
        let (reply, way) = self.parts();
        let is_empty = !has_body || reply.is_head || (length == Some(0) && trailers.is_none());
        let body = match (is_empty, length) {
            (true, _) => Body::Omitted,
            (false, Some(length)) => Body::Left(length),
            (false, None) => Body::Open,
        };
        reply.send_head(way, &response, length, body)?;
        if is_empty {
            return Ok(());
        }
        match response.body.0 {
            Kind::Empty | Kind::Upgrade(_) => {}
            // The usual case: it takes no more room than what a handler writes.
            Kind::Bytes(bytes) if bytes.len() <= PIECE && trailers.is_none() => {
                return self.live.with_body(|body| body.send_data(bytes, true));
            }
            Kind::Bytes(bytes) => reply.send_counted(way, bytes)?,
            Kind::Reader { reader, .. } => self.send_all_of(reader)?,
        }
        self.reply.end(&self.live, trailers)
    }

    fn send_all_of(&mut self, mut reader: Box<dyn Read + Send>) -> io::Result<()> {
        let (reply, way) = self.parts();
        loop {
            let mut piece = vec![0; PIECE];
            match retry(|| reader.read(&mut piece))? {
                0 => return Ok(()),
                count => {
                    piece.truncate(count);
                    reply.send_counted(way, piece.into())?;
                }
            }
        }
    }

    /// Sends the head of an answer whose body is written afterwards.
    pub(crate) fn begin_answer(&mut self, response: &Response) -> io::Result<()> {
        let (reply, way) = self.parts();
        reply.begin(way, response)
    }

    pub(crate) fn has_answered(&self) -> bool {
        self.reply.answer != Answer::None
    }

    /// Writes bytes of the answer's body.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (reply, way) = self.parts();
        reply.write(way, bytes)
    }

    /// Sends what has been collected.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let (reply, way) = self.parts();
        reply.flush(way)
    }

    fn parts(&mut self) -> (&mut Reply, Way<'_>) {
        let way = Way::new(&self.place.common, &self.live, &self.seat);
        (&mut self.reply, way)
    }

    /// Reads bytes of the request's body.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.begin_read()?;
        read(&self.place.common, &self.seat, &mut self.incoming, buffer)
    }

    /// Sends what the client may wait for before it sends more of the body.
    pub(crate) fn begin_read(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.continues) && !self.has_answered() {
            true => self.live.go_on(),
            false => Ok(()),
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        self.place.common.shared()
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.place.common.peer
    }
}

/// Reads bytes of the body of a request.
pub(crate) fn read(
    common: &Common,
    seat: &Seat,
    incoming: &mut Incoming,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let count = transfer::read_in_time(seat, || {
        common.patiently(seat, Limit::Body, || incoming.read(buffer))
    })?;
    common.note_moved(count);
    Ok(count)
}

/// The place of a stream among its connection's live streams, until the stream's thread ends.
pub(crate) struct Place {
    number: u32,
    common: Arc<Common>,
}

impl Place {
    pub(crate) fn common(&self) -> &Common {
        &self.common
    }
}

impl Drop for Place {
    /// The thread is about to end.
    fn drop(&mut self) {
        let mut live = locked(&self.common.live);
        let before = live.len();
        let gone = live.remove(&self.number);
        drop(live); // h2's handles are dropped outside of the lock.
        drop(gone);
        if before == 1 || before >= self.common.most {
            self.common.suspects.wake_driver();
        }
    }
}

/// Returns the answer that a client gets in place of a change of protocol for which it has not
/// asked.
pub(crate) fn not_here() -> Response {
    let why = "in HTTP/2 another protocol is asked for by CONNECT and :protocol (RFC 8441)";
    Response::new(StatusCode::NOT_IMPLEMENTED).text(why)
}

//! One connection: a request, its handler, its answer, and over again, all on one thread.

use super::body::Incoming;
use super::framing::Framing;
use super::head::{self, Head, Search};
use super::output::{Asked, Body, Length};
use super::reply::{Answer, PIECE, Reply};
use crate::input::Input;
use crate::limits::watch::{Limit, Seat};
use crate::refusal::{Refusal, Refused};
use crate::response::{IntoResponse, Kind, Response, has_no_body, too_late};
use crate::shared::{Handled, Serve, Shared};
use crate::socket::retry;
use crate::stream::Stream;
use crate::transfer;
use crate::upgrade::{Upgrade, Upgraded};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use std::io::{self, Read};
use std::sync::Arc;

/// See the module's documentation.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) input: Input,
    pub(crate) incoming: Incoming,
    pub(crate) reply: Reply,
    pub(crate) shared: Arc<Shared>,
    pub(crate) seat: Seat,
    /// A request has come.
    is_used: bool,
}

/// What a client that knows that the server speaks HTTP/2 sends first, as far as HTTP/1.1 takes it
/// for the head of a request: RFC 9113, section 3.4.
#[cfg(feature = "http2")]
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// Why there is no request.
enum NoRequest {
    /// The client has closed the connection, or is too slow with its next request.
    Over,
    /// With the head, as far as it has been taken from the input.
    Refused(Refusal, Bytes),
    Broken,
    /// The client speaks HTTP/2.
    #[cfg(feature = "http2")]
    Http2,
}

impl From<Refusal> for NoRequest {
    fn from(refusal: Refusal) -> NoRequest {
        NoRequest::Refused(refusal, Bytes::new())
    }
}

impl Connection {
    pub(crate) fn new(stream: Stream, shared: Arc<Shared>, seat: Seat) -> Box<Connection> {
        Box::new(Connection {
            stream,
            input: Input::default(),
            incoming: Incoming::new(Framing::Length(0), 0, false),
            reply: Reply::new(),
            shared,
            seat,
            is_used: false,
        })
    }

    /// Serves requests until the client or the server is done. Returns the connection if it turns
    /// out to be one of HTTP/2.
    pub(crate) fn serve(mut self: Box<Self>, server: &impl Serve<Self>) -> Option<Box<Self>> {
        loop {
            let head = match self.next_head() {
                Ok(head) => head,
                Err(NoRequest::Refused(refusal, head)) => {
                    server.refused(&self.refused(refusal, &head));
                    self.refuse(refusal);
                    return None;
                }
                Err(NoRequest::Over | NoRequest::Broken) => return None,
                #[cfg(feature = "http2")]
                Err(NoRequest::Http2) => return Some(self),
            };
            self.begin(&head);
            let Handled {
                connection,
                response,
                is_late,
                trailers,
            } = server.handle(head.request, self);
            self = connection;
            let goes_on = match response {
                Some(_) if is_late && self.reply.answer == Answer::None => {
                    self.finish(too_late(), None)
                }
                Some(response) => match response.body.0 {
                    Kind::Upgrade(upgrade)
                        if self.reply.answer == Answer::None && self.incoming.is_over() =>
                    {
                        let body = Default::default();
                        self.upgrade(Response { body, ..response }, upgrade);
                        return None;
                    }
                    _ => self.finish(response, trailers.as_deref()),
                },
                None => self.finish_panicked(),
            };
            if !goes_on {
                self.leave();
                return None;
            }
        }
    }

    /// Reads the next head.
    fn next_head(&mut self) -> Result<Head, NoRequest> {
        let limits = self.shared.limits.head;
        let mut search = Search::default();
        let mut is_limited = false;
        if self.input.is_empty() {
            self.seat.limit(match self.is_used {
                true => Limit::Idle,
                false => Limit::First,
            });
        }
        loop {
            // Line ends before a request are ignored (RFC 9112, section 2.2).
            while self.input.unused().starts_with(b"\r\n") {
                self.input.consume(2);
            }
            if !self.input.is_empty()
                && let Some(length) = search.end(self.input.unused(), limits.bytes)?
            {
                #[cfg(feature = "http2")]
                if !self.is_used && self.begins_http2() {
                    return Err(NoRequest::Http2);
                }
                self.seat.no_limit();
                let head = head::parse(self.input.take(length), &limits);
                return head.map_err(|(refusal, head)| NoRequest::Refused(refusal, head));
            }
            if !self.input.is_empty() && !is_limited {
                self.seat.limit(Limit::Head);
                is_limited = true;
            }
            self.reply
                .output
                .flush(&self.stream)
                .map_err(|_| NoRequest::Broken)?;
            let was_idle = self.input.is_empty();
            match self.input.fill(&self.stream) {
                Ok(0) if was_idle => return Err(NoRequest::Over),
                Ok(0) => return Err(Refusal::bad("the request ended too early").into()),
                Ok(_) => {}
                Err(_) if self.seat.has_expired() && !was_idle => {
                    return Err(Refusal::new(
                        StatusCode::REQUEST_TIMEOUT,
                        "the request took too long",
                    )
                    .into());
                }
                Err(_) => return Err(NoRequest::Broken),
            }
        }
    }

    /// Returns whether the client begins with HTTP/2's preface. Without TLS, a client sends that to
    /// a server that it knows to speak HTTP/2; with TLS, both agree in the handshake.
    #[cfg(feature = "http2")]
    #[cold]
    fn begins_http2(&self) -> bool {
        let is_plain = matches!(self.stream, Stream::Plain(_));
        self.shared.http2 && is_plain && self.input.unused().starts_with(PREFACE)
    }

    fn begin(&mut self, head: &Head) {
        self.is_used = true;
        self.reply.asked = Asked {
            version: head.request.version,
            is_head: head.request.method == Method::HEAD,
            keep_alive: head.keep_alive && !self.shared.is_stopping(),
        };
        let limit = self.shared.limits.body;
        self.incoming = Incoming::new(head.framing, limit, head.expects_continue);
        self.reply.answer = Answer::None;
    }

    /// Reads bytes of the request's body.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.incoming.is_over() || buffer.is_empty() {
            return Ok(0);
        }
        self.begin_read()?;
        transfer::read_in_time(&self.seat, || {
            self.incoming.read(&mut self.input, &self.stream, buffer)
        })
    }

    /// Sends what the client may wait for before it sends more of the body.
    pub(crate) fn begin_read(&mut self) -> io::Result<()> {
        let output = &mut self.reply.output;
        if self.incoming.take_continue() && self.reply.answer == Answer::None {
            output.go_on(&self.stream)?;
        }
        output.flush(&self.stream)
    }

    /// Notes whether there can be another request, as far as that is known before the head of the
    /// answer.
    pub(crate) fn settle_keep_alive(&mut self) {
        if self.incoming.is_broken() || self.shared.is_stopping() {
            self.reply.asked.keep_alive = false;
        }
    }

    /// Sends the head of an answer whose body is written afterwards.
    pub(crate) fn begin_answer(&mut self, response: &Response) -> io::Result<()> {
        self.settle_keep_alive();
        self.reply.begin(&self.seat, response)
    }

    /// Writes bytes of the answer's body.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reply.write(&self.stream, &self.seat, bytes)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.reply.flush(&self.stream, &self.seat)
    }

    pub(crate) fn has_answered(&self) -> bool {
        self.reply.answer != Answer::None
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Sends what a handler has returned. Returns whether there may be another request.
    fn finish(&mut self, response: Response, trailers: Option<&HeaderMap>) -> bool {
        if self.reply.answer == Answer::None && self.seat.has_expired() {
            self.seat.absorb(); // The client is told why, and has a moment to see it.
        }
        let result = match self.reply.answer {
            Answer::None => self.send(response.or_failed(), trailers),
            // Its body is incomplete: no end is sent, and the client sees that.
            Answer::Begun(_) if response.has_failed() => return false,
            Answer::Begun(_) => self.reply.end(trailers),
        };
        result.is_ok() && self.may_go_on()
    }

    fn finish_panicked(&mut self) -> bool {
        let response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        self.reply.answer == Answer::None && self.finish(response, None)
    }

    /// Sends a whole response.
    fn send(&mut self, response: Response, trailers: Option<&HeaderMap>) -> io::Result<()> {
        let response = match response.body.0 {
            Kind::Upgrade(_) => {
                self.reply.asked.keep_alive = false;
                has_unread_body()
            }
            _ => response,
        };
        let length = match response.body.len() {
            _ if has_no_body(response.status) => Length::None,
            Some(length) => Length::Known(length),
            None => Length::Unknown,
        };
        // A body that is neither read nor small enough to be drained ends the connection: say so.
        self.reply.asked.keep_alive &= self.incoming.can_be_drained();
        self.settle_keep_alive();
        self.reply.send_head(&self.seat, &response, length);
        match response.body.0 {
            Kind::Empty | Kind::Upgrade(_) => {}
            Kind::Bytes(bytes) => self.write(&bytes)?,
            Kind::Reader {
                reader,
                length,
                waits,
            } => self.send_all_of(reader, length, waits)?,
        }
        self.reply.end(trailers)
    }

    fn send_all_of(
        &mut self,
        mut reader: Box<dyn Read + Send>,
        length: Option<u64>,
        waits: bool,
    ) -> io::Result<()> {
        if self.reply.answer == Answer::Begun(Body::Omitted) {
            return Ok(());
        }
        // Of a reader that is shorter than it says, the end is noticed; of others it is known.
        let room = length.map_or(PIECE as u64, |length| length.min(PIECE as u64));
        let mut piece = vec![0; room as usize];
        loop {
            if waits {
                self.flush()?;
            }
            match retry(|| reader.read(&mut piece))? {
                0 => return Ok(()),
                count => self.write(&piece[..count])?,
            }
        }
    }

    /// Returns whether the next request can be read, once the rest of this one has been.
    fn may_go_on(&mut self) -> bool {
        if !self.reply.asked.keep_alive {
            return false;
        }
        // This waits for no client, so no time limit holds: on a machine so busy that a thread got
        // its turn once per second, the client lost its connection.
        self.incoming.skip_arrived(&mut self.input);
        if self.incoming.is_over() {
            return true;
        }
        if self.reply.output.flush(&self.stream).is_err() {
            return false;
        }
        self.seat.limit(Limit::Drain);
        let is_drained = self.incoming.drain(&mut self.input, &self.stream);
        self.seat.no_limit();
        if is_drained && self.seat.has_expired() {
            self.seat.forgive(); // It came just in time.
        }
        is_drained
    }

    /// Leaves HTTP: sends the answer, and passes the connection on.
    fn upgrade(mut self: Box<Self>, response: Response, upgrade: Upgrade) {
        let sent = self.send(response, None).and_then(|()| self.flush());
        if sent.is_ok() {
            let Connection {
                stream,
                input,
                seat,
                ..
            } = *self;
            Upgraded::new(stream, input, &seat).pass_to(upgrade);
        }
    }

    /// Returns what middleware is told of a malformed request. `head` has the bytes of it that the
    /// parser took from the input.
    fn refused<'r>(&'r self, refusal: Refusal, head: &'r [u8]) -> Refused<'r> {
        let bytes = match head {
            [] => self.input.unused(),
            head => head,
        };
        let line = bytes.split(|byte| b"\r\n".contains(byte)).next();
        Refused {
            peer: self.stream.peer(),
            line: line.unwrap_or_default(),
            status: refusal.status,
            reason: refusal.why,
        }
    }

    /// Answers a malformed request.
    fn refuse(mut self: Box<Self>, refusal: Refusal) {
        self.seat.absorb();
        // Not the values of the request before: if that was HEAD, the answer would have no body.
        self.reply.asked = Asked::NOTHING;
        let response = Response::new(refusal.status).text(refusal.why);
        let _ = self.send(response, None); // The client may be gone.
        self.incoming = Incoming::new(Framing::Length(u64::MAX), u64::MAX, false);
        self.leave();
    }

    /// Ends the connection. Where bytes of the client are unread, the client has a moment to see
    /// the answer.
    fn leave(mut self: Box<Self>) {
        if self.flush().is_err() {
            return;
        }
        if self.incoming.is_over() && self.input.is_empty() {
            return;
        }
        self.seat.limit(Limit::Linger);
        self.stream.linger();
    }
}

/// Returns the answer in place of one that changes the protocol while the request's body has not
/// been read: the other protocol would begin with that body (RFC 9110, section 7.8).
fn has_unread_body() -> Response {
    let why = "an upgrade request must not have a body";
    Response::new(StatusCode::BAD_REQUEST).text(why)
}

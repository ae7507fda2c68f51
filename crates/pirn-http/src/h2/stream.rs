//! One request and its answer, on a thread of its own.

use super::body::Incoming;
use super::suspects::Suspects;
use super::wire::Peer;
use super::{broken, head, wait_for};
use crate::exchange::Exchange;
use crate::h1::chunked::NO_TRAILERS;
use crate::h1::refusal::Refusal;
use crate::poison::locked;
use crate::request::Request;
use crate::response::{IntoResponse, Kind, Response, has_no_body, too_late};
use crate::server::shared::Shared;
use crate::server::watch::{Limit, Line, Seat};
use crate::stream::retry;
use ::h2::server::SendResponse;
use ::h2::{Reason, SendStream};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use std::collections::HashMap;
use std::future::poll_fn;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};

/// How many bytes are collected before they are sent, and are read of a reader at once.
const PIECE: usize = 16 * 1024;

/// What the streams of a connection share.
pub(super) struct Common {
    pub(super) shared: Arc<Shared>,
    pub(super) peer: Peer,
    /// The streams whose threads have not ended.
    pub(super) live: Mutex<HashMap<u32, Arc<Live>>>,
    pub(super) suspects: Arc<Suspects>,
    /// With so many streams the driver accepts no more.
    pub(super) most: usize,
}

/// What the driver knows of a stream whose thread runs.
pub(super) struct Live {
    sending: Mutex<Sending>,
    line: Line,
    /// Notes the stream as a suspect.
    waker: Waker,
}

/// h2's handles for the answer. h2 keeps one waker for room in the window and for the stream's end;
/// so the driver may ask only while the stream's thread does not wait.
struct Sending {
    respond: SendResponse<Bytes>,
    /// The answer's body, once the head has been sent.
    body: Option<SendStream<Bytes>>,
    /// The stream's thread waits for room. If the stream ends, that fails.
    is_waiting: bool,
}

impl Sending {
    /// Returns whether the stream is gone. If not, the waker is called when that may change.
    fn is_gone(&mut self, waker: &Waker) -> bool {
        let mut context = Context::from_waker(waker);
        let polled = match &mut self.body {
            Some(body) => body.poll_reset(&mut context),
            None => self.respond.poll_reset(&mut context),
        };
        polled.is_ready()
    }

    /// Polls for room for bytes of the body.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let body = self.body.as_mut().ok_or_else(gone)?;
        loop {
            match body.capacity() {
                0 => {}
                room => return Poll::Ready(Ok(room)),
            }
            match ready!(body.poll_capacity(context)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(broken(error))),
                None => return Poll::Ready(Err(gone())),
            }
        }
    }
}

impl Live {
    pub(super) fn new(respond: SendResponse<Bytes>, line: Line, waker: Waker) -> Arc<Live> {
        let sending = Mutex::new(Sending {
            respond,
            body: None,
            is_waiting: false,
        });
        Arc::new(Live {
            sending,
            line,
            waker,
        })
    }

    /// Interrupts the handler if the stream is gone.
    pub(super) fn check(&self) {
        let is_gone = {
            let mut sending = locked(&self.sending);
            !sending.is_waiting && sending.is_gone(&self.waker)
        };
        if is_gone {
            self.hang_up();
        }
    }

    /// Notes that the stream is gone, and interrupts its handler.
    pub(super) fn hang_up(&self) {
        self.line.hang_up();
    }
}

/// How much of the answer's body may follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Body {
    /// Nothing, whatever is written: the stream has ended with the head.
    Omitted,
    /// So many bytes.
    Left(u64),
    Open,
}

/// The answer to the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// Nothing of it has been sent.
    None,
    Begun(Body),
}

/// See the module's documentation.
pub(crate) struct Stream {
    number: u32,
    common: Arc<Common>,
    live: Arc<Live>,
    pub(crate) seat: Seat,
    incoming: Incoming,
    /// The client waits for `100 Continue`.
    continues: bool,
    is_head: bool,
    answer: Answer,
    /// Bytes of the answer's body that have been written and not been sent.
    collected: Vec<u8>,
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
        let incoming = Incoming::new(body, parts, common.shared.limits.body);
        Box::new(Stream {
            number,
            common: Arc::clone(common),
            live,
            seat,
            continues: expected
                .is_some_and(|one| one.as_bytes().eq_ignore_ascii_case(b"100-continue"))
                && !incoming.is_over(),
            incoming,
            is_head: parts.method == Method::HEAD,
            answer: Answer::None,
            collected: Vec::new(),
        })
    }

    /// Serves the request.
    pub(super) fn serve(self: Box<Self>, parts: Parts) {
        self.seat.sit_down();
        let shared = Arc::clone(&self.common.shared);
        let mut request = Request::new(parts, Exchange::H2(self));
        let refused = head::adapt(&mut request, &shared.limits.head);
        request.seat().begin_handler();
        let handled = match refused {
            Ok(()) => catch_unwind(AssertUnwindSafe(|| (shared.handler)(&mut request))),
            Err(Refusal { status, why }) => Ok(Response::new(status).text(why)),
        };
        let is_late = request.seat().end_handler();
        let (_, exchange, trailers) = request.into_parts();
        let Exchange::H2(mut stream) = exchange else {
            return; // It was one of these above.
        };
        let response = match handled {
            Ok(_) if is_late && !stream.has_answered() => too_late(),
            Ok(response) => response,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        };
        stream.finish(response, trailers);
    }

    /// Sends what a handler has returned.
    fn finish(&mut self, response: Response, trailers: Option<HeaderMap>) {
        if self.seat.is_client_gone() {
            return; // There is nobody to send it to.
        }
        if self.seat.has_expired() {
            self.seat.absorb(); // The client is told why.
        }
        let result = match self.answer {
            Answer::None => self.send(response, trailers),
            // Its body is incomplete: no end is sent, and the client sees that.
            Answer::Begun(_) if response.status.is_server_error() => {
                Err(io::ErrorKind::Other.into())
            }
            Answer::Begun(body) => self.end(body, trailers),
        };
        match result {
            Ok(()) => self.linger(),
            Err(_) => locked(&self.live.sending)
                .respond
                .send_reset(Reason::INTERNAL_ERROR),
        }
    }

    /// Gives a client that still sends its body a moment to see the answer. What is then left of
    /// the stream is reset without an error (RFC 9113, section 8.1), but some clients take that for
    /// the lack of an answer.
    fn linger(&mut self) {
        if !self.incoming.is_over() {
            self.seat.limit(Limit::Drain);
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
        let is_empty = !has_body || self.is_head || (length == Some(0) && trailers.is_none());
        let body = match (is_empty, length) {
            (true, _) => Body::Omitted,
            (false, Some(length)) => Body::Left(length),
            (false, None) => Body::Open,
        };
        self.send_head(&response, length, body)?;
        if is_empty {
            return Ok(());
        }
        match response.body.0 {
            Kind::Empty | Kind::Upgrade(_) => {}
            // The usual case: it takes no more room than what a handler writes.
            Kind::Bytes(bytes) if bytes.len() <= PIECE && trailers.is_none() => {
                return self.with_body(|body| body.send_data(bytes, true));
            }
            Kind::Bytes(bytes) => self.send_counted(bytes)?,
            Kind::Reader { reader, .. } => self.send_all_of(reader)?,
        }
        match self.answer {
            Answer::Begun(body) => self.end(body, trailers),
            Answer::None => Ok(()),
        }
    }

    fn send_all_of(&mut self, mut reader: Box<dyn Read + Send>) -> io::Result<()> {
        loop {
            let mut piece = vec![0; PIECE];
            match retry(|| reader.read(&mut piece))? {
                0 => return Ok(()),
                count => {
                    piece.truncate(count);
                    self.send_counted(piece.into())?;
                }
            }
        }
    }

    /// Sends the end of the body.
    ///
    /// # Errors
    /// If the stream is broken, or there were fewer bytes than the head has announced.
    fn end(&mut self, body: Body, trailers: Option<HeaderMap>) -> io::Result<()> {
        match body {
            Body::Omitted => return Ok(()),
            Body::Left(1..) => {
                let why = "the body is shorter than the Content-Length of its head";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            Body::Left(0) | Body::Open => {}
        }
        let rest = Bytes::from(std::mem::take(&mut self.collected));
        match trailers {
            None => self.with_body(|body| body.send_data(rest, true)),
            Some(mut trailers) => self.with_body(|body| {
                let names = NO_TRAILERS.iter().chain(&head::LEFT_OUT);
                names.for_each(|name| drop(trailers.remove(name)));
                body.send_data(rest, false)?;
                body.send_trailers(trailers)
            }),
        }
    }

    fn with_body(
        &self,
        send: impl FnOnce(&mut SendStream<Bytes>) -> Result<(), ::h2::Error>,
    ) -> io::Result<()> {
        match &mut locked(&self.live.sending).body {
            Some(body) => send(body).map_err(broken),
            None => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn send_head(
        &mut self,
        response: &Response,
        length: Option<u64>,
        body: Body,
    ) -> io::Result<()> {
        let head = head::answer(response, length);
        let mut sending = locked(&self.live.sending);
        let sent = sending.respond.send_response(head, body == Body::Omitted);
        sending.body = Some(sent.map_err(broken)?);
        self.answer = Answer::Begun(body);
        Ok(())
    }

    /// Sends the head of an answer whose body is written afterwards.
    pub(crate) fn begin_answer(&mut self, response: &Response) -> io::Result<()> {
        if self.has_answered() {
            let why = "the request has been responded to already";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let no_body = has_no_body(response.status);
        let length = response.body.len().filter(|&length| !no_body && length > 0);
        let body = match length {
            _ if no_body || self.is_head => Body::Omitted,
            Some(length) => Body::Left(length),
            None => Body::Open,
        };
        self.send_head(response, length, body)
    }

    pub(crate) fn has_answered(&self) -> bool {
        self.answer != Answer::None
    }

    /// Writes bytes of the answer's body.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.answer {
            Answer::None => return Err(io::ErrorKind::InvalidInput.into()),
            Answer::Begun(Body::Omitted) => return Ok(()),
            Answer::Begun(_) => self.count(bytes.len())?,
        }
        if self.collected.len() + bytes.len() <= PIECE {
            self.collected.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        match bytes.len() <= PIECE {
            true => self.collected.extend_from_slice(bytes),
            false => self.send_bytes(Bytes::copy_from_slice(bytes))?,
        }
        Ok(())
    }

    /// Sends what has been collected.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.collected) {
            none if none.is_empty() => Ok(()),
            collected => self.send_bytes(collected.into()),
        }
    }

    /// Counts bytes of the body.
    ///
    /// # Errors
    /// If they are more than the head has announced.
    fn count(&mut self, bytes: usize) -> io::Result<()> {
        if let Answer::Begun(Body::Left(left)) = &mut self.answer {
            *left = left.checked_sub(bytes as u64).ok_or_else(|| {
                let why = "the body is longer than the Content-Length of its head";
                io::Error::new(io::ErrorKind::InvalidInput, why)
            })?;
        }
        Ok(())
    }

    fn send_counted(&mut self, bytes: Bytes) -> io::Result<()> {
        self.count(bytes.len())?;
        self.send_bytes(bytes)
    }

    /// Sends bytes of the body, which have been counted, as fast as the client's window opens.
    fn send_bytes(&mut self, mut bytes: Bytes) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = self.wait_for_room(bytes.len())?;
            let piece = bytes.split_to(room.min(bytes.len()));
            self.seat.progress(piece.len());
            self.with_body(|body| body.send_data(piece, false))?;
        }
        Ok(())
    }

    /// Waits until the client takes bytes of the body. Returns how many.
    fn wait_for_room(&self, wanted: usize) -> io::Result<usize> {
        {
            let mut sending = locked(&self.live.sending);
            if let Some(body) = &mut sending.body {
                body.reserve_capacity(wanted);
                if let room @ 1.. = body.capacity() {
                    return Ok(room);
                }
            }
            sending.is_waiting = true;
        }
        self.seat.limit(Limit::Write);
        let room = wait_for(poll_fn(|context| {
            locked(&self.live.sending).poll_room(context)
        }));
        self.seat.no_limit();
        // The waker that tells of the stream's end has given way to that of the wait.
        locked(&self.live.sending).is_waiting = false;
        self.live.check();
        room?
    }

    /// Reads bytes of the request's body.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if std::mem::take(&mut self.continues) && !self.has_answered() {
            let mut go_on = http::Response::new(());
            *go_on.status_mut() = StatusCode::CONTINUE;
            let mut sending = locked(&self.live.sending);
            sending.respond.send_informational(go_on).map_err(broken)?;
        }
        self.seat.limit(Limit::Body);
        let result = self.incoming.read(buffer);
        self.seat.progress(*result.as_ref().unwrap_or(&0));
        match result {
            Err(_) if self.seat.has_expired() => {
                let why = "the body came too slowly";
                Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, why).into())
            }
            result => result,
        }
    }

    pub(crate) fn allow_body(&mut self, bytes: u64) {
        self.incoming.allow(bytes);
    }

    #[cfg(feature = "tower")]
    pub(crate) fn body_left(&self) -> Option<u64> {
        self.incoming.left()
    }

    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        self.incoming.trailers()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.common.shared
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.common.peer
    }
}

impl Drop for Stream {
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

/// Returns the answer in place of one that only a connection of HTTP/1.1 can have.
pub(crate) fn not_here() -> Response {
    let why = "the protocol cannot be changed in HTTP/2; it can in HTTP/1.1";
    Response::new(StatusCode::NOT_IMPLEMENTED).text(why)
}

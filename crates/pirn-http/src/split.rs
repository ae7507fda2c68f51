//! A request in two parts, for two threads: its body, and the way of its response.
//!
//! ```text
//!   Request --split--> BodyReader   stays on the handler's thread, whose seat has its time limits
//!                      Responder    may go to another thread, which gets a seat for its own ones
//! ```

use crate::exchange::{Exchange, Reading, Writing};
#[cfg(feature = "http2")]
use crate::h2;
use crate::limits::watch::Seat;
use crate::outgoing::{Outgoing, Then};
use crate::response::Response;
use crate::shared::Shared;
use crate::transfer::read_in_time;
use std::fmt;
use std::io::{self, Read, Write};

/// Returns the two parts of a request: see [`Request::split`](crate::Request::split).
pub(crate) fn split<'r>(
    exchange: &'r mut Exchange,
    outgoing: &'r mut Outgoing,
) -> io::Result<(BodyReader<'r>, Responder<'r>)> {
    let (reading, writing, seat, shared) = exchange.split()?;
    let responder = Responder {
        outgoing,
        writing,
        shared,
        beside: seat.number(),
    };
    Ok((BodyReader { reading, seat }, responder))
}

/// The body of a request that has been [split](crate::Request::split). It stays on the handler's
/// thread, which the server interrupts when the client is gone.
pub struct BodyReader<'r> {
    reading: Reading<'r>,
    seat: &'r Seat,
}

impl Read for BodyReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.reading {
            Reading::H1(_, _, incoming) if incoming.is_over() => Ok(0),
            Reading::H1(stream, input, incoming) => {
                read_in_time(self.seat, || incoming.read(input, stream, buffer))
            }
            #[cfg(feature = "http2")]
            Reading::H2(common, incoming) => h2::read(common, self.seat, incoming, buffer),
        }
    }
}

impl fmt::Debug for BodyReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyReader").finish_non_exhaustive()
    }
}

/// The way of the response to a request that has been [split](crate::Request::split).
///
/// The handler may drop it, and return a response as usual.
pub struct Responder<'r> {
    outgoing: &'r mut Outgoing,
    writing: Writing<'r>,
    shared: &'r Shared,
    /// The number of the seat of the handler's thread.
    beside: u64,
}

impl<'r> Responder<'r> {
    /// Sends the status and the fields of a response now, as
    /// [`Request::respond`](crate::Request::respond) does. This thread is then interrupted if the
    /// client takes the body too slowly.
    ///
    /// # Errors
    /// If there has been a response, or this one is informational, or is a 500 with a cause
    /// ([`Response::error`]), which the error has then.
    pub fn respond(mut self, response: Response) -> io::Result<BodyWriter<'r>> {
        let seat = self.shared.watch.stream_seat(self.beside);
        seat.sit_down();
        let begin = |response: &Response| self.writing.begin(&seat, response);
        self.outgoing.begin(response, begin)?;
        Ok(BodyWriter {
            outgoing: self.outgoing,
            writing: self.writing,
            seat,
        })
    }
}

impl fmt::Debug for Responder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").finish_non_exhaustive()
    }
}

/// The body of a response that a [`Responder`] has begun.
///
/// It collects the bytes that the handler writes; [`flush`](Write::flush) sends them.
pub struct BodyWriter<'r> {
    outgoing: &'r mut Outgoing,
    writing: Writing<'r>,
    seat: Seat,
}

impl BodyWriter<'_> {
    /// Sends the end of the body now. Without it the server does so when the handler returns, which
    /// may be long after: when it has read the request's body.
    ///
    /// # Errors
    /// If the client is gone, or fewer bytes were written than the head has announced.
    pub fn end(mut self) -> io::Result<()> {
        if self.outgoing.encoder.is_some() {
            self.encode(&[], Then::End)?;
        }
        let trailers = self.outgoing.trailers.take();
        match &mut self.writing {
            Writing::H1(_, reply) => reply.end(trailers.as_deref())?,
            #[cfg(feature = "http2")]
            Writing::H2(_, live, reply) => reply.end(live, trailers.map(|trailers| *trailers))?,
        }
        self.writing.flush(&self.seat)
    }

    fn encode(&mut self, bytes: &[u8], then: Then) -> io::Result<()> {
        let (writing, seat) = (&mut self.writing, &self.seat);
        self.outgoing
            .encode(bytes, then, |coded| writing.write(seat, coded))
    }
}

impl Write for BodyWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.encode(bytes, Then::More)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.outgoing.encoder.is_some() {
            self.encode(&[], Then::Flush)?;
        }
        self.writing.flush(&self.seat)
    }
}

impl fmt::Debug for BodyWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyWriter").finish_non_exhaustive()
    }
}

//! A request in two parts, for two threads: its body, and the way of its response.
//!
//! ```text
//!   Request --split--> BodyReader   stays on the handler's thread, whose seat has its time limits
//!                      Responder    may go to another thread, which gets a seat for its own ones
//! ```

use crate::exchange::read_in_time;
use crate::h1::body::Incoming;
use crate::h1::reply::Reply;
#[cfg(feature = "http2")]
use crate::h2;
use crate::input::Input;
use crate::limits::watch::Seat;
use crate::outgoing::{Outgoing, Then};
use crate::request::Request;
use crate::response::Response;
use crate::shared::Shared;
use crate::stream::Stream;
use std::fmt;
use std::io::{self, Read, Write};

/// The body of a request, in either protocol.
pub(crate) enum Reading<'r> {
    H1(&'r Stream, &'r mut Input, &'r mut Incoming),
    #[cfg(feature = "http2")]
    H2(&'r h2::Common, &'r mut h2::Incoming),
}

/// The way of its response. The calls take the seat of the thread that makes them.
pub(crate) enum Writing<'r> {
    H1(&'r Stream, &'r mut Reply),
    #[cfg(feature = "http2")]
    H2(&'r h2::Common, &'r h2::Live, &'r mut h2::Reply),
}

/// The two directions, the seat of the handler's thread, and where the other one gets its own.
pub(crate) type Split<'r> = (Reading<'r>, Writing<'r>, &'r Seat, &'r Shared);

impl Request {
    /// Splits the request into its body and the way of its response, for two threads: so a handler
    /// reads and writes at once, however much the client sends before it reads. (One thread that
    /// does both in turn waits for ever, if the client waits as well.)
    ///
    /// # Errors
    /// If the client has asked to be told that it may [send the body][100], and is gone.
    ///
    /// [100]: https://www.rfc-editor.org/rfc/rfc9110#name-expect
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Response, Server};
    /// use std::io::{self, Read, Write};
    /// use std::sync::mpsc;
    /// let server = Server::new().post("/shout", |request: &mut Request| -> io::Result<()> {
    ///     let (mut body, responder) = request.split()?;
    ///     let (send, words) = mpsc::sync_channel::<Vec<u8>>(1);
    ///     pirn::thread::scope(|scope| {
    ///         let answer = scope.spawn(move || -> io::Result<()> {
    ///             let mut answer = responder.respond(Response::ok())?;
    ///             for word in words {
    ///                 answer.write_all(&word.to_ascii_uppercase())?;
    ///                 answer.flush()?;
    ///             }
    ///             answer.end()
    ///         });
    ///         let mut piece = [0; 1024];
    ///         loop {
    ///             match body.read(&mut piece)? {
    ///                 0 => break,
    ///                 count => drop(send.send(piece[..count].to_vec())),
    ///             }
    ///         }
    ///         drop(send);
    ///         answer.join().expect("no panic")
    ///     })
    /// });
    /// assert_eq!(server.client().post("/shout", "hello").text(), "HELLO");
    /// ```
    pub fn split(&mut self) -> io::Result<(BodyReader<'_>, Responder<'_>)> {
        let (reading, writing, seat, shared) = self.exchange.split()?;
        let outgoing = &mut self.outgoing;
        let responder = Responder {
            outgoing,
            writing,
            shared,
            beside: seat.number(),
        };
        Ok((BodyReader { reading, seat }, responder))
    }
}

impl Writing<'_> {
    fn begin(&mut self, seat: &Seat, response: &Response) -> io::Result<()> {
        match self {
            Writing::H1(_, reply) => reply.begin(seat, response),
            #[cfg(feature = "http2")]
            Writing::H2(common, live, reply) => {
                reply.begin(h2::Way::new(common, live, seat), response)
            }
        }
    }

    fn write(&mut self, seat: &Seat, bytes: &[u8]) -> io::Result<()> {
        match self {
            Writing::H1(stream, reply) => reply.write(stream, seat, bytes),
            #[cfg(feature = "http2")]
            Writing::H2(common, live, reply) => {
                reply.write(h2::Way::new(common, live, seat), bytes)
            }
        }
    }

    fn flush(&mut self, seat: &Seat) -> io::Result<()> {
        match self {
            Writing::H1(stream, reply) => reply.flush(stream, seat),
            #[cfg(feature = "http2")]
            Writing::H2(common, live, reply) => reply.flush(h2::Way::new(common, live, seat)),
        }
    }
}

/// The body of a request that has been [split](Request::split). It stays on the handler's
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

/// The way of the response to a request that has been [split](Request::split).
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
    /// [`Request::respond`] does. This thread is then interrupted if the
    /// client takes the body too slowly.
    ///
    /// # Errors
    /// If there has been a response, or this one is informational.
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

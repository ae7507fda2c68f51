//! A request and its answer below [`Request`](crate::Request), in whatever protocol.

use crate::h1::body::Incoming;
use crate::h1::connection::Connection;
use crate::h1::reply::Reply;
#[cfg(feature = "http2")]
use crate::h2;
use crate::input::Input;
use crate::limits::watch::Seat;
use crate::response::Response;
use crate::shared::Shared;
use crate::stream::Stream;
use http::HeaderMap;
use std::io;
use std::net::SocketAddr;

/// Where a request comes from, and its answer goes to. The calls of both protocols are the same.
pub(crate) enum Exchange {
    H1(Box<Connection>),
    #[cfg(feature = "http2")]
    H2(Box<h2::Stream>),
}

/// Calls a method of whichever it is, or looks at a field.
macro_rules! either {
    ($exchange:expr, $one:ident => $call:expr) => {
        match $exchange {
            Exchange::H1($one) => $call,
            #[cfg(feature = "http2")]
            Exchange::H2($one) => $call,
        }
    };
}

impl From<Box<Connection>> for Exchange {
    fn from(connection: Box<Connection>) -> Exchange {
        Exchange::H1(connection)
    }
}

impl From<Exchange> for Box<Connection> {
    /// Gives the connection back that a request has come by.
    fn from(exchange: Exchange) -> Box<Connection> {
        match exchange {
            Exchange::H1(connection) => connection,
            #[cfg(feature = "http2")]
            Exchange::H2(_) => unreachable!("a request does not change its protocol"),
        }
    }
}

#[cfg(feature = "http2")]
impl From<Box<h2::Stream>> for Exchange {
    fn from(stream: Box<h2::Stream>) -> Exchange {
        Exchange::H2(stream)
    }
}

#[cfg(feature = "http2")]
impl From<Exchange> for Box<h2::Stream> {
    /// Gives the stream back that a request has come by.
    fn from(exchange: Exchange) -> Box<h2::Stream> {
        match exchange {
            Exchange::H2(stream) => stream,
            Exchange::H1(_) => unreachable!("a request does not change its protocol"),
        }
    }
}

impl Exchange {
    pub(crate) fn seat(&self) -> &Seat {
        either!(self, one => &one.seat)
    }

    pub(crate) fn shared(&self) -> &Shared {
        either!(self, one => one.shared())
    }

    /// Reads bytes of the request's body.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(self, one => one.read(buffer))
    }

    /// Sets how many more bytes the body may have.
    pub(crate) fn allow_body(&mut self, bytes: u64) {
        either!(self, one => one.incoming.allow(bytes));
    }

    /// Returns how many bytes of the body are to come, if that is known.
    pub(crate) fn body_left(&self) -> Option<u64> {
        either!(self, one => one.incoming.left())
    }

    /// Returns the fields after the body, once that has been read.
    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        either!(self, one => one.incoming.trailers())
    }

    /// Sends the head of an answer whose body is written afterwards.
    ///
    /// # Errors
    /// If there has been an answer.
    pub(crate) fn begin_answer(&mut self, response: &Response) -> io::Result<()> {
        either!(self, one => one.begin_answer(response))
    }

    pub(crate) fn has_answered(&self) -> bool {
        either!(self, one => one.has_answered())
    }

    /// Writes bytes of the answer's body.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        either!(self, one => one.write(bytes))
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        either!(self, one => one.flush())
    }

    /// Sends what the client may wait for, and returns the two directions, for a thread each.
    pub(crate) fn split(&mut self) -> io::Result<Split<'_>> {
        either!(self, one => one.begin_read()?);
        Ok(match self {
            Exchange::H1(one) => {
                one.settle_keep_alive();
                let reading = Reading::H1(&one.stream, &mut one.input, &mut one.incoming);
                let writing = Writing::H1(&one.stream, &mut one.reply);
                (reading, writing, &one.seat, &one.shared)
            }
            #[cfg(feature = "http2")]
            Exchange::H2(one) => {
                let h2::Stream {
                    place,
                    live,
                    seat,
                    incoming,
                    reply,
                    ..
                } = &mut **one;
                let common = place.common();
                let reading = Reading::H2(common, incoming);
                (
                    reading,
                    Writing::H2(common, live, reply),
                    seat,
                    common.shared(),
                )
            }
        })
    }

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Exchange::H1(connection) => connection.stream.peer(),
            #[cfg(feature = "http2")]
            Exchange::H2(stream) => stream.peer().address,
        }
    }

    pub(crate) fn is_secure(&self) -> bool {
        match self {
            Exchange::H1(connection) => connection.stream.is_secure(),
            #[cfg(feature = "http2")]
            Exchange::H2(stream) => stream.peer().is_secure,
        }
    }

    /// Returns the name that the client has asked for by TLS.
    #[cfg(feature = "tls")]
    pub(crate) fn server_name(&self) -> Option<String> {
        match self {
            Exchange::H1(connection) => connection.stream.tls()?.server_name(),
            #[cfg(feature = "http2")]
            Exchange::H2(stream) => stream.peer().server_name.clone(),
        }
    }

    /// Returns the client's certificate.
    #[cfg(feature = "tls")]
    pub(crate) fn client_certificate(&self) -> Option<rustls::pki_types::CertificateDer<'static>> {
        match self {
            Exchange::H1(connection) => connection.stream.tls()?.client_certificate(),
            #[cfg(feature = "http2")]
            Exchange::H2(stream) => stream.peer().certificate.clone(),
        }
    }
}

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

impl Writing<'_> {
    pub(crate) fn begin(&mut self, seat: &Seat, response: &Response) -> io::Result<()> {
        match self {
            Writing::H1(_, reply) => reply.begin(seat, response),
            #[cfg(feature = "http2")]
            Writing::H2(common, live, reply) => {
                reply.begin(h2::Way::new(common, live, seat), response)
            }
        }
    }

    pub(crate) fn write(&mut self, seat: &Seat, bytes: &[u8]) -> io::Result<()> {
        match self {
            Writing::H1(stream, reply) => reply.write(stream, seat, bytes),
            #[cfg(feature = "http2")]
            Writing::H2(common, live, reply) => {
                reply.write(h2::Way::new(common, live, seat), bytes)
            }
        }
    }

    pub(crate) fn flush(&mut self, seat: &Seat) -> io::Result<()> {
        match self {
            Writing::H1(stream, reply) => reply.flush(stream, seat),
            #[cfg(feature = "http2")]
            Writing::H2(common, live, reply) => reply.flush(h2::Way::new(common, live, seat)),
        }
    }
}

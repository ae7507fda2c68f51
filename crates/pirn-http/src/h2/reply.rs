//! The answer to a request, on its way. It knows nothing of the request's body, which another
//! thread may read meanwhile.

use super::head;
use super::live::Live;
use super::stream::Common;
use crate::fields::{NO_TRAILERS, remove_all};
use crate::limits::watch::{Limit, Seat};
use crate::response::{Response, has_no_body};
use crate::transfer;
use ::h2::ext::Protocol;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use std::io;

/// How many bytes are collected before they are sent, and are read of a reader at once.
pub(super) const PIECE: usize = 16 * 1024;

/// How much of the answer's body may follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Body {
    /// Nothing, whatever is written: the stream has ended.
    Omitted,
    /// So many bytes.
    Left(u64),
    Open,
}

/// How much of the answer has been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// Nothing.
    None,
    Begun(Body),
}

/// The way to the client, for the thread that has this seat.
#[derive(Clone, Copy)]
pub(crate) struct Way<'s> {
    common: &'s Common,
    live: &'s Live,
    seat: &'s Seat,
}

impl<'s> Way<'s> {
    pub(crate) fn new(common: &'s Common, live: &'s Live, seat: &'s Seat) -> Way<'s> {
        Way { common, live, seat }
    }
}

/// See the module's documentation.
pub(crate) struct Reply {
    pub(super) is_head: bool,
    /// The client asks for another protocol.
    pub(super) is_extended: bool,
    pub(super) answer: Answer,
    /// Bytes of the body that have been written and not been sent.
    collected: Vec<u8>,
}

impl Reply {
    pub(super) fn new(request: &Parts) -> Reply {
        Reply {
            is_head: request.method == Method::HEAD,
            is_extended: request.extensions.get::<Protocol>().is_some(),
            answer: Answer::None,
            collected: Vec::new(),
        }
    }

    /// Sends the head of an answer whose body is written afterwards.
    pub(crate) fn begin(&mut self, way: Way<'_>, response: &Response) -> io::Result<()> {
        if self.answer != Answer::None {
            return Err(transfer::has_responded());
        }
        let no_body = has_no_body(response.status);
        let length = response.body.announced().filter(|_| !no_body);
        let body = match length {
            _ if no_body || self.is_head => Body::Omitted,
            Some(length) => Body::Left(length),
            None => Body::Open,
        };
        self.send_head(way, response, length, body)
    }

    pub(super) fn send_head(
        &mut self,
        way: Way<'_>,
        response: &Response,
        length: Option<u64>,
        body: Body,
    ) -> io::Result<()> {
        let mut head = head::answer(response, length);
        if self.is_extended && head.status().is_success() {
            // Of success the client would think that the protocol changes.
            *head.status_mut() = StatusCode::NOT_IMPLEMENTED;
        }
        way.live.send_head(head, body == Body::Omitted)?;
        self.answer = Answer::Begun(body);
        way.common.begin_body(way.seat);
        Ok(())
    }

    /// Writes bytes of the body.
    pub(crate) fn write(&mut self, way: Way<'_>, bytes: &[u8]) -> io::Result<()> {
        match self.answer {
            Answer::None => return Err(io::ErrorKind::InvalidInput.into()),
            Answer::Begun(Body::Omitted) => return Ok(()),
            Answer::Begun(_) => self.count(bytes.len())?,
        }
        if self.collected.len() + bytes.len() <= PIECE {
            self.collected.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush(way)?;
        match bytes.len() <= PIECE {
            true => self.collected.extend_from_slice(bytes),
            false => send_bytes(way, Bytes::copy_from_slice(bytes))?,
        }
        Ok(())
    }

    /// Sends what has been collected.
    pub(crate) fn flush(&mut self, way: Way<'_>) -> io::Result<()> {
        match std::mem::take(&mut self.collected) {
            none if none.is_empty() => Ok(()),
            collected => send_bytes(way, collected.into()),
        }
    }

    /// Sends the end of the body. What is written after it is left out.
    ///
    /// # Errors
    /// If the stream is broken, or there were fewer bytes than the head has announced.
    pub(crate) fn end(&mut self, live: &Live, trailers: Option<HeaderMap>) -> io::Result<()> {
        match self.answer {
            Answer::None | Answer::Begun(Body::Omitted) => return Ok(()),
            Answer::Begun(Body::Left(1..)) => return Err(transfer::too_short()),
            Answer::Begun(Body::Left(0) | Body::Open) => {}
        }
        self.answer = Answer::Begun(Body::Omitted);
        let rest = Bytes::from(std::mem::take(&mut self.collected));
        match trailers {
            None => live.with_body(|body| body.send_data(rest, true)),
            Some(mut trailers) => live.with_body(|body| {
                remove_all(&NO_TRAILERS, &mut trailers);
                remove_all(&head::LEFT_OUT, &mut trailers);
                body.send_data(rest, false)?;
                body.send_trailers(trailers)
            }),
        }
    }

    /// Counts bytes of the body.
    ///
    /// # Errors
    /// If they are more than the head has announced.
    fn count(&mut self, bytes: usize) -> io::Result<()> {
        if let Answer::Begun(Body::Left(left)) = &mut self.answer {
            transfer::take_off(left, bytes)?;
        }
        Ok(())
    }

    pub(super) fn send_counted(&mut self, way: Way<'_>, bytes: Bytes) -> io::Result<()> {
        self.count(bytes.len())?;
        send_bytes(way, bytes)
    }
}

/// Sends bytes of the body, which have been counted, as fast as the client's window opens.
fn send_bytes(way: Way<'_>, mut bytes: Bytes) -> io::Result<()> {
    while !bytes.is_empty() {
        let room = wait_for_room(way, bytes.len())?;
        let piece = bytes.split_to(room.min(bytes.len()));
        way.seat.progress(piece.len());
        way.common.note_moved(piece.len());
        way.live.with_body(|body| body.send_data(piece, false))?;
    }
    Ok(())
}

/// Waits until the client takes bytes of the body. Returns how many.
fn wait_for_room(Way { common, live, seat }: Way<'_>, wanted: usize) -> io::Result<usize> {
    if let Some(room) = live.room(wanted) {
        return Ok(room);
    }
    let room = common.patiently(seat, Limit::Write, || live.wait_for_room());
    seat.no_limit();
    room
}

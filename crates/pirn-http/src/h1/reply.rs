//! The answer to the present request, on its way. It knows nothing of the request's body, which
//! another thread may read meanwhile.

use super::output::{Asked, Body, Length, Output};
use crate::limits::watch::Seat;
use crate::response::{Response, has_no_body};
use crate::stream::Stream;
use crate::transfer;
use http::HeaderMap;
use std::io;

/// How many bytes are written at once, and read at once from a reader such as a file: 32 system
/// calls per MiB. With 16 KiB there were 96, which took a third more of a processor.
///
/// The kernel's `sendfile` would take less than half. But it sends what the file has when the
/// client takes it: of a file that is cut off or overwritten meanwhile, a client got zeros or other
/// bytes, in an answer that looks complete.
pub(super) const PIECE: usize = 64 * 1024;

/// How much of the answer has been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Nothing.
    None,
    /// The head, and this part of the body is left to send.
    Begun(Body),
}

/// See the module's documentation.
pub(crate) struct Reply {
    pub(super) output: Output,
    pub(super) answer: Answer,
    pub(super) asked: Asked,
}

impl Reply {
    pub(super) fn new() -> Reply {
        Reply {
            output: Output::default(),
            answer: Answer::None,
            asked: Asked::NOTHING,
        }
    }

    /// Sends the head of an answer whose body is written afterwards.
    pub(crate) fn begin(&mut self, seat: &Seat, response: &Response) -> io::Result<()> {
        if self.answer != Answer::None {
            return Err(transfer::has_responded());
        }
        let length = match response.body.announced() {
            _ if has_no_body(response.status) => Length::None,
            None => Length::Unknown,
            Some(length) => Length::Known(length),
        };
        self.send_head(seat, response, length);
        Ok(())
    }

    pub(super) fn send_head(&mut self, seat: &Seat, response: &Response, length: Length) {
        let body = self
            .output
            .head(&self.asked, response.status, &response.headers, length);
        if body == Body::UntilClose {
            self.asked.keep_alive = false;
        }
        self.answer = Answer::Begun(body);
        seat.begin_body();
    }

    /// Writes bytes of the body.
    pub(crate) fn write(&mut self, stream: &Stream, seat: &Seat, bytes: &[u8]) -> io::Result<()> {
        let Answer::Begun(mut body) = self.answer else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            let offered = self.offer(stream, seat, &mut body, rest)?;
            if offered > 0 {
                rest = &rest[offered..];
                continue;
            }
            // Each piece has a time limit of its own: one for all would be too short for a large
            // body.
            let (piece, more) = rest.split_at(rest.len().min(PIECE));
            rest = more;
            let waits = !self.output.has_room(piece.len());
            let mut write = || self.output.body(stream, &mut body, piece);
            let result = match waits {
                true => transfer::write_in_time(seat, piece.len(), write),
                false => {
                    seat.note(piece.len());
                    write()
                }
            };
            self.answer = Answer::Begun(body);
            sent(stream, seat, result)?;
        }
        Ok(())
    }

    /// Writes as many bytes of a body as the kernel takes without a wait, if the body is larger
    /// than a piece. Returns their number.
    fn offer(
        &mut self,
        stream: &Stream,
        seat: &Seat,
        body: &mut Body,
        rest: &[u8],
    ) -> io::Result<usize> {
        if rest.len() <= PIECE {
            return Ok(0);
        }
        let result = self.output.offer(stream, body, rest);
        self.answer = Answer::Begun(*body);
        let count = *result.as_ref().unwrap_or(&0);
        seat.note(count);
        sent(stream, seat, result.map(drop))?;
        Ok(count)
    }

    /// Sends what has been written.
    pub(crate) fn flush(&mut self, stream: &Stream, seat: &Seat) -> io::Result<()> {
        let flush = || self.output.flush(stream);
        let result = transfer::write_in_time(seat, 0, flush);
        sent(stream, seat, result)
    }

    /// Adds the end of the body. What is written after it is left out.
    ///
    /// # Errors
    /// If there were fewer bytes than the head has announced.
    pub(crate) fn end(&mut self, trailers: Option<&HeaderMap>) -> io::Result<()> {
        if let Answer::Begun(body) = self.answer {
            self.output.end(body, trailers)?;
            self.answer = Answer::Begun(Body::Omitted);
        }
        Ok(())
    }
}

/// Sees to it that nothing is kept for a client that reads too slowly.
fn sent(stream: &Stream, seat: &Seat, result: io::Result<()>) -> io::Result<()> {
    if result.is_err() && seat.has_expired() {
        stream.reset_when_closed();
    }
    result
}

//! The body of a request, as it comes.

use super::chunked::Chunked;
use super::framing::Framing;
use crate::input::Input;
use crate::stream::{Stream, at_most};
use crate::transfer::too_large;
use http::HeaderMap;
use std::io;

/// How many bytes of a body that no handler has read are read to keep the connection.
const DRAINED: u64 = 64 * 1024;

#[derive(Debug)]
enum Rest {
    Length(u64),
    Chunked(Chunked),
}

/// A request's body whose end has not been read.
#[derive(Debug)]
pub(crate) struct Incoming {
    rest: Rest,
    /// How many bytes the handler may still get.
    allowed: u64,
    /// The client waits for `100 Continue`.
    continues: bool,
    /// The client has sent a malformed body, or has stopped sending: reads fail from now on.
    broken: bool,
}

impl Incoming {
    /// Returns the body of a request with this framing, of which `limit` bytes are allowed.
    pub(crate) fn new(framing: Framing, limit: u64, continues: bool) -> Incoming {
        Incoming {
            rest: match framing {
                Framing::Length(length) => Rest::Length(length),
                Framing::Chunked => Rest::Chunked(Chunked::new()),
            },
            allowed: limit,
            continues: continues && framing != Framing::Length(0),
            broken: false,
        }
    }

    /// Returns whether all has been read.
    pub(crate) fn is_over(&self) -> bool {
        match &self.rest {
            Rest::Length(left) => *left == 0,
            Rest::Chunked(chunked) => chunked.is_over(),
        }
    }

    /// Returns whether nothing more can be read, though not all has been.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Returns how many bytes are left, if that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        match &self.rest {
            Rest::Length(left) => Some(*left),
            Rest::Chunked(chunked) => chunked.is_over().then_some(0),
        }
    }

    /// Returns whether the server can find the next request by reading the rest of this body.
    pub(crate) fn can_be_drained(&self) -> bool {
        self.is_over() || (self.left().is_some() && self.may_be_drained())
    }

    /// Returns whether it is worth trying.
    fn may_be_drained(&self) -> bool {
        // A client that still waits for `100 Continue` may send the body or not.
        !self.broken && !self.continues && self.left().is_none_or(|left| left <= DRAINED)
    }

    /// Sets how many more bytes are allowed.
    pub(crate) fn allow(&mut self, bytes: u64) {
        self.allowed = bytes;
    }

    /// Returns the fields after a body in chunks, once all has been read.
    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        match &self.rest {
            Rest::Length(_) => None,
            Rest::Chunked(chunked) => chunked.trailers(),
        }
    }

    /// Returns whether the client waits for `100 Continue`, and notes that it has got it.
    pub(crate) fn take_continue(&mut self) -> bool {
        std::mem::take(&mut self.continues)
    }

    /// Reads bytes into `buffer`; zero: there are no more, or the buffer has no room.
    ///
    /// # Errors
    /// If reading fails, the client sends too much, or something that is no body.
    pub(crate) fn read(
        &mut self,
        input: &mut Input,
        stream: &Stream,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        if self.is_over() || buffer.is_empty() {
            return Ok(0);
        }
        if self.broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.left().is_some_and(|left| left > self.allowed) || self.allowed == 0 {
            return self.read_beyond(input, stream);
        }
        let result = self.read_some(input, stream, at_most(buffer, self.allowed));
        match result {
            Ok(count) => self.allowed -= count as u64,
            Err(_) => self.broken = true,
        }
        result
    }

    /// Reads where the handler may get no more bytes: only the body's end is not an error.
    #[cold]
    fn read_beyond(&mut self, input: &mut Input, stream: &Stream) -> io::Result<usize> {
        let more = match self.left() {
            Some(_) => Ok(1),
            None => self.read_some(input, stream, &mut [0]),
        };
        if !matches!(more, Ok(0)) {
            self.broken = true;
            more?;
            return Err(too_large());
        }
        Ok(0)
    }

    fn read_some(
        &mut self,
        input: &mut Input,
        stream: &Stream,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        match &mut self.rest {
            Rest::Length(left) => {
                let count = input.read_announced(stream, buffer, *left)?;
                *left -= count as u64;
                Ok(count)
            }
            Rest::Chunked(chunked) => chunked.read(input, stream, buffer),
        }
    }

    /// Discards the bytes of the body that have come, if its length is known: the handler has
    /// returned without reading them.
    pub(crate) fn skip_arrived(&mut self, input: &mut Input) {
        if self.may_be_drained()
            && let Rest::Length(left) = &mut self.rest
        {
            let here = input.unused().len();
            let count = usize::try_from(*left).map_or(here, |left| left.min(here));
            input.consume(count);
            *left -= count as u64;
        }
    }

    /// Reads the bytes that the handler has not read, if they are few and the client sends them, so
    /// that the server finds the next request. Returns whether it can.
    pub(crate) fn drain(&mut self, input: &mut Input, stream: &Stream) -> bool {
        if self.is_over() {
            return true;
        }
        if !self.may_be_drained() {
            return false;
        }
        let mut drained = 0;
        let mut buffer = [0; 1024];
        while !self.is_over() && drained < DRAINED {
            match self.read_some(input, stream, &mut buffer) {
                Ok(count) => drained += count as u64,
                Err(_) => return false,
            }
        }
        self.is_over()
    }
}

#[cfg(test)]
mod tests {
    use super::{Framing, Incoming, Input};

    /// Skips the part of a body that has come. Returns how much is missing then, and the input.
    fn skipped(length: u64, expects_continue: bool, here: &'static str) -> (Option<u64>, String) {
        let mut input = Input::of(here);
        let mut incoming = Incoming::new(Framing::Length(length), 100_000, expects_continue);
        incoming.skip_arrived(&mut input);
        let unused = String::from_utf8(input.unused().to_vec()).unwrap();
        (incoming.left(), unused)
    }

    #[test]
    fn of_a_body_that_nobody_wants_only_what_is_there_is_skipped() {
        assert_eq!(
            skipped(5, false, "GET /GET /next"),
            (Some(0), "GET /next".into())
        );
        assert_eq!(skipped(5, false, "GE"), (Some(3), String::new()));
        assert_eq!(skipped(5, false, ""), (Some(5), String::new()));
        assert_eq!(
            skipped(0, false, "GET /next"),
            (Some(0), "GET /next".into())
        );
        // Much is not read for the sake of the next request; whether this will come is not known.
        assert_eq!(skipped(65_537, false, "GE"), (Some(65_537), "GE".into()));
        assert_eq!(skipped(5, true, "GET /"), (Some(5), "GET /".into()));
    }
}

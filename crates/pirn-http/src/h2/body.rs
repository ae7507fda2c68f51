//! The body of a request, as it comes.

use super::{broken, wait_for};
use crate::fields::{NO_TRAILERS, remove_all};
use crate::transfer::too_large;
use ::h2::RecvStream;
use bytes::{Buf, Bytes};
use http::header::{CONTENT_LENGTH, HeaderMap};
use http::request::Parts;
use std::io;

/// A request's body whose end has not been read.
pub(crate) struct Incoming {
    stream: RecvStream,
    /// The part of the present frame that the handler has still to read.
    piece: Bytes,
    /// How many bytes of the window that frame takes: the client gets them back when it is read.
    taken: usize,
    /// How many bytes are to come, if that has been announced. h2 holds the client to it.
    announced: Option<u64>,
    /// How many bytes the handler may still get.
    allowed: u64,
    is_over: bool,
    /// The client has reset the stream, or sent too much: nothing more can be read.
    is_broken: bool,
    trailers: Option<HeaderMap>,
}

impl Incoming {
    /// Returns the body of a request, of which `limit` bytes are allowed.
    pub(super) fn new(stream: RecvStream, parts: &Parts, limit: u64) -> Incoming {
        let announced = parts.headers.get(CONTENT_LENGTH);
        Incoming {
            piece: Bytes::new(),
            taken: 0,
            announced: announced.and_then(|value| value.to_str().ok()?.parse().ok()),
            allowed: limit,
            is_over: stream.is_end_stream(),
            is_broken: false,
            trailers: None,
            stream,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns how many bytes are left, if that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        match self.is_over {
            true => Some(0),
            false => self.announced,
        }
    }

    /// Sets how many more bytes are allowed.
    pub(crate) fn allow(&mut self, bytes: u64) {
        self.allowed = bytes;
    }

    /// Returns the fields after the body, once all has been read.
    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    /// Reads bytes into `buffer`; zero: there are no more, or the buffer has no room.
    ///
    /// # Errors
    /// If the stream is broken, the thread is interrupted, or the client sends too much.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_over || buffer.is_empty() {
            return Ok(0);
        }
        if self.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let result = self.read_some(buffer);
        // An interrupt has ended the wait only.
        let interrupt = Some(rustix::io::Errno::CANCELED.raw_os_error());
        self.is_broken = result
            .as_ref()
            .is_err_and(|error| error.raw_os_error() != interrupt);
        result
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.announced.is_some_and(|left| left > self.allowed) {
            return Err(too_large());
        }
        if self.piece.is_empty() && !self.receive()? {
            self.is_over = true;
            return Ok(0);
        }
        let allowed = usize::try_from(self.allowed).unwrap_or(usize::MAX);
        let count = self.piece.len().min(buffer.len()).min(allowed);
        if count == 0 {
            return Err(too_large());
        }
        self.piece.copy_to_slice(&mut buffer[..count]);
        self.allowed -= count as u64;
        self.announced = self.announced.map(|left| left.saturating_sub(count as u64));
        if self.piece.is_empty() {
            self.give_back();
        }
        Ok(count)
    }

    /// Waits until the client sends no more, and lets it send no more than it may already.
    pub(super) fn skip(&mut self) {
        while let Ok(Some(Ok(_))) = wait_for(self.stream.data()) {}
    }

    /// Lets the client send as many bytes more as have been read.
    fn give_back(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        let window = self.stream.flow_control();
        let _ = window.release_capacity(taken); // The stream may have been reset.
    }

    /// Waits for the next piece. Returns whether there is one.
    fn receive(&mut self) -> io::Result<bool> {
        while self.piece.is_empty() {
            match wait_for(self.stream.data())? {
                Some(Ok(piece)) => (self.taken, self.piece) = (piece.len(), piece),
                Some(Err(error)) => return Err(broken(error)),
                None => {
                    self.trailers = wait_for(self.stream.trailers())?.map_err(broken)?;
                    if let Some(trailers) = &mut self.trailers {
                        remove_all(&NO_TRAILERS, trailers);
                    }
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

//! The bytes that have come from a client and have not been used.
//!
//! ```text
//!   bytes  [ used | unused | room ]
//!                ^start   ^bytes.len()
//! ```
//!
//! A connection that waits for its next request has no unused bytes, and at most [`CHUNK`] bytes of
//! room: what was larger is given back.

use crate::stream::{Stream, at_most, retry};
use std::io;

/// How many bytes are read at once while there are none. They are on the thread's stack, of which a
/// connection that waits has only one page.
const CHUNK: usize = 1024;

/// How many bytes are read at once where there is more to come.
const MORE: usize = 16 * 1024;

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
}

impl Input {
    /// Returns the unused bytes.
    #[inline]
    pub(crate) fn unused(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Returns whether there are no unused bytes.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// Uses the first `count` of the unused bytes.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.bytes.len());
    }

    /// Reads more bytes. Returns their number; zero: the client has sent all that it will send.
    ///
    /// # Errors
    /// If reading fails. A signal's handler is no failure.
    pub(crate) fn fill(&mut self, stream: &Stream) -> io::Result<usize> {
        match self.is_empty() {
            true => self.fill_empty(stream),
            false => self.fill_more(stream),
        }
    }

    fn fill_empty(&mut self, stream: &Stream) -> io::Result<usize> {
        self.start = 0;
        self.bytes.clear();
        if self.bytes.capacity() > CHUNK {
            self.bytes = Vec::new();
        }
        let mut chunk = [0; CHUNK];
        let count = retry(|| stream.read(&mut chunk))?;
        self.bytes.extend_from_slice(&chunk[..count]);
        Ok(count)
    }

    #[cold]
    fn fill_more(&mut self, stream: &Stream) -> io::Result<usize> {
        self.bytes.drain(..self.start);
        self.start = 0;
        let length = self.bytes.len();
        self.bytes.resize(length + MORE, 0);
        let result = retry(|| stream.read(&mut self.bytes[length..]));
        self.bytes.truncate(length + *result.as_ref().unwrap_or(&0));
        result
    }

    /// Reads body bytes into `buffer`: unused ones first, then directly from the stream.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub(crate) fn read(&mut self, stream: &Stream, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_empty() {
            return retry(|| stream.read(buffer));
        }
        let count = self.unused().len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.unused()[..count]);
        self.consume(count);
        Ok(count)
    }

    /// Reads some of the `left` bytes that have been announced, of which there is at least one.
    /// Returns their number, which is zero only if `buffer` has no room.
    ///
    /// # Errors
    /// As [`fill`](Self::fill), or if the client sends no more.
    pub(crate) fn read_announced(
        &mut self,
        stream: &Stream,
        buffer: &mut [u8],
        left: u64,
    ) -> io::Result<usize> {
        match self.read(stream, at_most(buffer, left))? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }
}

//! The bytes that have come from a client and have not been used.
//!
//! They are shared: the fields of a request's head are parts of them. A connection that waits for
//! its next request has none, and no memory for them. So what the allocator gives to the next
//! request has just been used by another one, and is in the processor's cache.

use crate::socket::retry;
use crate::stream::{Stream, at_most};
use crate::transfer::ended_early;
use bytes::{Buf, Bytes};
use std::io;

/// How many bytes are read at once while there are no unused bytes. They are read onto the thread's
/// stack, of which a connection that waits has only one page.
const CHUNK: usize = 1024;

/// How many bytes are read at once behind unused bytes.
const MORE: usize = 16 * 1024;

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Input(Bytes);

impl Input {
    #[cfg(test)]
    pub(crate) fn of(text: &'static str) -> Input {
        Input(Bytes::from_static(text.as_bytes()))
    }

    /// Returns the unused bytes.
    #[inline]
    pub(crate) fn unused(&self) -> &[u8] {
        &self.0
    }

    /// Returns whether there are no unused bytes.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Uses the first `count` of the unused bytes.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        drop(self.take(count));
    }

    /// Uses the first `count` of the unused bytes, and returns them.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Bytes {
        match count == self.0.len() {
            true => std::mem::take(&mut self.0),
            false => self.0.split_to(count),
        }
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
        let mut chunk = [0; CHUNK];
        let count = retry(|| stream.read(&mut chunk))?;
        self.0 = Bytes::copy_from_slice(&chunk[..count]);
        Ok(count)
    }

    #[cold]
    fn fill_more(&mut self, stream: &Stream) -> io::Result<usize> {
        let length = self.0.len();
        let mut bytes = Vec::with_capacity(length + MORE);
        bytes.extend_from_slice(&self.0);
        bytes.resize(length + MORE, 0);
        let count = retry(|| stream.read(&mut bytes[length..]))?;
        bytes.truncate(length + count);
        self.0 = bytes.into();
        Ok(count)
    }

    /// Reads body bytes into `buffer`: unused ones first, then directly from the stream.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub(crate) fn read(&mut self, stream: &Stream, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_empty() {
            return retry(|| stream.read(buffer));
        }
        let count = self.0.len().min(buffer.len());
        self.0.copy_to_slice(&mut buffer[..count]);
        if self.0.is_empty() {
            self.0 = Bytes::new(); // Gives the memory back.
        }
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
            0 => Err(ended_early()),
            count => Ok(count),
        }
    }
}

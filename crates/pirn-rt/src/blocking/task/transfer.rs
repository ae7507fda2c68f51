//! Reads and writes of tasks.

use super::{TaskPlace, error};
use crate::blocking::fds::Entry;
use crate::sys::{Errno, SysResult};
use core::task::{Poll, Waker};
use std::io;

impl TaskPlace {
    /// Polls a read of `wanted` bytes, as [`poll`](Self::poll) does. After a read of a TCP stream
    /// that gave fewer, waits for an event before the next attempt.
    pub fn poll_read(
        &mut self,
        fd: i32,
        waker: &Waker,
        wanted: usize,
        mut attempt: impl FnMut() -> SysResult,
    ) -> Poll<io::Result<usize>> {
        let attempt = |entry: &Entry, since| {
            if entry.readiness.is_emptied(since) && entry.is_stream() {
                return None;
            }
            let result = unless_it_would_block(attempt());
            if let Some(Ok(done @ 1..)) = result
                && done < wanted
                && entry.is_stream()
            {
                entry.readiness.note_emptied(since);
            }
            result
        };
        self.poll_since(fd, waker, attempt).map(flatten)
    }

    /// Polls a write, as [`poll`](Self::poll) does.
    pub fn poll_write(
        &mut self,
        fd: i32,
        waker: &Waker,
        mut attempt: impl FnMut() -> SysResult,
    ) -> Poll<io::Result<usize>> {
        self.poll(fd, waker, || unless_it_would_block(attempt()))
            .map(flatten)
    }
}

fn unless_it_would_block(result: SysResult) -> Option<SysResult> {
    (result != Err(Errno(libc::EAGAIN))).then_some(result)
}

fn flatten(result: io::Result<SysResult>) -> io::Result<usize> {
    result?.map_err(error)
}

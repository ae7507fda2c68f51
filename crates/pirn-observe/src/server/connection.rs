//! One client: its request, and the answer.
//!
//! ```text
//! request   pirn 1 COMMAND key=value …\n      at most 4 KiB, within two seconds
//! answer    ok KIND\n  and then the payload, to the end of the stream
//!           error TEXT\n
//! ```
//!
//! An answer that breaks off has no other sign than its own format's.

use super::commands::{self, Command};
use super::files::Fd;
use super::request::{LONGEST, Request};
use super::sockets;
use pirn_rt::sys::Errno;
use pirn_rt::time::Deadline;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A client has this long to send its request.
const PATIENCE_SECONDS: i64 = 2;
/// A client has this long to take what it is sent, each time.
const SLOWEST_SECONDS: i64 = 5;
/// Bytes that are sent at once: so that limits are looked at often.
const PIECE: usize = 64 << 10;

/// Serves a client to the end.
pub(super) fn serve(client: &Fd) {
    let mut buffer = Vec::with_capacity(512);
    match receive(client, &mut buffer) {
        Ok(()) => answer(client, &buffer),
        Err(Some(reason)) => refuse(client, reason),
        Err(None) => {} // It has hung up, or is another listener of this process that looks.
    }
}

/// Tells a client why it gets no answer. Does not wait for it.
pub(super) fn refuse(client: &Fd, reason: &str) {
    let line = format!("error {}\n", reason.replace('\n', " "));
    let _ = sockets::limit(client, libc::SO_SNDTIMEO, 1);
    let _ = sockets::send(client, line.as_bytes());
}

/// Receives a request.
///
/// # Errors
/// The reason to tell the client, if it is still there.
fn receive(client: &Fd, line: &mut Vec<u8>) -> Result<(), Option<&'static str>> {
    const TOO_SLOW: Option<&str> = Some("no request within two seconds");
    let deadline = Deadline::after_nanos(PATIENCE_SECONDS as u64 * 1_000_000_000);
    sockets::limit(client, libc::SO_RCVTIMEO, PATIENCE_SECONDS).map_err(|_| None)?;
    let mut chunk = [0; 512];
    while !line.ends_with(b"\n") {
        if deadline.has_passed() {
            return Err(TOO_SLOW);
        }
        match sockets::receive(client, &mut chunk) {
            Ok(0) => return Err(None),
            Ok(len) => line.extend_from_slice(&chunk[..len]),
            Err(Errno(libc::EAGAIN)) => return Err(TOO_SLOW),
            Err(_) => return Err(None),
        }
        if line.len() > LONGEST {
            return Err(Some("the request is too long"));
        }
    }
    line.pop();
    Ok(())
}

/// Answers the request in this line.
fn answer(client: &Fd, line: &[u8]) {
    let parsed = Request::parse(line).and_then(|request| {
        let command = commands::find(&request)?;
        Ok((request, command))
    });
    let (request, command) = match parsed {
        Ok(found) => found,
        Err(refusal) => return refuse(client, &refusal.0),
    };
    if sockets::limit(client, libc::SO_SNDTIMEO, SLOWEST_SECONDS).is_err() {
        return;
    }
    let mut out = Answer::new(client, command);
    // What panics here must not end the process, nor leave a client without a word.
    let run = || (command.run)(&request, &mut out).and_then(|()| out.finish());
    let error = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("{} panicked: this is a bug of pirn", command.name),
    };
    if !out.begun {
        refuse(client, &error);
    }
}

/// The answer to a command, which begins with `ok KIND`.
struct Answer<'a> {
    client: &'a Fd,
    /// What has not been sent yet.
    buffer: Vec<u8>,
    /// How long the client may take to read all, in nanoseconds.
    limit: Option<u64>,
    /// When that is over: from when there was something to read on.
    deadline: Option<Deadline>,
    /// Something has been sent.
    begun: bool,
}

impl<'a> Answer<'a> {
    fn new(client: &'a Fd, command: &Command) -> Answer<'a> {
        Answer {
            client,
            buffer: format!("ok {}\n", command.kind).into_bytes(),
            limit: command.seconds.map(|seconds| seconds * 1_000_000_000),
            deadline: None,
            begun: false,
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let limit = self.limit;
        let begin = || Deadline::after_timeout(limit);
        let deadline = *self.deadline.get_or_insert_with(begin);
        while !bytes.is_empty() {
            if deadline.has_passed() {
                return Err(too_slow());
            }
            let piece = &bytes[..bytes.len().min(PIECE)];
            match sockets::send(self.client, piece) {
                Ok(len) => {
                    self.begun = true;
                    bytes = &bytes[len..];
                }
                Err(Errno(libc::EAGAIN)) => return Err(too_slow()),
                Err(Errno(error)) => return Err(io::Error::from_raw_os_error(error)),
            }
        }
        Ok(())
    }

    /// Sends the rest, at least the first line.
    fn finish(&mut self) -> io::Result<()> {
        let rest = core::mem::take(&mut self.buffer);
        self.send(&rest)
    }
}

fn too_slow() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the tool reads too slowly")
}

impl Write for Answer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE {
            self.finish()?;
            self.buffer.reserve(PIECE);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.finish()
    }
}

#[cfg(test)]
mod tests;

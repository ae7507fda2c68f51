//! What happens to a response between its handler and the connection: the changes that middleware
//! has asked for, and the coding of its body.

use crate::response::Response;
use http::{HeaderMap, StatusCode};
use std::io;

/// How a handler gives its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Given {
    /// It returns it, body and all.
    Returned,
    /// It sends the head, and then writes the body.
    Pushed,
}

/// How a body goes on behind some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    More,
    /// The source may wait: the client gets the bytes so far.
    Flush,
    End,
}

/// A coding of bodies, such as `gzip`.
pub(crate) trait Encoder: Send {
    /// Adds the coded form of `bytes` to `out`.
    fn encode(&mut self, bytes: &[u8], then: Then, out: &mut Vec<u8>) -> io::Result<()>;
}

/// A change to a response before it is sent. Where the body is pushed, it may have that coded.
pub(crate) type Change = Box<dyn FnOnce(&mut Response, Given) -> Option<Box<dyn Encoder>> + Send>;

/// The response to one request, as far as it is known.
#[derive(Default)]
pub(crate) struct Outgoing {
    changes: Vec<Change>,
    pub(crate) encoder: Option<Box<dyn Encoder>>,
    /// The status of a pushed response.
    pub(crate) status: Option<StatusCode>,
    /// Something of a pushed response may not have been sent.
    pub(crate) is_kept: bool,
    /// How many bytes of a pushed body have been written, coded.
    pub(crate) written: u64,
    /// The fields after the body.
    pub(crate) trailers: Option<Box<HeaderMap>>,
}

impl Outgoing {
    /// Adds a change. It is made before those that have been added before it, as the middleware
    /// that adds it is inside of theirs.
    pub(crate) fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Makes all changes, once.
    pub(crate) fn apply(&mut self, response: &mut Response, given: Given) {
        while let Some(change) = self.changes.pop() {
            if let Some(encoder) = change(response, given) {
                self.encoder = Some(encoder);
            }
        }
    }

    /// Sends the head of a response, by `begin`, whose body is then written.
    ///
    /// # Errors
    /// If there has been a response, or this one is informational, or has a cause: as the body of a
    /// 500 that is begun here, what the handler writes would hide that it has failed.
    pub(crate) fn begin(
        &mut self,
        mut response: Response,
        begin: impl FnOnce(&Response) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(cause) = response.cause {
            return Err(io::Error::other(cause));
        }
        if self.status.is_none() {
            self.apply(&mut response, Given::Pushed);
        }
        if response.status.is_informational() {
            let why = "an informational response is not the answer to a request";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        begin(&response)?;
        self.status = Some(response.status);
        self.is_kept = true;
        Ok(())
    }

    /// Writes bytes of the body by `write`, coded if it is.
    pub(crate) fn encode(
        &mut self,
        bytes: &[u8],
        then: Then,
        write: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(encoder) = &mut self.encoder else {
            self.written += bytes.len() as u64;
            return write(bytes);
        };
        let mut coded = Vec::new();
        encoder.encode(bytes, then, &mut coded)?;
        if then == Then::End {
            self.encoder = None;
        }
        self.written += coded.len() as u64;
        write(&coded)
    }
}

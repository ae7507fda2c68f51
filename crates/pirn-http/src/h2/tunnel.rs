//! A stream that carries another protocol than HTTP, in both directions: RFC 8441.

use super::body::Incoming;
use super::live::Live;
use super::stream::Common;
use crate::poison::locked;
use crate::stream::Tunnel as _;
use ::h2::Reason;
use bytes::Bytes;
use pirn::scope;
use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// See the module's documentation. One thread may read while another writes.
pub(super) struct Tunnel {
    common: Arc<Common>,
    live: Arc<Live>,
    incoming: Mutex<Incoming>,
    /// Held while bytes are written, so that one thread waits for room.
    writing: Mutex<()>,
}

impl Tunnel {
    pub(super) fn new(common: Arc<Common>, live: Arc<Live>, mut incoming: Incoming) -> Tunnel {
        incoming.allow(u64::MAX);
        Tunnel {
            common,
            live,
            incoming: Mutex::new(incoming),
            writing: Mutex::default(),
        }
    }
}

impl crate::stream::Tunnel for Tunnel {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        locked(&self.incoming).read(buffer)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let _order = locked(&self.writing);
        let room = match self.live.room(bytes.len()) {
            Some(room) => room,
            None => {
                let longest = self.common.shared.watch.timeouts.idle;
                let wait = || self.live.wait_for_room();
                match Instant::now().checked_add(longest) {
                    Some(end) => scope::with_deadline(end, wait)?,
                    None => wait()?,
                }
            }
        };
        let count = room.min(bytes.len());
        let piece = Bytes::copy_from_slice(&bytes[..count]);
        self.live.with_body(|body| body.send_data(piece, false))?;
        Ok(count)
    }

    fn shutdown(&self, how: Shutdown) {
        // Failure: the stream has ended.
        let _ = self.live.with_body(|body| match how {
            Shutdown::Write => body.send_data(Bytes::new(), true),
            Shutdown::Read => Ok(()),
            Shutdown::Both => {
                body.send_reset(Reason::CANCEL);
                Ok(())
            }
        });
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.common.peer.address
    }

    fn is_secure(&self) -> bool {
        self.common.peer.is_secure
    }
}

impl Drop for Tunnel {
    /// Without an end, h2 would drop the bytes that were written and not sent.
    fn drop(&mut self) {
        self.shutdown(Shutdown::Write);
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").finish_non_exhaustive()
    }
}

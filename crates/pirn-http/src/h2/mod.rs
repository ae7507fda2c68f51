//! HTTP/2 (RFC 9113). The crate `h2` provides the frames, the windows and the defences.
//!
//! ```text
//!   driver   the connection's thread: runs h2, begins streams, notices which are gone
//!     |  scope
//!     +-- stream   a thread for each: reads the request, calls the handler, writes the answer
//!     +-- stream
//! ```
//!
//! A stream's thread waits by `block_on` for bytes of its request and for room in the client's
//! window; so flow control reaches from the handler to the client, in both directions. Its data
//! goes through h2's buffers, and the driver moves it to and from the socket.
//!
//! A stream for which the client asks another protocol, such as a WebSocket's, becomes a
//! [`tunnel`].
//!
//! When a client resets a stream, or the connection ends, the driver notices that ([`live::Live`])
//! and interrupts the handler.

mod body;
mod driver;
mod head;
mod live;
mod reply;
mod stream;
mod suspects;
mod tunnel;
mod wire;

pub(crate) use body::Incoming;
pub(crate) use driver::serve;
pub(crate) use live::Live;
pub(crate) use reply::{Reply, Way};
#[cfg(feature = "websocket")]
pub(crate) use stream::not_here;
pub(crate) use stream::{Common, Stream, read};
pub(crate) use wire::Transport;

/// Waits for a future on the thread of a stream.
///
/// # Errors
/// `ECANCELED` if the thread is interrupted, as from all else that waits.
fn wait_for<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    pirn::block_on_interruptible(future).map_err(|_| rustix::io::Errno::CANCELED.into())
}

/// Returns what a handler gets when its stream is broken.
fn broken(error: ::h2::Error) -> std::io::Error {
    match error.get_io() {
        Some(error) => error.kind().into(),
        None => std::io::Error::new(std::io::ErrorKind::BrokenPipe, error),
    }
}

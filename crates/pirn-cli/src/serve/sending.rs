//! The body of a request on its way to the other server, which may answer before it has all of it.
//!
//! One more thread waits for the answer meanwhile. If that says that no more of the body is wanted,
//! no more is sent (RFC 9112, section 9.5); others are passed on when the body has been sent.
//!
//! ```text
//!   sender   SENDING --has sent, or cannot--> SENT       the other thread is interrupted
//!   waiter   SENDING --has enough---------> ENOUGH       the sender is interrupted
//! ```

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use pirn::thread;
use pirn_http::Request;

use super::answer::{Head, Incoming};
use super::origin::Connection;
use crate::retry::retry;

/// How many bytes of a body are passed on at once.
const PIECE: usize = 32 * 1024;
/// The room before them for the size of a chunk.
const ROOM: usize = 10;

const SENDING: u8 = 0;
const SENT: u8 = 1;
const ENOUGH: u8 = 2;

/// How the sending of a body has ended.
pub(super) enum Sent {
    Whole,
    /// There is an answer already. The body has been sent as a whole, or has not.
    Answered(Head, bool),
    /// The client's end of it fails.
    Unread(io::Error),
    /// The other server takes no more.
    Broken(io::Error),
}

/// Sends the body of a request.
pub(super) fn send_body(
    request: &mut Request,
    connection: &Connection,
    incoming: &mut Incoming,
) -> Sent {
    let (state, sender) = (AtomicU8::new(SENDING), thread::current());
    let ends_as = |end| state.compare_exchange(SENDING, end, SeqCst, SeqCst).is_ok();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let answer = until_answered(connection, incoming);
            if answer.as_ref().is_ok_and(Head::has_enough) && ends_as(ENOUGH) {
                sender.interrupt();
            }
            answer
        });
        let copied = copy(request, connection);
        let is_sent = ends_as(SENT);
        // Of a server that takes no more, an answer may be on its way, or the end is.
        let is_gone = matches!(&copied, Err(Sent::Broken(error)) if !is_late(error));
        if is_sent && !is_gone {
            waiter.thread().interrupt();
        }
        let answer = waiter.join();
        if !is_sent {
            thread::take_interrupt(); // It has come: the other thread has ended.
        }
        match (answer, copied) {
            (Ok(Ok(head)), copied) => Sent::Answered(head, is_sent && copied.is_ok()),
            (_, Err(why)) => why,
            // It has ended in the middle of a head, say.
            (Ok(Err(error)), Ok(())) if !thread::is_interrupt(&error) => Sent::Broken(error),
            (_, Ok(())) => Sent::Whole,
        }
    })
}

fn is_late(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || thread::is_interrupt(error)
}

/// Waits for an answer, for as long as the body takes.
fn until_answered(connection: &Connection, incoming: &mut Incoming) -> io::Result<Head> {
    loop {
        match incoming.head(connection) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
}

fn copy(request: &mut Request, mut connection: &Connection) -> Result<(), Sent> {
    let is_chunked = request.body_left().is_none();
    let mut piece = vec![0; ROOM + PIECE + 2];
    loop {
        let count = retry(|| request.read(&mut piece[ROOM..ROOM + PIECE]));
        let count = count.map_err(Sent::Unread)?;
        let mut framed = ROOM..ROOM + count;
        if is_chunked {
            let size = format!("{count:x}\r\n");
            framed = ROOM - size.len()..framed.end + 2;
            piece[framed.start..ROOM].copy_from_slice(size.as_bytes());
            piece[framed.end - 2..framed.end].copy_from_slice(b"\r\n"); // That of the last one, too.
        }
        connection.write_all(&piece[framed]).map_err(Sent::Broken)?;
        if count == 0 {
            return Ok(());
        }
    }
}

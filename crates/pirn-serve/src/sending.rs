//! The body of a request on its way to the other server, which may answer before it has all of it.
//!
//! One more thread waits for the answer meanwhile. If that says that no more of the body is wanted,
//! no more is sent (RFC 9112, section 9.5); any other answer is passed on by that thread, so that
//! both directions flow at once. An answer that comes after the body is left to the first thread.
//!
//! ```text
//!   sender   SENDING --has sent, or cannot--> SENT       the other thread is interrupted
//!   waiter   SENDING --has enough-----------> ENOUGH     the sender is interrupted
//!   waiter   SENDING --has an answer--------> BOTH       it passes that on
//!   sender   BOTH    --has sent-------------> SENT       it waits for the other thread
//!   sender   BOTH    --cannot---------------> SENT       the other thread is interrupted
//!   waiter   BOTH    --cannot, or the connection ends with the answer--> ENOUGH     the same
//! ```

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use pirn::scope::{JoinError, TaskScope};
use pirn::thread;
use pirn_http::{Request, Responder};

use crate::answer::{Head, Incoming};
use crate::origin::Connection;
use crate::proxy::{Failure, is_late};
use crate::retry::retry;

/// How many bytes of a body are passed on at once.
const PIECE: usize = 32 * 1024;
/// The room before them for the size of a chunk.
const ROOM: usize = 10;

const SENDING: u8 = 0;
const SENT: u8 = 1;
const ENOUGH: u8 = 2;
const BOTH: u8 = 3;

/// An answer of the other server.
pub(super) enum Answered {
    /// Its head has come. All of the request has been sent, or has not.
    Head(Head, bool),
    /// It has been passed on. The connection can take another request, or cannot.
    PassedOn(bool),
}

/// What the other server has sent while the proxy sent the body.
enum Came {
    Nothing(io::Error),
    Head(Head),
    /// An answer, which has been passed on; `pass` says how.
    Answer(Result<bool, Failure>),
}

/// Sends the body of a request. Returns the answer, if that has come meanwhile. `pass` passes on
/// one that comes before the body's end, and returns whether the connection can take another
/// request then.
pub(super) fn send_body(
    request: &mut Request,
    connection: &Connection,
    incoming: &mut Incoming,
    pass: impl FnOnce(Head, &mut Incoming, Responder<'_>) -> Result<bool, Failure> + Send,
) -> Result<Option<Answered>, Failure> {
    let is_chunked = request.body_left().is_none();
    let (mut body, responder) = request.split().map_err(Failure::OfClient)?;
    let (state, sender) = (AtomicU8::new(SENDING), thread::current());
    let becomes = |from, to| state.compare_exchange(from, to, SeqCst, SeqCst).is_ok();
    let (mut came, mut copied, mut before) = (None, Ok(()), SENDING);
    let waiting = || {
        let head = match incoming.head(connection) {
            Ok(head) => head,
            Err(error) => return Came::Nothing(error),
        };
        if head.has_enough() && becomes(SENDING, ENOUGH) {
            sender.interrupt();
        }
        if !becomes(SENDING, BOTH) {
            return Came::Head(head);
        }
        let closes = head.closes;
        let passed = pass(head, incoming, responder);
        if (closes || passed.is_err()) && becomes(BOTH, ENOUGH) {
            sender.interrupt();
        }
        Came::Answer(passed)
    };
    let joined = pirn::scope::open(|scope: TaskScope<'_, '_, _>| {
        let came = &mut came;
        scope.fork(move || {
            *came = Some(waiting());
            Ok::<_, Infallible>(())
        });
        copied = connection.while_sending(|| copy(&mut body, is_chunked, connection));
        before = state.swap(SENT, SeqCst);
        // Of a server that takes no more, an answer may be on its way, or the end is.
        let is_gone = matches!(&copied, Err(Failure::NoAnswer(error)) if !is_late(error));
        match before {
            SENDING if !is_gone => Err(JoinError::Cancelled),
            BOTH if !is_gone && copied.is_err() => Err(JoinError::Cancelled),
            _ => scope
                .join()
                .map(drop)
                .map_err(|unjoined| unjoined.into_error()),
        }
    });
    if let Err(JoinError::Panicked(panic)) = joined {
        panic.resume();
    }
    if before == ENOUGH {
        thread::take_interrupt(); // It has come: the other thread has ended.
    }
    outcome(came, copied, before != ENOUGH)
}

/// `is_copied`: the sender has ended by itself.
fn outcome(
    came: Option<Came>,
    copied: Result<(), Failure>,
    is_copied: bool,
) -> Result<Option<Answered>, Failure> {
    match (came, copied) {
        (Some(Came::Head(head)), copied) => {
            Ok(Some(Answered::Head(head, is_copied && copied.is_ok())))
        }
        (Some(Came::Answer(passed)), _) if !is_copied => {
            passed.map(|_| Some(Answered::PassedOn(false)))
        }
        (Some(Came::Answer(_)), Err(why @ Failure::OfClient(_))) => Err(why),
        (Some(Came::Answer(Ok(is_clean))), copied) => {
            Ok(Some(Answered::PassedOn(is_clean && copied.is_ok())))
        }
        (Some(Came::Answer(Err(_))), Err(Failure::NoAnswer(error))) if is_late(&error) => {
            Err(Failure::NoAnswer(error))
        }
        (Some(Came::Answer(Err(why))), _) | (_, Err(why)) => Err(why),
        // It has ended in the middle of a head, say.
        (Some(Came::Nothing(error)), Ok(())) if !thread::is_interrupt(&error) => {
            Err(Failure::NoAnswer(error))
        }
        (_, Ok(())) => Ok(None),
    }
}

fn copy(
    body: &mut impl Read,
    is_chunked: bool,
    mut connection: &Connection,
) -> Result<(), Failure> {
    let mut piece = vec![0; ROOM + PIECE + 2];
    loop {
        let count = retry(|| body.read(&mut piece[ROOM..ROOM + PIECE]));
        let count = count.map_err(Failure::OfClient)?;
        let mut framed = ROOM..ROOM + count;
        if is_chunked {
            let size = format!("{count:x}\r\n");
            framed = ROOM - size.len()..framed.end + 2;
            piece[framed.start..ROOM].copy_from_slice(size.as_bytes());
            piece[framed.end - 2..framed.end].copy_from_slice(b"\r\n"); // Also ends the empty last chunk.
        }
        connection
            .write_all(&piece[framed])
            .map_err(Failure::NoAnswer)?;
        if count == 0 {
            return Ok(());
        }
    }
}

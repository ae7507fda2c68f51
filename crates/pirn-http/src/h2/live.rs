//! The way to the client of a stream: h2's handles for the answer, and the handler that is
//! interrupted when the stream ends. The stream's thread, or the threads of a
//! [tunnel](super::tunnel), share it with the connection's driver.

use super::{broken, wait_for};
use crate::limits::watch::Line;
use crate::poison::locked;
use ::h2::server::SendResponse;
use ::h2::{Reason, SendStream};
use bytes::Bytes;
use http::StatusCode;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};

/// What the driver knows of a stream whose thread runs.
pub(crate) struct Live {
    sending: Mutex<Sending>,
    line: Line,
    /// Notes the stream as a suspect.
    waker: Waker,
}

/// h2's handles for the answer. h2 keeps one waker for room in the window and for the stream's end;
/// so the driver may ask only while the stream's thread does not wait.
struct Sending {
    respond: SendResponse<Bytes>,
    /// The answer's body, once the head has been sent.
    body: Option<SendStream<Bytes>>,
    /// The stream's thread waits for room. If the stream ends, the wait fails.
    is_waiting: bool,
}

impl Sending {
    /// Returns whether the stream is gone. If not, the waker is called when that may change.
    fn is_gone(&mut self, waker: &Waker) -> bool {
        let mut context = Context::from_waker(waker);
        let polled = match &mut self.body {
            Some(body) => body.poll_reset(&mut context),
            None => self.respond.poll_reset(&mut context),
        };
        polled.is_ready()
    }

    /// Polls for room for bytes of the body.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let body = self.body.as_mut().ok_or_else(gone)?;
        loop {
            match body.capacity() {
                0 => {}
                room => return Poll::Ready(Ok(room)),
            }
            match ready!(body.poll_capacity(context)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(broken(error))),
                None => return Poll::Ready(Err(gone())),
            }
        }
    }
}

impl Live {
    pub(super) fn new(respond: SendResponse<Bytes>, line: Line, waker: Waker) -> Arc<Live> {
        let sending = Mutex::new(Sending {
            respond,
            body: None,
            is_waiting: false,
        });
        Arc::new(Live {
            sending,
            line,
            waker,
        })
    }

    /// Interrupts the handler if the stream is gone.
    pub(super) fn check(&self) {
        let is_gone = {
            let mut sending = locked(&self.sending);
            !sending.is_waiting && sending.is_gone(&self.waker)
        };
        if is_gone {
            self.hang_up();
        }
    }

    /// Notes that the stream is gone, and interrupts its handler.
    pub(super) fn hang_up(&self) {
        self.line.hang_up();
    }

    /// Returns how many of the `wanted` bytes of the body the client takes now; `None`: no byte.
    pub(super) fn room(&self, wanted: usize) -> Option<usize> {
        let mut sending = locked(&self.sending);
        if let Some(body) = &mut sending.body {
            body.reserve_capacity(wanted);
            if let room @ 1.. = body.capacity() {
                return Some(room);
            }
        }
        None
    }

    /// Waits until the client takes bytes of the body, for which there was no [room](Self::room).
    /// Returns how many. One thread waits at a time.
    pub(super) fn wait_for_room(&self) -> io::Result<usize> {
        locked(&self.sending).is_waiting = true;
        let room = wait_for(poll_fn(|context| locked(&self.sending).poll_room(context)));
        // h2 has replaced the waker for the stream's end with this wait's: `check` sets it again.
        locked(&self.sending).is_waiting = false;
        self.check();
        room?
    }

    /// Sends the head of the answer; `is_whole`: there is no body.
    pub(super) fn send_head(&self, head: http::Response<()>, is_whole: bool) -> io::Result<()> {
        let mut sending = locked(&self.sending);
        let sent = sending.respond.send_response(head, is_whole);
        sending.body = Some(sent.map_err(broken)?);
        Ok(())
    }

    /// Sends `100 Continue`.
    pub(super) fn go_on(&self) -> io::Result<()> {
        let mut head = http::Response::new(());
        *head.status_mut() = StatusCode::CONTINUE;
        let mut sending = locked(&self.sending);
        sending.respond.send_informational(head).map_err(broken)
    }

    /// Ends the stream: the answer is incomplete.
    pub(super) fn reset(&self) {
        locked(&self.sending)
            .respond
            .send_reset(Reason::INTERNAL_ERROR);
    }

    /// Does something with the body of the answer, whose head has been sent.
    pub(super) fn with_body(
        &self,
        send: impl FnOnce(&mut SendStream<Bytes>) -> Result<(), ::h2::Error>,
    ) -> io::Result<()> {
        match &mut locked(&self.sending).body {
            Some(body) => send(body).map_err(broken),
            None => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

//! An answer that is sent as soon as it is there, by the thread that gives it.
//!
//! Rejected: a task of the runtime that waits for it. That is one more wake-up per request, and has
//! the program's `Serialize` run on the thread that everything else of the node needs.

use crate::node::Shared;
use crate::poison::locked;
use crate::wire::encode;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use pirn::thread::Panic;
use pirn_actor::AskError;
use pirn_actor::error::Failure;
use pirn_actor::reply::Reply;
use serde::Serialize;
use std::sync::{Arc, Mutex};
use std::task::Wake;

struct Answering<R> {
    /// Until it has been given.
    reply: Mutex<Option<Reply<R>>>,
    to: String,
    shared: Arc<Shared>,
}

/// Has the answer to a request sent when the actor has given it.
pub(super) fn send_when_given<R>(reply: Reply<R>, to: String, shared: &Arc<Shared>)
where
    R: Serialize + Send + 'static,
{
    let answering = Answering {
        reply: Mutex::new(Some(reply)),
        to,
        shared: Arc::clone(shared),
    };
    Arc::new(answering).look();
}

impl<R: Serialize + Send + 'static> Answering<R> {
    /// Sends the answer, if it is there. Otherwise this is called again when it is.
    fn look(self: Arc<Self>) {
        let mut place = locked(&self.reply);
        let Some(reply) = place.as_mut() else {
            return;
        };
        let waker = Waker::from(Arc::clone(&self));
        let polled = Pin::new(reply).poll(&mut Context::from_waker(&waker));
        let Poll::Ready(answer) = polled else {
            return;
        };
        *place = None;
        drop(place);
        // What is written is dropped here, too: the actor is not to fail by that.
        let write = || answer.and_then(|answer| encode(&answer).map_err(AskError::Failed));
        let written = Panic::catch(write).unwrap_or_else(|_| {
            let failure = Failure::new("the answer panicked when it was dropped");
            Err(AskError::Failed(failure))
        });
        self.shared.respond(Some(self.to.clone()), written);
    }
}

impl<R: Serialize + Send + 'static> Wake for Answering<R> {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

//! How an actor tells the result to a thread that is no actor.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// A number that is set once, by an actor, and awaited by the thread that has made the actors.
#[derive(Clone, Default)]
pub struct Outcome(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    number: Option<u64>,
    waker: Option<Waker>,
}

impl Outcome {
    /// Sets the number, and wakes the thread that waits for it.
    pub fn set(&self, number: u64) {
        let mut state = self.state();
        state.number = Some(number);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics while it holds this")
    }
}

impl Future for Outcome {
    type Output = u64;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u64> {
        let mut state = self.state();
        match state.number {
            Some(number) => Poll::Ready(number),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

//! Streams that may be gone.
//!
//! h2 tells that a stream has changed by a waker, which it calls under its lock: what the change is
//! has to be asked later. So the waker notes the stream's number and wakes the driver, which asks.
//! It holds no handle of the stream: h2 keeps it in the stream, which would never be dropped.

use crate::poison::locked;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

/// The numbers of the streams to ask, and the driver's waker.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    numbers: Mutex<Vec<u32>>,
    driver: Mutex<Option<Waker>>,
}

impl Suspects {
    /// Has the driver woken from now on, until it is polled next.
    pub(super) fn register(&self, context: &Context<'_>) {
        let mut driver = locked(&self.driver);
        match &mut *driver {
            Some(waker) => waker.clone_from(context.waker()),
            None => *driver = Some(context.waker().clone()),
        }
    }

    pub(super) fn wake_driver(&self) {
        // Called outside of the lock: a waker is foreign code.
        let waker = locked(&self.driver).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn take(&self) -> Vec<u32> {
        std::mem::take(&mut *locked(&self.numbers))
    }

    /// Returns the waker that notes this stream.
    pub(super) fn waker(self: &Arc<Self>, number: u32) -> Waker {
        Arc::new(Signal {
            number,
            suspects: Arc::clone(self),
        })
        .into()
    }
}

struct Signal {
    number: u32,
    suspects: Arc<Suspects>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        locked(&self.suspects.numbers).push(self.number);
        self.suspects.wake_driver();
    }
}

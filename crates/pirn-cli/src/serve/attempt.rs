//! How far a request has come on its connection, which decides whether it may be sent again.
//!
//! A connection that was kept may be closed by the other server while a request is on its way to
//! it. Then the request has probably not been handled; if not a byte of an answer came, it may be
//! sent again on another connection, unless handling it twice would do harm (RFC 9112, section
//! 9.3.1). `ureq` does not say which connection it has used, so its transports are watched here.
//! Its trait for that may change with any of its versions; this file is all that uses it.

use std::cell::Cell;

use ureq::Error;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

/// How far a request has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attempt {
    /// Nothing has been sent.
    Begun,
    /// It is the first one on its connection.
    OnNew,
    /// Its connection was kept, and nothing of an answer has come.
    OnKept,
    /// Something of an answer has come.
    Answered,
}

thread_local! {
    /// That of the running thread, on which `ureq` sends and receives.
    static ATTEMPT: Cell<Attempt> = const { Cell::new(Attempt::Begun) };
}

/// Makes a request, and returns how far it has come.
pub(super) fn watch<R>(ask: impl FnOnce() -> R) -> (R, Attempt) {
    ATTEMPT.set(Attempt::Begun);
    let result = ask();
    (result, ATTEMPT.get())
}

/// The last link of a chain of connectors.
#[derive(Debug)]
pub(super) struct Watching;

impl<In: Transport> Connector<In> for Watching {
    type Out = Watched<In>;

    fn connect(&self, _: &ConnectionDetails, made: Option<In>) -> Result<Option<Self::Out>, Error> {
        Ok(made.map(|inner| Watched {
            inner,
            is_used: false,
        }))
    }
}

/// A connection, by whatever it is made.
#[derive(Debug)]
pub(super) struct Watched<T> {
    inner: T,
    /// Something has been received.
    is_used: bool,
}

impl<T: Transport> Transport for Watched<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        if ATTEMPT.get() == Attempt::Begun {
            ATTEMPT.set(match self.is_used {
                true => Attempt::OnKept,
                false => Attempt::OnNew,
            });
        }
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let has_come = self.inner.await_input(timeout)?;
        if has_come {
            self.is_used = true;
            ATTEMPT.set(Attempt::Answered);
        }
        Ok(has_come)
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}

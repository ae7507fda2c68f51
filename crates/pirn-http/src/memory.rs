//! A connection inside the process, for tests without sockets.

use crate::poison::locked;
use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How many bytes one direction holds before its writer waits: as much as a small socket buffer, so
/// that tests meet waiting writers.
const CAPACITY: usize = 64 * 1024;

/// One direction.
#[derive(Debug, Default)]
struct Way {
    state: Mutex<Flow>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Flow {
    bytes: VecDeque<u8>,
    /// No more comes.
    ended: bool,
    /// Nobody reads any more.
    abandoned: bool,
}

impl Way {
    fn lock(&self) -> MutexGuard<'_, Flow> {
        locked(&self.state)
    }

    fn wait<'a>(&self, flow: MutexGuard<'a, Flow>) -> MutexGuard<'a, Flow> {
        self.changed
            .wait(flow)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, buffer: &mut [u8]) -> usize {
        let mut flow = self.lock();
        while flow.bytes.is_empty() && !flow.ended && !flow.abandoned {
            flow = self.wait(flow);
        }
        let count = flow.bytes.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(flow.bytes.drain(..count)) {
            *to = from;
        }
        self.changed.notify_all();
        count
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut flow = self.lock();
        while flow.bytes.len() == CAPACITY && !flow.abandoned && !flow.ended {
            flow = self.wait(flow);
        }
        if flow.abandoned || flow.ended {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(CAPACITY - flow.bytes.len());
        flow.bytes.extend(&bytes[..count]);
        self.changed.notify_all();
        Ok(count)
    }

    fn change(&self, change: impl FnOnce(&mut Flow)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Pipe {
    incoming: Arc<Way>,
    outgoing: Arc<Way>,
}

/// Returns both ends of a connection.
pub(crate) fn pair() -> (Pipe, Pipe) {
    let [one, other] = [(); 2].map(|()| Arc::new(Way::default()));
    let first = Pipe {
        incoming: Arc::clone(&one),
        outgoing: Arc::clone(&other),
    };
    (
        first,
        Pipe {
            incoming: other,
            outgoing: one,
        },
    )
}

impl Pipe {
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.incoming.read(buffer))
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match bytes {
            [] => Ok(0),
            bytes => self.outgoing.write(bytes),
        }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) {
        if how != Shutdown::Read {
            self.outgoing.change(|flow| flow.ended = true);
        }
        if how != Shutdown::Write {
            self.incoming.change(|flow| flow.abandoned = true);
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.shutdown(Shutdown::Both);
    }
}

//! The users of one run: each is a thread with its own connection.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Client, Failure};
use crate::ramp::Ramp;
use crate::tally::Tally;
use crate::threads::Threads;

/// The number of users that connect at a time: half the length of a listener's queue.
const CONNECTING_AT_ONCE: usize = 64;

/// How much longer than the handler's delay a response may take before it counts as an error.
const PATIENCE: Duration = Duration::from_secs(30);

/// The load of one run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Users that are connected at the same time.
    pub users: usize,
    /// How long each request waits in its handler.
    pub delay: Duration,
    /// Requests of each user, one after the other.
    pub requests: u32,
}

impl Load {
    /// Returns the number of requests of all users.
    pub fn all_requests(&self) -> u64 {
        self.users as u64 * u64::from(self.requests)
    }
}

/// All users, and the data that they share.
pub struct Users {
    load: Load,
    servers: Vec<SocketAddr>,
    ramp: Arc<Ramp>,
    connected: AtomicUsize,
    turned_away: AtomicBool,
    started: OnceLock<Instant>,
    tally: Tally,
}

impl Users {
    /// Returns users who will put `load` on `servers`, each on one of them.
    pub fn new(load: Load, servers: Vec<SocketAddr>) -> Arc<Self> {
        Arc::new(Users {
            load,
            servers,
            ramp: Ramp::new(CONNECTING_AT_ONCE),
            connected: AtomicUsize::new(0),
            turned_away: AtomicBool::new(false),
            started: OnceLock::new(),
            tally: Tally::new(),
        })
    }

    /// Starts the users' threads and returns when all are connected and wait for [`go`](Self::go).
    ///
    /// If there is no room for a thread, on either side, the others go on: the second value is the
    /// reason why there are fewer users than requested.
    pub fn gather<T: Threads>(self: &Arc<Self>, threads: T) -> (Vec<T::Handle>, Option<String>) {
        let mut handles = Vec::with_capacity(self.load.users);
        let mut shortage = None;
        for index in 0..self.load.users {
            let entering = self.ramp.enter();
            if self.turned_away.load(Ordering::SeqCst) {
                break;
            }
            let users = Arc::clone(self);
            match threads.spawn(move || users.visit(index, entering)) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    shortage = Some(format!("a user's thread could not be started: {error}"));
                    break;
                }
            }
        }
        self.ramp.wait_until_empty();
        if shortage.is_none() && self.turned_away.load(Ordering::SeqCst) {
            shortage = Some("the server had no thread for a connection, and closed it".into());
        }
        (handles, shortage)
    }

    /// Lets the connected users make their requests.
    pub fn go(&self) {
        self.started.get_or_init(Instant::now);
    }

    /// Waits for all users to be done. Returns the time since [`go`](Self::go).
    pub fn join<T: Threads>(&self, handles: Vec<T::Handle>) -> Duration {
        for handle in handles {
            if let Err(payload) = T::join(handle) {
                self.tally.failed(&format!("panic: {}", message(&*payload)));
            }
        }
        self.started.wait().elapsed()
    }

    /// Returns how many users are, or were, connected.
    pub fn connected(&self) -> usize {
        self.connected.load(Ordering::SeqCst)
    }

    /// Returns whether the requests have begun.
    pub fn gone(&self) -> bool {
        self.started.get().is_some()
    }

    /// Returns the latencies and errors that the users have seen.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Runs one user. `entering` tells the ramp when the user is connected.
    fn visit(&self, index: usize, entering: crate::ramp::Entering) {
        let client = self.connect(index);
        drop(entering);
        let result = client.and_then(|client| match client {
            Some(client) => self.make_requests(index, client),
            None => Ok(()),
        });
        if let Err(failure) = result {
            self.tally.failed(&failure.to_string());
        }
    }

    /// Connects, and makes sure that the server has a thread for this connection; `None` if it has
    /// not: then it closes the connection.
    fn connect(&self, index: usize) -> Result<Option<Client>, Failure> {
        let server = self.servers[index % self.servers.len()];
        let mut client = Client::connect(server, self.load.delay + PATIENCE)?;
        match client.get("/health") {
            Ok(()) => {
                self.connected.fetch_add(1, Ordering::SeqCst);
                Ok(Some(client))
            }
            Err(Failure::Closed) => {
                self.turned_away.store(true, Ordering::SeqCst);
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Real users do not click in the same microsecond: the first requests are spread evenly over
    /// one delay of the handler.
    fn make_requests(&self, index: usize, mut client: Client) -> Result<(), Failure> {
        let started = self.started.wait();
        let offset = self
            .load
            .delay
            .mul_f64(index as f64 / self.load.users as f64);
        thread::sleep(offset.saturating_sub(started.elapsed()));
        for _ in 0..self.load.requests {
            let asked = Instant::now();
            client.get("/")?;
            self.tally.answered(asked.elapsed());
        }
        Ok(())
    }
}

/// Returns the message of a panic.
fn message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

#[cfg(test)]
mod tests;

//! The users of one run: each is a thread with a connection of its own.

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

/// How many users connect at a time: half the length of a listener's queue.
const CONNECTING_AT_ONCE: usize = 64;

/// How much longer than the handler's delay a response may take before it counts as an error.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many users do what.
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
    /// The requests of all users.
    pub fn all_requests(&self) -> u64 {
        self.users as u64 * u64::from(self.requests)
    }
}

/// All users, and what they share.
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
    /// Users who will put `load` on `servers`, each on one of them.
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
    /// Where there is no room for a thread, on either side, the others go on: the second value is
    /// the reason why there are fewer users than asked for.
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
            shortage = Some("the server could not start a thread for a connection".into());
        }
        (handles, shortage)
    }

    /// Lets the connected users make their requests.
    pub fn go(&self) {
        self.started.get_or_init(Instant::now);
    }

    /// Waits for all users to be done: the time since [`go`](Self::go).
    pub fn join<T: Threads>(&self, handles: Vec<T::Handle>) -> Duration {
        for handle in handles {
            if let Err(payload) = T::join(handle) {
                self.tally.failed(&format!("panic: {}", message(&*payload)));
            }
        }
        self.started.wait().elapsed()
    }

    /// How many are, or were, connected.
    pub fn connected(&self) -> usize {
        self.connected.load(Ordering::SeqCst)
    }

    /// Whether the requests have begun.
    pub fn gone(&self) -> bool {
        self.started.get().is_some()
    }

    /// What they have seen.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The life of one user. `_entering` tells the ramp when it is connected.
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

    /// Connects, and makes sure that the server has a thread for this connection; `None` where it
    /// has not.
    fn connect(&self, index: usize) -> Result<Option<Client>, Failure> {
        let server = self.servers[index % self.servers.len()];
        let mut client = Client::connect(server, self.load.delay + PATIENCE)?;
        match client.get("/health") {
            Ok(()) => {
                self.connected.fetch_add(1, Ordering::SeqCst);
                Ok(Some(client))
            }
            Err(Failure::TurnedAway) => {
                self.turned_away.store(true, Ordering::SeqCst);
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Users do not click in the same microsecond: their first requests are spread evenly over one
    /// delay of the handler.
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

/// What a panic said.
fn message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Server;
    use crate::threads::Platform;
    use std::io;
    use std::net::TcpListener;

    const LOAD: Load = Load {
        users: 10,
        delay: Duration::ZERO,
        requests: 4,
    };

    /// Platform threads of which only so many can be started.
    #[derive(Clone, Copy)]
    struct Few(&'static AtomicUsize);

    impl Few {
        fn new(left: usize) -> Self {
            Few(Box::leak(Box::new(AtomicUsize::new(left))))
        }
    }

    impl Threads for Few {
        const NAME: &'static str = "few threads";
        type Handle = thread::JoinHandle<()>;

        fn spawn(self, body: impl FnOnce() + Send + 'static) -> io::Result<Self::Handle> {
            let less_one = |left: usize| left.checked_sub(1);
            match self
                .0
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less_one)
            {
                Ok(_) => Platform.spawn(body),
                Err(_) => Err(io::Error::other("no more threads")),
            }
        }

        fn join(handle: Self::Handle) -> thread::Result<()> {
            handle.join()
        }
    }

    /// Puts `LOAD` on a server: the users, and why there were fewer of them.
    fn run<S: Threads, U: Threads>(for_server: S, for_users: U) -> (Arc<Users>, Option<String>) {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").unwrap());
        let server = Server::new(for_server, LOAD.delay);
        let acceptor = {
            let (server, listener) = (Arc::clone(&server), Arc::clone(&listener));
            thread::spawn(move || server.serve(&listener))
        };
        let users = Users::new(LOAD, vec![listener.local_addr().unwrap()]);
        let (handles, shortage) = users.gather(for_users);
        users.go();
        users.join::<U>(handles);
        server.stop(&listener).unwrap();
        acceptor.join().unwrap();
        (users, shortage)
    }

    #[test]
    fn all_users_get_all_their_answers() {
        let (users, shortage) = run(Platform, Platform);
        assert_eq!(shortage, None);
        assert_eq!(users.connected(), LOAD.users);
        assert_eq!(users.tally().answered_so_far(), LOAD.all_requests());
        assert_eq!(users.tally().errors().count, 0);
    }

    #[test]
    fn with_too_few_threads_for_users_the_others_go_on() {
        let (users, shortage) = run(Platform, Few::new(7));
        let said = "a user's thread could not be started: no more threads";
        assert_eq!(shortage.as_deref(), Some(said));
        assert_eq!(users.connected(), 7);
        assert_eq!(users.tally().answered_so_far(), 7 * 4);
        assert_eq!(users.tally().errors().count, 0);
    }

    #[test]
    fn with_too_few_threads_for_connections_the_others_go_on() {
        let (users, shortage) = run(Few::new(3), Platform);
        let said = "the server could not start a thread for a connection";
        assert_eq!(shortage.as_deref(), Some(said));
        assert_eq!(users.connected(), 3);
        assert_eq!(users.tally().answered_so_far(), 3 * 4);
        assert_eq!(users.tally().errors(), Default::default());
    }

    #[test]
    fn a_server_that_is_gone_is_an_error_of_each_user() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let users = Users::new(LOAD, vec![address]);
        let (handles, shortage) = users.gather(Platform);
        users.go();
        users.join::<Platform>(handles);
        assert_eq!((shortage, users.connected()), (None, 0));
        let errors = users.tally().errors();
        assert_eq!(errors.count, LOAD.users as u64);
        assert!(errors.first[0].0.starts_with("connect: "), "{errors:?}");
    }

    #[test]
    fn a_panic_of_a_user_is_an_error() {
        let users = Users::new(LOAD, Vec::new());
        users.go();
        let panics = Platform.spawn(|| panic!("(this panic is part of a test)"));
        users.join::<Platform>(vec![panics.unwrap()]);
        let expected = "panic: (this panic is part of a test)".to_owned();
        assert_eq!(users.tally().errors().first, [(expected, 1)]);
    }
}

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

/// Platform threads of which only this many can be started.
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

/// Puts `LOAD` on a server. Returns the users, and why there were fewer of them.
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

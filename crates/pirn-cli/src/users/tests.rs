use super::*;
use crate::server::{self, HELLO};
use crate::threads::Platform;
use pirn_http::Server;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

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
    const OPTION: Option<&'static str> = None;
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

    fn serve(self, server: Server) -> Server {
        Platform.serve(server)
    }

    fn join(handle: Self::Handle) -> thread::Result<()> {
        handle.join()
    }
}

/// Puts `LOAD` on a server. Returns the users, and why there were fewer of them.
fn run<U: Threads>(for_users: U, server: SocketAddr) -> (Arc<Users>, Option<String>) {
    let users = Users::new(LOAD, vec![server]);
    let (handles, shortage) = users.gather(for_users);
    users.go();
    users.join::<U>(handles);
    (users, shortage)
}

/// Puts `LOAD` on the server of the demo.
fn run_on_our_server<U: Threads>(for_users: U) -> (Arc<Users>, Option<String>) {
    let bound = server::new(Platform, LOAD.delay)
        .bind("127.0.0.1:0")
        .unwrap();
    let server = bound.start().unwrap();
    let result = run(for_users, server.local_addr().unwrap());
    assert_eq!(server.shutdown(), 0);
    result
}

/// Starts a server that answers on so many connections, and closes all others at once.
fn with_room_for(connections: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let stream = stream.unwrap();
            thread::spawn(move || answer(stream));
        }
        listener.incoming().for_each(drop);
    });
    address
}

fn answer(mut stream: TcpStream) {
    let length = HELLO.len();
    let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{HELLO}");
    while stream.read(&mut [0; 256]).unwrap() > 0 {
        stream.write_all(response.as_bytes()).unwrap();
    }
}

#[test]
fn all_users_get_all_their_answers() {
    let (users, shortage) = run_on_our_server(Platform);
    assert_eq!(shortage, None);
    assert_eq!(users.connected(), LOAD.users);
    assert_eq!(users.tally().answered_so_far(), LOAD.all_requests());
    assert_eq!(users.tally().errors().count, 0);
}

#[test]
fn with_too_few_threads_for_users_the_others_go_on() {
    let (users, shortage) = run_on_our_server(Few::new(7));
    let said = "a user's thread could not be started: no more threads";
    assert_eq!(shortage.as_deref(), Some(said));
    assert_eq!(users.connected(), 7);
    assert_eq!(users.tally().answered_so_far(), 7 * 4);
    assert_eq!(users.tally().errors().count, 0);
}

#[test]
fn where_a_server_closes_connections_the_others_go_on() {
    let (users, shortage) = run(Platform, with_room_for(3));
    let said = "the server had no thread for a connection, and closed it";
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

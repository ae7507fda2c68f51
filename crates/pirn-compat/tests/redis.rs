//! `redis` against a real server, on a Unix socket. Skipped, with a message, where there is no
//! `redis-server` to start.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use pirn::thread;
use pirn_compat::{self as common, Latch, THREADS, on_threads, skipped, watched};
use redis::{Client, Commands, Connection};
use tempfile::TempDir;

/// A Redis server of the test's own, which ends with it.
struct Server {
    guard: Child,
    client: Client,
    _directory: TempDir,
}

impl Server {
    /// Starts a server and waits until it accepts connections. Without `redis-server`, says that
    /// the test is skipped.
    fn start() -> Option<Server> {
        if let Err(error) = Command::new("redis-server").arg("--version").output() {
            skipped(&format!("cannot run redis-server: {error}"));
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("redis.sock");
        let mut guard = start_guarded(&socket, directory.path());
        let mut log = BufReader::new(guard.stdout.take().unwrap());
        let mut lines = String::new();
        // The socket exists once this line, the same since Redis 4, is in the log.
        while !lines.contains("eady to accept connections") {
            let length = log.read_line(&mut lines).unwrap();
            assert!(length > 0, "redis-server ended:\n{lines}");
        }
        thread::spawn(move || io::copy(&mut log, &mut io::sink()));
        let client = Client::open(format!("unix://{}", socket.display())).unwrap();
        Some(Server {
            guard,
            client,
            _directory: directory,
        })
    }

    fn connect(&self) -> Connection {
        self.client.get_connection().unwrap()
    }

    /// Waits until the server itself says that this many of its clients are blocked. It cannot be
    /// asked to tell when they are: asking again is the only way.
    fn wait_for_blocked_clients(&self, expected: usize) {
        let mut connection = self.connect();
        let wanted = format!("blocked_clients:{expected}\r\n");
        loop {
            let info: String = redis::cmd("INFO")
                .arg("clients")
                .query(&mut connection)
                .unwrap();
            if info.contains(&wanted) {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Starts a server and a shell that kills it, by its id, at the end of the shell's input: when
/// the test drops its end of that pipe, and when the test is aborted.
fn start_guarded(socket: &Path, directory: &Path) -> Child {
    Command::new("sh")
        .arg("-c")
        .arg(r#"redis-server "$@" & exec >/dev/null; read line; kill $!; wait $!"#)
        .args(["sh", "--port", "0", "--save", "", "--appendonly", "no"])
        .arg("--unixsocket")
        .arg(socket)
        .arg("--dir")
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        self.guard.wait().unwrap();
    }
}

#[watched]
fn all_threads_block_in_blpop() {
    let Some(server) = Server::start() else {
        return;
    };
    thread::scope(|scope| {
        let poppers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let reply: Option<(String, usize)> = redis::cmd("BLPOP")
                        .arg(&["queue", "0"])
                        .query(&mut server.connect())
                        .unwrap();
                    let (key, item) = reply.expect("BLPOP without a timeout");
                    assert_eq!(key, "queue");
                    item
                })
            })
            .collect();
        server.wait_for_blocked_clients(THREADS);
        let items: Vec<_> = (0..THREADS).collect();
        let _: usize = server.connect().rpush("queue", &items).unwrap();
        let mut popped: Vec<_> = poppers.into_iter().map(|p| p.join().unwrap()).collect();
        popped.sort_unstable();
        assert_eq!(popped, items);
    });
}

#[watched]
fn increments_and_transactions_add_up() {
    let Some(server) = Server::start() else {
        return;
    };
    const EACH: usize = 20;
    on_threads(THREADS, |index| {
        let mut connection = server.connect();
        for round in 0..EACH {
            let _: usize = connection.incr("counter", 1).unwrap();
            let (first, second): (usize, usize) = redis::pipe()
                .atomic()
                .incr("first", 1)
                .incr("second", 1)
                .query(&mut connection)
                .unwrap();
            assert_eq!(first, second);
            let _: usize = connection.hset("rounds", index, round + 1).unwrap();
        }
    });
    let mut connection = server.connect();
    let counters: (usize, usize, usize) = connection.mget(&["counter", "first", "second"]).unwrap();
    assert_eq!(counters, (THREADS * EACH, THREADS * EACH, THREADS * EACH));
    let rounds: Vec<usize> = connection.hvals("rounds").unwrap();
    assert_eq!(rounds, vec![EACH; THREADS]);
}

/// One connection, shared: the threads wait for each other on a mutex and for the server in turn.
#[watched]
fn threads_share_a_connection() {
    let Some(server) = Server::start() else {
        return;
    };
    let connection = Mutex::new(server.connect());
    on_threads(THREADS, |index| {
        for round in 0..10 {
            let value = index * 10 + round;
            let mut connection = connection.lock().unwrap();
            let _: () = connection.set("value", value).unwrap();
            let stored: usize = connection.get("value").unwrap();
            assert_eq!(stored, value);
        }
    });
}

#[watched]
fn published_messages_reach_all_subscribers() {
    let Some(server) = Server::start() else {
        return;
    };
    const MESSAGES: usize = 20;
    let subscribed = Latch::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut connection = server.connect();
                let mut subscription = connection.as_pubsub();
                subscription.subscribe("news").unwrap();
                subscribed.arrive();
                for number in 0..MESSAGES {
                    let message = subscription.get_message().unwrap();
                    assert_eq!(message.get_payload::<usize>().unwrap(), number);
                }
            });
        }
        subscribed.wait();
        let mut publisher = server.connect();
        for number in 0..MESSAGES {
            let receivers: usize = publisher.publish("news", number).unwrap();
            assert_eq!(receivers, THREADS);
        }
    });
}

#[watched]
fn read_timeouts_fire_for_all_threads() {
    let Some(server) = Server::start() else {
        return;
    };
    on_threads(THREADS, |_| {
        let mut connection = server.connect();
        let timeout = Duration::from_millis(50);
        connection.set_read_timeout(Some(timeout)).unwrap();
        let error = redis::cmd("BLPOP")
            .arg(&["nothing", "0"])
            .query::<()>(&mut connection)
            .unwrap_err();
        assert!(error.is_timeout(), "{error}");
    });
}

//! What the tests of the command share.

#![allow(dead_code, reason = "each test uses some of it")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The command, which is also a program with virtual threads: `pirn demo server`.
pub const PIRN: &str = env!("CARGO_BIN_EXE_pirn");

pub use pirn_testing::Watchdog;

/// Aborts the tests, and says which one hangs, if what this returns is not dropped in time.
pub fn watch(what: String) -> Watchdog {
    Watchdog::start(Duration::from_secs(120), move || eprintln!("hangs: {what}"))
}

/// A process that is ended with the test, which has to end in time.
pub struct Running {
    pub process: Child,
    _watchdog: Watchdog,
}

impl Running {
    /// Starts a command, and returns the first line that contains `last`.
    pub fn start(command: &mut Command, last: &str) -> (Running, String) {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let watchdog = watch(format!("{command:?}"));
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let running = Running {
            process,
            _watchdog: watchdog,
        };
        let mut lines = output.lines().map(Result::unwrap);
        let line = lines.find(|line| line.contains(last));
        let line = line.unwrap_or_else(|| panic!("{command:?} has ended"));
        (running, line)
    }

    pub fn pid(&self) -> String {
        self.process.id().to_string()
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.pid()]).status();
        assert!(sent.unwrap().success());
    }

    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The threads of `pirn demo server` beside those of its connections: one notices clients that hang
/// up, one looks after time limits, every 100 ms, and one accepts.
pub const OWN: usize = 3;

/// A server of the command, mostly `pirn demo server`, which listens.
pub struct Server {
    pub running: Running,
    pub address: String,
}

impl Server {
    pub fn start() -> Server {
        Server::start_by(&mut Command::new(PIRN))
    }

    /// Starts one with these variables in its environment.
    pub fn start_in(variables: &[(&str, &str)]) -> Server {
        Server::start_by(Command::new(PIRN).envs(variables.iter().copied()))
    }

    /// Starts one by a command that takes its arguments.
    pub fn start_by(command: &mut Command) -> Server {
        Server::start_with(command, &[])
    }

    /// The same with more arguments.
    pub fn start_with(command: &mut Command, more: &[&str]) -> Server {
        Server::of(command.args(["demo", "server", "127.0.0.1:0"]).args(more))
    }

    /// Starts a command that serves, whatever it is.
    pub fn of(command: &mut Command) -> Server {
        const SAYS: &str = "listening on http://";
        let (running, line) = Running::start(command, SAYS);
        let address = line.trim_end().strip_prefix(SAYS);
        Server {
            running,
            address: address.unwrap_or_else(|| panic!("{line}")).into(),
        }
    }

    pub fn pid(&self) -> String {
        self.running.pid()
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// Sends a request, and returns what comes back until the end.
    pub fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// Makes a request that is answered.
    pub fn greet(&self) {
        let response = self.ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert!(response.ends_with("\r\n\r\nHello, World!"), "{response}");
    }
}

/// A folder of a test's own, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let name = format!("{name}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

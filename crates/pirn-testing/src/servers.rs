//! Servers and other programs that a test starts, and ends with itself.

use crate::Watchdog;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Aborts the tests, and says which one hangs, if what this returns is not dropped in time.
pub fn watch(what: String) -> Watchdog {
    Watchdog::start(Duration::from_secs(120), move || eprintln!("hangs: {what}"))
}

/// A process that is ended with the test, which has to end in time.
pub struct Running {
    /// The process.
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

    /// Returns the number of the process.
    pub fn pid(&self) -> String {
        self.process.id().to_string()
    }

    /// Sends a signal, such as `-TERM`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.pid()]).status();
        assert!(sent.unwrap().success());
    }

    /// Ends the process at once.
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

/// A server that listens, and is ended with the test.
pub struct Server {
    /// Its process.
    pub running: Running,
    /// Where it listens.
    pub address: String,
}

impl Server {
    /// Starts a command that says where it serves.
    pub fn start(command: &mut Command) -> Server {
        const SAYS: &str = "listening on http://";
        let (running, line) = Running::start(command, SAYS);
        let address = line.trim_end().strip_prefix(SAYS);
        Server {
            running,
            address: address.unwrap_or_else(|| panic!("{line}")).into(),
        }
    }

    /// Returns the number of its process.
    pub fn pid(&self) -> String {
        self.running.pid()
    }

    /// Connects to it.
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
}

/// A folder of a test's own, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    /// Makes one.
    pub fn new(name: &str) -> Folder {
        let name = format!("{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Returns the path of a file in it.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

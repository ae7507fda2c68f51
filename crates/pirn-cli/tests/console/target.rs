//! A server, a console for it, and a client that knows no more than HTTP.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::shared::{self, PIRN, Running, Server, own};

/// A server, and a console for it.
pub struct Console {
    pub server: Server,
    pub console: Running,
    /// Where the console does: `127.0.0.1:PORT`.
    pub address: String,
    /// What paths begin with: `/TOKEN/`.
    pub root: String,
}

impl Console {
    pub fn start() -> Console {
        let server = shared::demo();
        until_it_waits(&server);
        let command = &mut Command::new(PIRN);
        let (console, url) = Running::start(command.args(["console", &server.pid()]), "http://");
        let (address, token) = url
            .strip_prefix("http://")
            .unwrap()
            .split_once('/')
            .unwrap();
        let root = format!("/{token}");
        assert_eq!(root.len(), 34, "{url}");
        Console {
            server,
            console,
            address: address.into(),
            root,
        }
    }

    /// Sends bytes, and returns what comes back until the end.
    pub fn send(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // What is refused early need not be read to its end.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => String::from_utf8_lossy(&answer).into_owned(),
        }
    }

    /// Makes a request with these headers besides `Host`.
    pub fn ask(&self, method: &str, path: &str, headers: &str) -> String {
        let host = &self.address;
        self.send(
            format!(
                "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"
            )
            .as_bytes(),
        )
    }

    /// Gets a path behind the token, which must be there.
    pub fn get(&self, path: &str) -> String {
        let answer = self.ask("GET", &format!("{}{path}", self.root), "");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n"),
            "{path}: {answer}"
        );
        answer.split_once("\r\n\r\n").unwrap().1.to_string()
    }

    pub fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path)).unwrap()
    }

    /// Opens the stream of events.
    pub fn events(&self) -> Events {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, root) = (&self.address, &self.root);
        write!(stream, "GET {root}events HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
        Events(BufReader::new(stream))
    }
}

/// Waits until the server's virtual threads wait. Before it has one, it cannot be asked at all.
fn until_it_waits(server: &Server) {
    loop {
        let mut command = Command::new(PIRN);
        let output = command.args(["metrics", &server.pid()]).output().unwrap();
        let metrics = String::from_utf8_lossy(&output.stdout);
        if metrics.contains(&format!("pirn_threads{{state=\"waiting\"}} {}\n", own())) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The stream of events.
pub struct Events(BufReader<TcpStream>);

impl Events {
    /// Returns the data of the next event of this name.
    pub fn next(&mut self, name: &str) -> Value {
        loop {
            if self.line() == format!("event: {name}") {
                let mut lines = std::iter::repeat_with(|| self.line());
                let data = lines.find_map(|line| Some(line.strip_prefix("data: ")?.to_owned()));
                return serde_json::from_str(&data.unwrap()).unwrap();
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(
            self.0.read_line(&mut line).unwrap(),
            0,
            "the stream has ended"
        );
        line.trim_end().to_string()
    }
}

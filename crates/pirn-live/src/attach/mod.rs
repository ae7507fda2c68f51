//! Asking a running process: finding it, making it listen, one request per connection.
//!
//! `crates/pirn-observe/src/server` is the other side, and describes the protocol. Nothing is sent
//! to a process before it is known to have virtual threads, and any other process ignores it.

mod failure;
mod process;
mod sockets;
mod wake;

pub use failure::Failure;
pub use process::{Process, all, find};

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// The version of the protocol.
const VERSION: u32 = 1;

/// How long a process has to listen.
const PATIENCE: Duration = Duration::from_secs(2);
/// The process is asked again this often.
const AGAIN: Duration = Duration::from_millis(500);
/// The threads of a process that begins are there this soon.
const BEGINNING: Duration = Duration::from_millis(100);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// A connection to a process, for one request.
#[derive(Debug)]
pub struct Connection {
    pid: u32,
    stream: UnixStream,
}

/// Connects to the process with this number, as this process sees it. Makes it listen, unless it
/// does.
pub fn connect(pid: u32) -> Result<Connection, Failure> {
    let process = Process::read(pid)?;
    let start = Instant::now();
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(stream) = sockets::connect(&process)? {
            return Ok(Connection { pid, stream });
        }
        if asked.is_none_or(|asked| asked.elapsed() >= AGAIN) {
            // Read anew: the number may belong to another process by now.
            match wake::ask_to_listen(&Process::read(pid)?) {
                // It may have just begun.
                Err(Failure::NoThreads { .. }) if start.elapsed() < BEGINNING => {}
                asked_it => {
                    asked_it?;
                    asked = Some(Instant::now());
                }
            }
        }
        if start.elapsed() >= PATIENCE {
            return Err(Failure::silent(&Process::read(pid)?));
        }
        thread::sleep(PAUSE);
    }
}

impl Connection {
    /// Sends a request, and waits up to `patience` for the beginning of the answer, and for each
    /// piece of the rest.
    pub fn ask(
        mut self,
        command: &str,
        pairs: &[(&str, &str)],
        patience: Duration,
    ) -> Result<Answer, Failure> {
        let pid = self.pid;
        let broken = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => Failure::Slow { pid, patience },
            _ => Failure::Broken { pid, error },
        };
        let mut line = format!("pirn {VERSION} {command}");
        for (key, value) in pairs {
            line.push_str(&format!(" {key}={value}"));
        }
        line.push('\n');
        // A process that refuses, because it is busy, say, hangs up without reading.
        let sent = self.stream.write_all(line.as_bytes());
        self.stream
            .set_read_timeout(Some(patience))
            .map_err(broken)?;
        let mut stream = BufReader::with_capacity(64 << 10, self.stream);
        let mut head = Vec::new();
        let received = (&mut stream).take(1 << 16).read_until(b'\n', &mut head);
        let head = String::from_utf8_lossy(&head);
        match (head.trim_end().split_once(' '), received) {
            (Some(("ok", kind)), Ok(_)) => Ok(Answer {
                kind: kind.into(),
                stream,
            }),
            (Some(("error", text)), _) => Err(Failure::Refused {
                pid,
                text: text.into(),
            }),
            (_, Err(error)) => Err(broken(error)),
            _ => Err(broken(sent.err().unwrap_or_else(|| {
                io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up")
            }))),
        }
    }
}

/// The answer to a request: its payload can be read.
#[derive(Debug)]
pub struct Answer {
    /// What the payload is, in the process's words.
    pub kind: String,
    stream: BufReader<UnixStream>,
}

impl Answer {
    /// Limits how long one read may wait; `None`: not at all. For streams that pause.
    pub fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(patience)
    }
}

impl Read for Answer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl BufRead for Answer {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.stream.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.stream.consume(amount);
    }
}

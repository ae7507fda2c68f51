//! A peer's process: started, spoken to, watched, and ended in any case.

use crate::memory::Footprint;
use crate::protocol::{Line, Output, Refusal};
use anyhow::{Context, Result, anyhow, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A peer at work.
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    events: Receiver<Event>,
    complaints: Option<JoinHandle<String>>,
    /// The version of what it measures, as it reports it.
    pub version: String,
    /// The port of a server, 0 before it is known.
    pub port: u16,
    /// The deadline of its present work.
    deadline: Instant,
    timeout: Duration,
    started: Instant,
    abandoned: bool,
}

/// What its standard output contains, in order.
enum Event {
    Line(Result<Line>),
    /// All output since the line before.
    Output(Output),
}

impl Process {
    /// Starts a peer and waits for its first line.
    ///
    /// # Errors
    ///
    /// If it cannot be started, or its first line is another.
    pub fn start(command: &mut Command, timeout: Duration) -> Result<Process> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn().context("cannot start it")?;
        let (tell, events) = mpsc::channel();
        let stdout = child.stdout.take().context("no pipe from it")?;
        std::thread::spawn(move || read(BufReader::with_capacity(1 << 16, stdout), &tell));
        let stderr = child.stderr.take().context("no pipe from it")?;
        let mut process = Process {
            stdin: child.stdin.take(),
            child,
            events,
            complaints: Some(std::thread::spawn(move || last_words(stderr))),
            version: String::new(),
            port: 0,
            deadline: Instant::now() + timeout,
            timeout,
            started,
            abandoned: false,
        };
        match process.next()? {
            Line::Hello { version, .. } => process.version = version,
            Line::Error { error } => bail!(Refusal(error)),
            other => bail!("it began with {other:?}"),
        }
        Ok(process)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns when it was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Writes a word to the peer, and restarts its time limit.
    ///
    /// # Errors
    ///
    /// If it no longer reads; the error is the reason if that can be found.
    pub fn tell(&mut self, word: &str) -> Result<()> {
        self.deadline = Instant::now() + self.timeout;
        let stdin = self
            .stdin
            .as_mut()
            .context("it has been told that there is no more")?;
        match writeln!(stdin, "{word}").and_then(|()| stdin.flush()) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.last_error()),
        }
    }

    /// Returns the memory that it takes up.
    ///
    /// # Errors
    ///
    /// If it has ended; the error is the reason if that can be found.
    pub fn footprint(&mut self) -> Result<Footprint> {
        match Footprint::of(self.id()) {
            // The kernel reports less about a process that is ending, but as much as about us if it
            // lives.
            Err(_) if Footprint::of(std::process::id()).is_ok() => Err(self.last_error()),
            footprint => footprint,
        }
    }

    /// Returns why a process that is ending does so; it may have reported it.
    fn last_error(&mut self) -> anyhow::Error {
        match self.next() {
            Ok(Line::Error { error }) => Refusal(error).into(),
            Ok(line) => anyhow!("it said {line:?} out of turn and ended"),
            Err(error) => error,
        }
    }

    /// Returns the next line of the protocol; other output is dropped.
    ///
    /// # Errors
    ///
    /// If it takes too long (then it is killed), ends, or prints an invalid line.
    pub fn next(&mut self) -> Result<Line> {
        let mut dropped = Output::default();
        self.next_with_output(&mut dropped)
    }

    /// Returns the next line of the protocol; other output before it goes into `output`.
    ///
    /// # Errors
    ///
    /// The same as for [`next`](Process::next).
    pub fn next_with_output(&mut self, output: &mut Output) -> Result<Line> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Line(line)) => return line,
                Ok(Event::Output(more)) => *output = more,
                Err(RecvTimeoutError::Timeout) => {
                    bail!("not done after {:?}; ended", self.timeout)
                }
                Err(RecvTimeoutError::Disconnected) => bail!(self.why_it_ended()),
            }
        }
    }

    /// Lets it die, or be dead: its work is done.
    pub fn abandon(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        self.abandoned = true;
    }

    /// Tells it that there is no more work, and waits for its end.
    ///
    /// # Errors
    ///
    /// If it does not end, or ends with an error.
    pub fn end(mut self) -> Result<()> {
        if self.abandoned {
            return Ok(());
        }
        self.stdin = None;
        self.deadline = Instant::now() + self.timeout;
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Line(Ok(Line::Error { error }))) => bail!(Refusal(error)),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => bail!("it does not end"),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = self.child.wait()?;
        if !status.success() {
            bail!(self.explain(status));
        }
        Ok(())
    }

    fn why_it_ended(&mut self) -> String {
        match self.child.wait() {
            Ok(status) => self.explain(status),
            Err(error) => format!("it is gone: {error}"),
        }
    }

    fn explain(&mut self, status: ExitStatus) -> String {
        let complaints = self.complaints.take().and_then(|reader| reader.join().ok());
        let words = complaints.unwrap_or_default();
        let said = if words.is_empty() { "" } else { "; it said: " };
        format!("its process ended with {status}{said}{words}")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended, or is no longer needed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes on a peer's standard output until its end.
fn read(mut stdout: impl BufRead, tell: &Sender<Event>) {
    let mut output = Output::default();
    let mut line = String::new();
    while matches!(stdout.read_line(&mut line), Ok(n) if n > 0) {
        let text = line.trim_end();
        if text.starts_with('{') {
            let told = match output {
                Output { lines: 0, .. } => Ok(()),
                _ => tell.send(Event::Output(std::mem::take(&mut output))),
            };
            // The receiver is no longer interested.
            if told
                .and_then(|()| tell.send(Event::Line(Line::parse(text))))
                .is_err()
            {
                return;
            }
        } else {
            output.add(text);
        }
        line.clear();
    }
    if output.lines > 0 {
        let _ = tell.send(Event::Output(output));
    }
}

/// The end of what a peer prints to standard error, in a line.
fn last_words(mut stderr: impl Read) -> String {
    const KEPT: usize = 600;
    let mut kept = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut chunk) {
        kept.extend_from_slice(&chunk[..read]);
        kept.drain(..kept.len().saturating_sub(KEPT));
    }
    let text = String::from_utf8_lossy(&kept);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;

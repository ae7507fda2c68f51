//! The thread that listens, and its clients: the request of each, and the answer.
//!
//! ```text
//! request   pirn 1 COMMAND key=value …\n      at most 4 KiB, within two seconds
//! answer    ok KIND\n  and then the payload, to the end of the stream
//!           error TEXT\n
//! ```
//!
//! An answer that breaks off has no other sign than its own format's.

use super::commands::{self, Command, Request};
use super::socket::{self, Socket};
use super::{Permit, Permits, STACK, start_thread};
use crate::waits::ends::copy_from_process;
use pirn_rt::blocking::fds::other_table;
use pirn_rt::panic;
use pirn_rt::sched::runtime::{self, Runtime};
use pirn_rt::sys::{self, call};
use pirn_rt::time::Deadline;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::Arc;
use std::time::Duration;

/// The clients that are served at the same time. Each has a thread.
pub(super) static CLIENTS: Permits = Permits::new(4);

/// Forgets the clients of the parent, in the child of a fork.
pub(super) fn after_fork() {
    CLIENTS.reset();
}

/// The listener looks this often whether its socket is still there, and whether it is still wanted.
const LOOK_NS: u64 = 60_000_000_000;
/// A pause after an error that is likely to come again. Most clients are served in less time.
const PAUSE_NS: u64 = 100_000_000;
/// A client has this long to send its request.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// A client has this long to take each piece of its answer.
const PIECE_TIME: Duration = Duration::from_secs(5);
/// Bytes that are sent at once, so that time limits are checked often.
const PIECE: usize = 64 << 10;

/// Listens and serves, on a thread of its own: `for_good`, or until no client has come for
/// [`LOOK_NS`]. `starting` is held until the socket is there.
pub(super) fn run(for_good: bool, starting: Permit) {
    let mut starting = Some(starting);
    let Some(runtime) = published() else {
        return;
    };
    if let Err(error) = take_own_table(runtime) {
        return complain(&format!("no table of descriptors of its own: {error}"));
    }
    loop {
        let opened = socket::open();
        drop(starting.take());
        match opened {
            Ok(Some(socket)) => serve(socket, for_good),
            Ok(None) => return, // Another listener of this process answers.
            Err(reason) => {
                complain(&reason);
                if for_good {
                    sys::nap(LOOK_NS);
                }
            }
        }
        if !for_good {
            return; // A tool asks again.
        }
    }
}

/// Returns the runtime, once it is published: the monitor, which makes the starter start this
/// thread, runs a moment earlier. `None`: the start of the runtime seems to have failed.
fn published() -> Option<&'static Runtime> {
    const LOOKS: u32 = 1000;
    (0..LOOKS).find_map(|_| {
        let runtime = runtime::get();
        if runtime.is_none() {
            sys::nap(PAUSE_NS / 100);
        }
        runtime
    })
}

/// Gives this thread its own table of descriptors, which has nothing of the program's. Its standard
/// input and output are `/dev/null`: a message that some code writes there reaches no client.
fn take_own_table(runtime: &Runtime) -> io::Result<()> {
    other_table::make(&runtime.poller).map_err(|e| io::Error::from_raw_os_error(e.0))?;
    for _ in 0..3 {
        let null = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        core::mem::forget(null);
    }
    Ok(())
}

/// Serves clients as long as the socket is current, and wanted.
fn serve(socket: Socket, for_good: bool) {
    let mut quiet = true;
    loop {
        let deadline = Deadline::after_nanos(LOOK_NS);
        let mut readable = false;
        while !readable && !deadline.has_passed() {
            readable = sys::poll_until(socket.listener.as_raw_fd(), deadline);
        }
        if readable {
            match socket.listener.accept() {
                Ok((client, _)) => admit(client),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => sys::nap(PAUSE_NS), // No memory, no descriptors in the whole system.
            }
            quiet = false;
            continue;
        }
        let unwanted = quiet && CLIENTS.used() == 0 && !for_good;
        if unwanted || !socket.is_current() {
            return socket.close();
        }
        quiet = true;
    }
}

/// Gives a client a thread, or tells it why it gets none.
fn admit(client: UnixStream) {
    // SAFETY: the type of this option's value.
    let peer = unsafe { sys::socket_option::<libc::ucred>(client.as_raw_fd(), libc::SO_PEERCRED) };
    let Ok(peer) = peer else { return };
    if let Err(reason) = may_ask(peer.uid) {
        return refuse(&client, &reason);
    }
    let Some(permit) = CLIENTS.take_within(Duration::from_nanos(PAUSE_NS)) else {
        let reason = format!("{} clients are being served already", CLIENTS.most);
        return refuse(&client, &reason);
    };
    let client = Arc::new(client);
    let of_worker = Arc::clone(&client);
    let started = start_thread("pirn-observe", STACK, move || {
        other_table::join();
        answer(&of_worker);
        // The client may come again as soon as the connection is closed: then there is a permit.
        drop(permit);
    });
    if started.is_err() {
        answer(&client); // Other clients wait: there is no memory for a thread.
    }
}

/// Returns whether a user may ask: this process's own, or root.
///
/// # Errors
/// A message that says which users may ask.
fn may_ask(peer: u32) -> Result<(), String> {
    // SAFETY: no pointers.
    let (user, dumpable) = unsafe {
        (
            libc::geteuid(),
            call!(libc::SYS_prctl, libc::PR_GET_DUMPABLE),
        )
    };
    match peer {
        0 => Ok(()),
        _ if dumpable != Ok(1) => Err("this process keeps secrets, or has changed its user: \
                                       it answers root only"
            .into()),
        peer if peer == user => Ok(()),
        peer => Err(format!(
            "this process answers its own user ({user}) and root only, and you are user {peer}"
        )),
    }
}

/// Writes a line to the standard error of the process, which is not in this thread's table.
fn complain(text: &str) {
    if !pirn_rt::environment::notices_are_off()
        && let Some(stderr) = copy_from_process(2)
    {
        let line = format!(
            "pirn: tools cannot look inside process {}: {text}\n",
            process::id()
        );
        let _ = File::from(stderr).write_all(line.as_bytes());
    }
}

/// Answers a client's request.
fn answer(client: &UnixStream) {
    let line = match request(client) {
        Ok(line) => line,
        Err(Some(reason)) => return refuse(client, reason),
        Err(None) => return, // It has hung up.
    };
    let parsed = Request::parse(&line).and_then(|request| {
        let command = commands::find(&request)?;
        client.set_write_timeout(Some(PIECE_TIME))?;
        Ok((request, command))
    });
    let (request, command) = match parsed {
        Ok(found) => found,
        Err(error) => return refuse(client, &error.to_string()),
    };
    let mut out = BufWriter::with_capacity(PIECE, Answer::new(client, command));
    // A panic here must not end the process, nor leave a client without a word.
    let run = || {
        writeln!(out, "ok {}", command.kind)?;
        (command.run)(&request, &mut out)?;
        out.flush()
    };
    let error = match panic::catch(run) {
        Some(Ok(())) => return,
        Some(Err(error)) => error.to_string(),
        None => format!("{} panicked: this is a bug of pirn", command.name),
    };
    let (answer, _unsent) = out.into_parts();
    if !answer.begun {
        refuse(client, &error);
    }
}

/// Receives a request: a line, without its end.
///
/// # Errors
/// The reason to tell the client, if it is still there.
fn request(client: &UnixStream) -> Result<Vec<u8>, Option<&'static str>> {
    const TOO_SLOW: Option<&str> = Some("no request within two seconds");
    let deadline = Deadline::after(REQUEST_TIME);
    client
        .set_read_timeout(Some(REQUEST_TIME))
        .map_err(|_| None)?;
    let (mut line, mut chunk) = (Vec::with_capacity(512), [0; 512]);
    while !line.ends_with(b"\n") {
        if deadline.has_passed() {
            return Err(TOO_SLOW);
        }
        match (&*client).read(&mut chunk) {
            Ok(0) => return Err(None),
            Ok(len) => line.extend_from_slice(&chunk[..len]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(TOO_SLOW),
            Err(_) => return Err(None),
        }
        if line.len() > commands::LONGEST {
            return Err(Some("the request is too long"));
        }
    }
    line.pop();
    Ok(line)
}

/// Tells a client why it gets no answer. Does not wait for it.
fn refuse(mut client: &UnixStream, reason: &str) {
    let _ = client.set_write_timeout(Some(Duration::from_secs(1)));
    let _ = client.write(format!("error {}\n", reason.replace('\n', " ")).as_bytes());
}

/// The answer to a command, as it is sent.
struct Answer<'a> {
    client: &'a UnixStream,
    /// How long the client may take to read all.
    limit: Option<Duration>,
    /// The end of that time, which begins when there is something to read.
    deadline: Option<Deadline>,
    /// Something has been sent.
    begun: bool,
}

impl<'a> Answer<'a> {
    fn new(client: &'a UnixStream, command: &Command) -> Answer<'a> {
        Answer {
            client,
            limit: command.seconds.map(Duration::from_secs),
            deadline: None,
            begun: false,
        }
    }
}

impl Write for Answer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let limit = self.limit;
        let begin = || limit.map_or(Deadline::NEVER, Deadline::after);
        let too_slow = || io::Error::new(ErrorKind::TimedOut, "the tool reads too slowly");
        if self.deadline.get_or_insert_with(begin).has_passed() {
            return Err(too_slow());
        }
        let sent = self.client.write(&bytes[..bytes.len().min(PIECE)]);
        let sent = sent.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => too_slow(),
            _ => error,
        })?;
        self.begun = true;
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn the_time_to_read_begins_when_there_is_something_to_read() {
        /// The time of a whole answer, and more than that.
        const SECONDS: u64 = 1;
        const LONGER: Duration = Duration::from_millis(1200);
        let (ours, _client) = UnixStream::pair().unwrap();
        let command = Command {
            seconds: Some(SECONDS),
            ..commands::ALL[0]
        };
        let mut answer = Answer::new(&ours, &command);
        thread::sleep(LONGER); // It is being made.
        answer.write_all(b"some").unwrap();
        thread::sleep(LONGER); // It is being read.
        let error = answer.write_all(b"more").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}

//! `pirn demo`: a thread-per-connection HTTP server and its users, first all on virtual threads,
//! then the same code on platform threads.
//!
//! The server is another process, a `pirn demo server`: so either side may open as many files as
//! there are users.

use std::env;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rustix::process::{Pid, Signal, kill_process};

use crate::limits::{self, Room};
use crate::measure::{Sampler, Usage};
use crate::report::{self, Outcome, count};
use crate::threads::{Platform, Threads, Virtual};
use crate::users::{Load, Users};

/// Runs the demo and prints its results. `Ok(false)` means that virtual threads had errors.
pub fn run(load: Load, out: &mut dyn Write) -> Result<bool, Box<dyn Error>> {
    limits::raise_open_files(limits::open_files_for(load.users));
    let mut outcomes = Vec::new();
    let mut clean = false;
    if let Some((outcome, all_started)) = run_on(Virtual, load, &limits::for_virtual(), out)? {
        clean = all_started && outcome.errors.count == 0;
        outcomes.push(outcome);
    }
    if let Some((outcome, _)) = run_on(Platform, load, &limits::for_platform(), out)? {
        outcomes.push(outcome);
    }
    if outcomes.is_empty() {
        return Ok(false); // why, has been printed
    }
    writeln!(out, "\n{}", report::table(&outcomes))?;
    for outcome in &outcomes {
        write!(out, "{}", report::errors(outcome))?;
        if let Some(memory) = &outcome.memory {
            write!(out, "{}", report::memory(memory))?;
        }
    }
    Ok(clean)
}

/// Runs the demo on one kind of thread, with as many users as there is room for. Returns the
/// results, and whether all their threads could be started. Returns `None` if there is no room for
/// a single user.
fn run_on<T: Threads>(
    threads: T,
    asked: Load,
    rooms: &[Room],
    out: &mut dyn Write,
) -> Result<Option<(Outcome, bool)>, Box<dyn Error>> {
    let load = scale_down(asked, rooms, T::NAME, out)?;
    if load.users == 0 {
        return Ok(None);
    }
    let listeners = load.users.div_ceil(limits::connections_per_address());
    let server = Server::start::<T>(load.delay, listeners)?;
    let pid = server.process.id();
    let before = Usage::with(pid)?;
    let users = Users::new(load, server.addresses.clone());
    let progress = progress_bar(T::NAME);
    let sampler = Sampler::start(pid, update(progress.clone(), Arc::clone(&users), load))?;

    let (handles, shortage) = users.gather(threads);
    let gathered = Usage::with(pid)?; // a short run may fall between two looks of the sampler
    let memory = (T::NAME == Virtual::NAME).then(pirn::metrics::snapshot);
    users.go();
    let elapsed = users.join::<T>(handles);

    let peak = sampler.finish().max(gathered);
    progress.finish_and_clear();
    if !server.end()? {
        users.tally().failed("a connection that does not end");
    }
    let all_started = shortage.is_none();
    note_fewer(out, users.connected(), load.users, shortage)?;
    let outcome = Outcome {
        kind: T::NAME,
        users: users.connected(),
        latencies: users.tally().latencies(),
        errors: users.tally().errors(),
        elapsed,
        before,
        peak,
        memory,
    };
    Ok(Some((outcome, all_started)))
}

/// Reduces `asked` to the part that there is room for; prints it, with the reason if it is not all.
fn scale_down(asked: Load, rooms: &[Room], kind: &str, out: &mut dyn Write) -> io::Result<Load> {
    let (fitting, reason) = limits::fit(asked.users, rooms);
    let load = Load {
        users: fitting,
        ..asked
    };
    writeln!(
        out,
        "{}: {} users, {} requests each, {} ms in the handler",
        kind,
        count(load.users as u64),
        load.requests,
        load.delay.as_millis()
    )?;
    note_fewer(out, load.users, asked.users, reason)?;
    Ok(load)
}

fn note_fewer(
    out: &mut dyn Write,
    users: usize,
    asked: usize,
    reason: Option<String>,
) -> io::Result<()> {
    if let Some(reason) = reason {
        let (users, asked) = (count(users as u64), count(asked as u64));
        writeln!(out, "  {users} instead of {asked} users: {reason}")?;
    }
    out.flush()
}

/// The process of the server, which ends with this.
struct Server {
    process: Child,
    addresses: Vec<SocketAddr>,
}

impl Server {
    /// Starts a server. It has several listeners, each with its own loopback address: the client
    /// side of a connection takes a port number that is unique only per address and port of the
    /// server.
    fn start<T: Threads>(delay: Duration, listeners: usize) -> io::Result<Server> {
        let first = Ipv4Addr::LOCALHOST.to_bits();
        let hosts = (first..).map(Ipv4Addr::from_bits).take(listeners);
        let mut command = Command::new(env::current_exe()?);
        command
            .args(["demo", "server", "--with-parent", "--delay-ms"])
            .arg(delay.as_millis().to_string())
            .args(T::OPTION)
            .args(hosts.map(|host| format!("{host}:0")));
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut server = Server {
            process,
            addresses: Vec::new(),
        };
        let said = server.process.stdout.take().into_iter();
        for line in said.flat_map(|said| BufReader::new(said).lines().take(listeners)) {
            let line = line?;
            let address = line
                .rsplit('/')
                .next()
                .and_then(|address| address.parse::<SocketAddr>().ok());
            server.addresses.extend(address);
        }
        match server.addresses.len() == listeners {
            true => Ok(server),
            false => Err(io::Error::other("the server has ended")),
        }
    }

    /// Ends it. Returns whether all connections have ended.
    fn end(mut self) -> io::Result<bool> {
        kill_process(Pid::from_child(&self.process), Signal::TERM)?;
        Ok(self.process.wait()?.success())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Failure: it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A line on stderr that is drawn only on a terminal.
fn progress_bar(kind: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix}: {msg} [{wide_bar}] {elapsed}")
        .expect("the template is well formed")
        .progress_chars("=> ");
    ProgressBar::new(0).with_style(style).with_prefix(kind)
}

/// Updates the progress line each time it is called.
fn update(bar: ProgressBar, users: Arc<Users>, load: Load) -> impl FnMut() + Send + 'static {
    move || {
        let (what, done, all) = if users.gone() {
            let answered = users.tally().answered_so_far();
            ("requests answered", answered, load.all_requests())
        } else {
            let connected = users.connected() as u64;
            ("users connected", connected, load.users as u64)
        };
        bar.update(|state| {
            state.set_len(all);
            state.set_pos(done);
        });
        bar.set_message(format!("{} of {} {what}", count(done), count(all)));
    }
}

//! The `pirn` command: tools for processes with virtual threads, and demos.
//!
//! This file holds the command line only; each command has its own module.

#![deny(unsafe_code)] // What `run` does before `std` begins needs it.

mod arch;
mod cgroup;
mod client;
mod demo;
mod doctor;
mod dump;
mod events;
mod limits;
mod measure;
mod metrics;
mod million;
mod outside;
mod ps;
mod ramp;
mod report;
mod run;
mod server;
mod tally;
mod threads;
mod top;
mod users;

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use pirn_http::{Bound, Listener, SIGINT, SIGTERM, Server};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::threads::{Platform, Virtual};

/// The longest delay that the command line accepts: an hour, in milliseconds.
const MAX_DELAY_MS: u64 = 3_600_000;

/// Virtual threads under the unchanged standard library: tools that look into processes, `run` for
/// unmodified programs, and demos.
#[derive(Parser)]
#[command(name = "pirn", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A thread-per-connection HTTP server under load, on virtual and then on platform threads.
    #[command(args_conflicts_with_subcommands = true)]
    Demo {
        #[command(flatten)]
        load: LoadArgs,
        #[command(subcommand)]
        other: Option<OtherDemo>,
    },
    /// Reports whether and to what extent this machine can run virtual threads, and what to change.
    ///
    /// The exit code is 0 if they run, and 1 if not.
    Doctor {
        /// An executable to examine as well: what it lacks for virtual threads.
        #[arg(long, value_name = "PATH")]
        program: Option<PathBuf>,
        /// Writes JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints a script with which a shell completes this command's arguments.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Serves a page about a running process to a browser on this machine: history, groups, scopes,
    /// carriers, stacks.
    Console(pirn_console::ConsoleArgs),
    /// Prints the commands for gdb that list virtual threads and show their stacks.
    ///
    /// In gdb: `source FILE`, then `help pirn`. Programs with debug information contain them.
    GdbScript,
    /// Shows the virtual threads of a running process, which need not be prepared for it.
    Dump(dump::DumpArgs),
    /// Records what the virtual threads of a running process do, as a trace for
    /// <https://ui.perfetto.dev>.
    ///
    /// In the trace, carriers are processors and virtual threads are threads.
    Events(events::EventsArgs),
    /// Writes the manual, a page for each command, to a folder.
    Manual {
        /// The folder, such as /usr/local/share/man/man1.
        folder: PathBuf,
    },
    /// Shows the metrics of a running process, in the text format of Prometheus.
    Metrics(metrics::MetricsArgs),
    /// Lists the running processes with virtual threads: this user's, or for root everyone's.
    Ps,
    /// Runs an unmodified program: each of its threads becomes a virtual one.
    Run(run::RunArgs),
    /// Shows a running process in the terminal: groups of threads, rates, carriers, stacks.
    Top(top::TopArgs),
}

#[derive(Subcommand)]
enum OtherDemo {
    /// Spawns, parks, wakes and joins a million virtual threads.
    Million {
        /// The number of virtual threads.
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
        threads: u32,
    },
    /// Just the HTTP server, until Ctrl-C.
    Server {
        /// Where to listen, for example 127.0.0.1:8080 (port 0: any free port).
        #[arg(value_name = "ADDR", required = true)]
        addresses: Vec<String>,
        /// How long the handler waits before it answers, in milliseconds.
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=MAX_DELAY_MS))]
        delay_ms: u64,
        /// Serves connections on platform threads.
        #[arg(long)]
        platform_threads: bool,
        /// Ends when the process that has started it ends.
        #[arg(long, hide = true)]
        with_parent: bool,
    },
}

/// The load that `pirn demo` makes.
#[derive(Args)]
struct LoadArgs {
    /// How many users are connected at the same time.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    users: u32,
    /// How long each request waits in its handler, in milliseconds.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(..=MAX_DELAY_MS))]
    delay_ms: u64,
    /// How many requests each user makes, one after the other on one connection.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    requests: u32,
}

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    if let Command::Run(args) = &command {
        return run::run(args);
    }
    match run(command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // The reader of the output has what it wants, such as `head`.
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            // If even stderr is gone, nothing can be done.
            let _ = writeln!(io::stderr(), "pirn: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Runs one command. `Ok(false)` means that it ran, and has reported itself what went wrong.
fn run(command: Command) -> Result<bool, Box<dyn Error>> {
    let out = &mut io::stdout();
    match command {
        Command::Demo {
            other: Some(OtherDemo::Million { threads }),
            ..
        } => Ok(million::run(threads as usize, out)?),
        Command::Demo {
            other:
                Some(OtherDemo::Server {
                    addresses,
                    delay_ms,
                    platform_threads,
                    with_parent,
                }),
            ..
        } => {
            if with_parent {
                set_parent_process_death_signal(Some(Signal::TERM))?;
            }
            let delay = Duration::from_millis(delay_ms);
            let server = match platform_threads {
                true => server::new(Platform, delay),
                false => server::new(Virtual, delay),
            };
            demo_server(server, &addresses, out)
        }
        Command::Demo { load, other: None } => {
            let load = users::Load {
                users: load.users as usize,
                delay: Duration::from_millis(load.delay_ms),
                requests: load.requests,
            };
            demo::run(load, out)
        }
        Command::Doctor { program, json } => doctor::run(program.as_deref(), json, out),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "pirn", out);
            Ok(true)
        }
        Command::Console(args) => pirn_console::run(&args, out).map(|()| true),
        Command::GdbScript => {
            out.write_all(pirn::GDB_SCRIPT.as_bytes())?;
            Ok(true)
        }
        Command::Dump(args) => dump::run(&args, out).map(|()| true),
        Command::Events(args) => events::run(&args, out).map(|()| true),
        Command::Manual { folder } => {
            let cannot = |error| format!("cannot write to '{}': {error}", folder.display());
            clap_mangen::generate_to(Cli::command(), &folder).map_err(cannot)?;
            Ok(true)
        }
        Command::Metrics(args) => metrics::run(&args, out).map(|()| true),
        Command::Ps => Ok(ps::run(out).map(|()| true)?),
        Command::Run(_) => unreachable!("it ends or replaces the process"),
        Command::Top(args) => top::run(&args, out).map(|()| true),
    }
}

/// `pirn demo server`: serves until SIGINT or SIGTERM. Returns whether all connections have ended.
fn demo_server(
    server: Server,
    addresses: &[String],
    out: &mut dyn Write,
) -> Result<bool, Box<dyn Error>> {
    limits::raise_open_files(u64::MAX);
    let mut listeners = Vec::new();
    for address in addresses {
        let listener = Listener::tcp(address);
        listeners.push(listener.map_err(|error| format!("cannot listen on '{address}': {error}"))?);
    }
    // They listen already: clients wait until it serves.
    for address in listeners.iter().filter_map(Listener::local_addr) {
        writeln!(out, "listening on http://{address}")?;
    }
    out.flush()?;
    let mut listeners = listeners.into_iter();
    let first = listeners.next().ok_or("there is no address to listen on")?;
    let bound = listeners.fold(server.listen(first), Bound::and);
    Ok(bound.serve_until([SIGINT, SIGTERM])? == 0)
}

#[cfg(test)]
mod tests;

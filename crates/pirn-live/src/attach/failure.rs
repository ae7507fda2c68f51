//! Why a process does not answer, and what to do.

#![allow(missing_docs, reason = "each variant's text says what its fields are")]

use std::fmt;
use std::io;
use std::time::Duration;

use super::process::Process;

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// No process has this number.
    NoProcess(u32),
    /// No process with virtual threads has this name.
    NoName(String),
    /// More than one has: their numbers.
    Names(String, Vec<u32>),
    /// The process has no virtual threads.
    NoThreads { pid: u32, name: String },
    /// The process has virtual threads, but does not let tools in.
    Closed { pid: u32, name: String },
    /// The process belongs to another user, or the kernel says so.
    Forbidden { pid: u32, name: String, user: u32 },
    /// There is no answer; the kernel's letter for the state of the process.
    Silent { pid: u32, name: String, state: char },
    /// The process has refused the request, and says why.
    Refused { pid: u32, text: String },
    /// The process has taken the request, and is silent for this long.
    Slow { pid: u32, patience: Duration },
    /// The connection broke.
    Broken { pid: u32, error: io::Error },
    /// A call of this process's own failed.
    Own {
        doing: &'static str,
        error: io::Error,
    },
}

impl Failure {
    /// The process does not answer.
    pub(super) fn silent(process: &Process) -> Failure {
        Failure::Silent {
            pid: process.pid,
            name: process.name.clone(),
            state: process.state,
        }
    }

    /// The process may not be asked.
    pub(super) fn forbidden(process: &Process) -> Failure {
        Failure::Forbidden {
            pid: process.pid,
            name: process.name.clone(),
            user: process.user,
        }
    }
}

/// Returns why a process is silent that is in a state with this letter.
fn silence(state: char) -> &'static str {
    match state {
        'T' => "it is stopped (`kill -CONT` lets it go on)",
        't' => "a debugger holds it",
        'Z' | 'X' => "it has ended",
        'D' => "it waits for a device or a file system",
        _ => {
            "its standard error may say why it cannot listen; the folders are \
             $XDG_RUNTIME_DIR/pirn and /tmp/pirn-UID, which must be of mode 700, its user's, and no \
             symbolic links"
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoProcess(pid) => write!(f, "there is no process {pid}"),
            Failure::NoName(name) => write!(
                f,
                "no process with virtual threads is called {name:?}, as far as this user sees"
            ),
            Failure::Names(name, pids) => {
                let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
                let (count, pids) = (pids.len(), pids.join(", "));
                write!(
                    f,
                    "{count} processes are called {name:?}: say which one: {pids}"
                )
            }
            Failure::NoThreads { pid, name } => write!(
                f,
                "process {pid} ({name:?}) has no virtual threads: it was built without pirn, has \
                 not spawned any yet, runs with PIRN_PTHREADS=platform, or was forked from a \
                 process that has some (`pirn doctor --program /proc/{pid}/exe` looks at the \
                 program)"
            ),
            Failure::Closed { pid, name } => write!(
                f,
                "process {pid} ({name:?}) does not let tools in: PIRN_OBSERVE=0 or \
                 Config::observe(false) is set, it is a setuid program, or it runs under a \
                 sanitizer or valgrind (then start it with PIRN_OBSERVE=1)"
            ),
            Failure::Forbidden { pid, name, user } => write!(
                f,
                "process {pid} ({name:?}) belongs to user {user}: only that user and root may look \
                 inside (`sudo -u '#{user}'`, or `sudo`), and only root if it has changed its user"
            ),
            Failure::Silent { pid, name, state } => {
                write!(
                    f,
                    "process {pid} ({name:?}) has not answered within two seconds: "
                )?;
                f.write_str(silence(*state))?;
                match state {
                    'Z' | 'X' => Ok(()),
                    _ => f.write_str("; `pirn dump --outside` reads its memory"),
                }
            }
            Failure::Refused { pid, text } => write!(f, "process {pid} answers: {text}"),
            Failure::Slow { pid, patience } => write!(
                f,
                "process {pid} has been silent for {} s in the middle of its answer (--timeout \
                 waits longer; `pirn dump --outside` reads its memory)",
                patience.as_secs_f64()
            ),
            Failure::Broken { pid, error } => write!(f, "process {pid} has hung up: {error}"),
            Failure::Own { doing, error } => write!(f, "cannot {doing}: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

//! `pirn run`: a program that knows nothing of virtual threads, run with them.
//!
//! ```text
//!   PROGRAM --> find: which file --> obstacle: what stands against it --> exec, with LD_PRELOAD
//!                                      |  (elf: what is in the file)
//!                                      +--> exec, natively; or an error with --strict
//! ```
//!
//! The command replaces itself by the program, so process id, signals and exit status are the
//! program's own. If there is no program to run, the exit status is what shells and `env` have for
//! that: 125 for an error of this command, 126 for a file that cannot be run, 127 for none.

mod elf;
mod find;
mod library;
pub mod obstacle;
mod start;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;

use obstacle::Caller;

/// The command line of `pirn run`.
#[derive(Args)]
pub struct RunArgs {
    /// Says what it runs and how, and at the end which threads the program made.
    #[arg(long, short)]
    verbose: bool,
    /// How many virtual threads run at the same time; by default, one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    parallelism: Option<u32>,
    /// The stack of a thread whose creator sets none, such as 256K or 8M; by default, what the
    /// program would have natively.
    #[arg(long, value_name = "SIZE", value_parser = stack_size)]
    stack_size: Option<String>,
    /// Threads that libraries with this file name make, or whose code they run, stay platform
    /// threads; with `*` and `?`. May be given several times.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    platform: Vec<String>,
    /// Programs that this one starts run natively.
    #[arg(long)]
    no_children: bool,
    /// Fails if the program cannot have virtual threads, instead of running it natively.
    #[arg(long)]
    strict: bool,
    /// Simulates the program: the seed decides which thread runs next and what is random, and no
    /// thread waits for time to pass. The same seed is the same run.
    #[arg(long, value_name = "N", conflicts_with = "parallelism")]
    seed: Option<u64>,
    /// In a simulation, has a thread pause at one point in so many, for at most so long, such as
    /// 200:30s.
    #[arg(long, value_name = "ONE_IN:LONGEST", requires = "seed")]
    pauses: Option<String>,
    /// The program, and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        value_name = "PROGRAM [ARGS]..."
    )]
    command: Vec<OsString>,
}

fn stack_size(text: &str) -> Result<String, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err("not a number, optionally with K, M or G".into()),
    };
    let bytes = digits
        .parse()
        .ok()
        .and_then(|n: u64| n.checked_mul(1 << shift));
    match bytes {
        Some(bytes) if (16 << 10..=1 << 30).contains(&bytes) => Ok(bytes.to_string()),
        _ => Err("not between 16K and 1G".into()),
    }
}

fn pattern(text: &str) -> Result<String, String> {
    match text.contains([':', '/']) || text.is_empty() {
        true => Err("not the name of a file, without its folder".into()),
        false => Ok(text.to_owned()),
    }
}

/// Why the program has not been run.
struct Failure {
    status: u8,
    text: String,
}

/// An error of this command itself.
fn own_failure(text: String) -> Failure {
    Failure { status: 125, text }
}

/// Runs the program in place of this process. Returns only if that fails.
pub fn run(args: &RunArgs) -> ExitCode {
    let Err(Failure { status, text }) = replace(args);
    say(&text);
    ExitCode::from(status)
}

fn say(text: &str) {
    // If even stderr is gone, nothing can be done.
    let _ = writeln!(io::stderr(), "pirn: {text}");
}

fn replace(args: &RunArgs) -> Result<std::convert::Infallible, Failure> {
    let (name, arguments) = args.command.split_first().expect("clap asks for a program");
    let path = find::program(name, env::var_os("PATH").as_deref())?;
    let mut command = Command::new(&path);
    command.arg0(name).args(arguments);
    match obstacle::of(&path, &Caller::this()) {
        Ok(None) => {
            let library = library::find().map_err(own_failure)?;
            if args.verbose {
                say(&format!(
                    "{} runs with {}",
                    path.display(),
                    library.display()
                ));
            }
            prepare(&mut command, args, &library);
        }
        Ok(Some(obstacle)) if args.strict || args.seed.is_some() => {
            let text = format!("{} cannot have virtual threads: {obstacle}", path.display());
            return Err(own_failure(text));
        }
        Ok(Some(obstacle)) => say(&format!("{} runs natively: {obstacle}", path.display())),
        Err(error) => return Err(cannot_run(&path, &error)),
    }
    start::restore(&mut command);
    Err(cannot_run(&path, &command.exec()))
}

fn cannot_run(path: &Path, error: &io::Error) -> Failure {
    let status = match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    };
    let text = format!("cannot run '{}': {error}", path.display());
    Failure { status, text }
}

/// Sets the variables that the library, and the dynamic linker, read.
fn prepare(command: &mut Command, args: &RunArgs, library: &Path) {
    let preload = preload(library, env::var_os("LD_PRELOAD").as_deref());
    command.env("LD_PRELOAD", preload);
    if let Some(number) = args.parallelism {
        command.env("PIRN_PARALLELISM", number.to_string());
    }
    if let Some(size) = &args.stack_size {
        command.env("PIRN_STACK_SIZE", size);
    }
    if !args.platform.is_empty() {
        command.env("PIRN_PLATFORM", args.platform.join(":"));
    }
    if args.no_children {
        command.env("PIRN_CHILDREN", "0");
    }
    if args.verbose {
        command.env("PIRN_LOG", "1");
    }
    if let Some(seed) = args.seed {
        // Of this process, which becomes the program's.
        command.env("PIRN_SEED", format!("{seed}@{}", std::process::id()));
        start::fix_addresses(command);
    }
    if let Some(pauses) = &args.pauses {
        command.env("PIRN_PAUSES", pauses);
    }
}

/// Returns the list of libraries to preload: this one first, then what the list has already.
fn preload(library: &Path, list: Option<&OsStr>) -> OsString {
    let mut all = library.as_os_str().to_owned();
    for other in list
        .unwrap_or_default()
        .as_encoded_bytes()
        .split(|&byte| byte == b':' || byte == b' ')
    {
        if !other.is_empty() && other != library.as_os_str().as_encoded_bytes() {
            all.push(":");
            all.push(std::os::unix::ffi::OsStrExt::from_bytes(other) as &OsStr);
        }
    }
    all
}

#[cfg(test)]
mod tests;

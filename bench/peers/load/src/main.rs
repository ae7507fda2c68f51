//! Loads a server on this machine with requests, and prints the result as one line of JSON.
//!
//! The client is neutral: written with tokio and bare sockets, it is the same for all servers that
//! are compared, however they are written. It is also cheap, so that it takes as little as possible
//! of the processors it shares with them: one thread, one task and one socket a connection, one
//! write a request, and usually one read an answer.

mod backend;
mod connection;
mod crowd;
mod get;
mod limits;
mod open;
mod tally;
mod users;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use serde::Serialize;
use serde_json::json;
use tokio::runtime;

/// What a server that is not a gateway answers.
const HELLO: &str = "Hello, World!";

/// Loads a server on 127.0.0.1, and prints one line of JSON.
#[derive(Parser)]
#[command(name = "bench-load")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Users(users::Users),
    Open(open::Open),
    Backend(backend::Backend),
    Get(get::Get),
}

fn main() -> ExitCode {
    match run(&Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If the harness has stopped reading, it cannot be told.
            let _ = print_line(&json!({ "error": format!("{error:#}") }));
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<()> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .context("cannot start tokio")?;
    runtime.block_on(async {
        match command {
            Command::Users(args) => print_line(&users::run(args).await?),
            Command::Open(args) => print_line(&open::run(args).await?),
            Command::Backend(args) => backend::run(args).await,
            Command::Get(args) => print_line(&get::run(args).await?),
        }
    })
}

fn print_line(line: &impl Serialize) -> Result<()> {
    let line = serde_json::to_string(line)? + "\n";
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).context("cannot print")
}

/// Reads milliseconds from the command line, a day at most.
fn millis(text: &str) -> Result<Duration> {
    let time = Duration::from_millis(text.parse()?);
    ensure!(
        time <= Duration::from_secs(24 * 60 * 60),
        "longer than a day"
    );
    Ok(time)
}

/// The same where zero makes no sense.
fn some_millis(text: &str) -> Result<Duration> {
    let time = millis(text)?;
    ensure!(!time.is_zero(), "no time at all");
    Ok(time)
}

//! Running processes with virtual threads, as their tools see them: [`attach`] finds them and asks
//! them, [`Live`] watches one.
//!
//! `pirn dump`, `top`, `console` and their kind are on it.

#![deny(unsafe_code)] // One call of `attach` needs it.

pub mod attach;
pub mod ends;
mod live;

pub use live::*;

use std::error::Error;
use std::time::Duration;

use pirn_dump::Dump;

/// Asks a process for a dump: which threads, in the words of the protocol, and how many at most.
pub fn ask(
    pid: u32,
    (threads, max): (&str, Option<u64>),
    patience: Duration,
) -> Result<Dump, Box<dyn Error>> {
    let max = max.map(|max| max.to_string());
    let mut pairs = vec![("threads", threads)];
    pairs.extend(max.as_deref().map(|max| ("max", max)));
    let answer = attach::connect(pid)?.ask("dump", &pairs, patience)?;
    if answer.kind != "dump" {
        return Err(format!("process {pid} sends {:?}, not a dump", answer.kind).into());
    }
    Ok(Dump::read_from(answer).map_err(|error| format!("the answer of {pid}: {error}"))?)
}

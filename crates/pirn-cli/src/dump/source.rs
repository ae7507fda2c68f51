//! Where a dump comes from: a process, or a file.

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::time::Duration;

use pirn_dump::{Dump, Symbols};

use super::ends;
use crate::attach::{self, Failure};

/// What each saved dump begins with.
const MAGIC: &[u8] = b"PIRNDUMP";

/// See the module's documentation.
#[derive(Debug)]
pub enum Source {
    Process(u32),
    File(PathBuf),
}

impl Source {
    /// Finds what the user means: a process's number, a file with a dump, or a process's name.
    pub fn find(meant: &str) -> Result<Source, Failure> {
        let number = meant.bytes().all(|byte| byte.is_ascii_digit());
        if !number && (meant.contains('/') || is_dump(meant)) {
            return Ok(Source::File(meant.into()));
        }
        attach::find(meant).map(Source::Process)
    }

    /// Returns the dump. `all`: with each thread, not only examples of each group.
    pub fn dump(&self, all: bool, patience: Duration) -> Result<Dump, Box<dyn Error>> {
        match self {
            Source::File(path) => {
                let cannot =
                    |error: &dyn Error| format!("cannot read '{}': {error}", path.display());
                let file = File::open(path).map_err(|error| cannot(&error))?;
                Ok(Dump::read_from(BufReader::new(file)).map_err(|error| cannot(&error))?)
            }
            Source::Process(pid) => {
                let threads = if all { "all" } else { "examples" };
                let connection = attach::connect(*pid)?;
                let answer = connection.ask("dump", &[("threads", threads)], patience)?;
                if answer.kind != "dump" {
                    return Err(format!("process {pid} sends {:?}, not a dump", answer.kind).into());
                }
                let dump = Dump::read_from(answer);
                let mut dump = dump.map_err(|error| format!("the answer of {pid}: {error}"))?;
                ends::find(*pid, &mut dump);
                Ok(dump)
            }
        }
    }

    /// Returns what finds names for the dump.
    pub fn symbols(&self) -> Symbols {
        match self {
            Source::Process(pid) => Symbols::of_process(*pid),
            Source::File(_) => Symbols::of_files(),
        }
    }
}

/// Returns whether there is a file of this name with a dump in it.
fn is_dump(path: &str) -> bool {
    let mut head = [0; MAGIC.len()];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok()) && head == *MAGIC
}

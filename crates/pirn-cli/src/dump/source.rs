//! Where a dump comes from: a process that answers, the memory of one that does not, a core file,
//! or a saved dump.

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::time::Duration;

use pirn_dump::{Dump, Symbols};

use pirn_live::attach::{self, Failure};
use pirn_live::{ask, ends};

use crate::outside::{self, Target};

/// What each saved dump begins with.
const MAGIC: &[u8] = b"PIRNDUMP";
/// What core files begin with.
const ELF: &[u8] = b"\x7fELF";

/// See the module's documentation.
#[derive(Debug)]
pub enum Source {
    Process(u32),
    /// A process that is not asked.
    Outside(u32),
    CoreFile(PathBuf),
    File(PathBuf),
}

impl Source {
    /// Finds what the user means: a process's number, a core file, a file with a dump, or a
    /// process's name. `outside`: the process is not to be asked.
    pub fn find(meant: &str, outside: bool) -> Result<Source, Failure> {
        let number = meant.bytes().all(|byte| byte.is_ascii_digit());
        if !number && begins_with(meant, ELF) {
            return Ok(Source::CoreFile(meant.into()));
        }
        if !number && (meant.contains('/') || begins_with(meant, MAGIC)) {
            return Ok(Source::File(meant.into()));
        }
        let pid = attach::find(meant)?;
        Ok(match outside {
            true => Source::Outside(pid),
            false => Source::Process(pid),
        })
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
            Source::CoreFile(path) => outside::read(Target::CoreFile(path)),
            Source::Outside(pid) => {
                let mut dump = outside::read(Target::Process(*pid))?;
                ends::find(*pid, &mut dump);
                Ok(dump)
            }
            Source::Process(pid) => {
                let threads = if all { "all" } else { "examples" };
                let mut dump = ask(*pid, (threads, None), patience)?;
                ends::find(*pid, &mut dump);
                Ok(dump)
            }
        }
    }

    /// Returns what finds names for the dump.
    pub fn symbols(&self) -> Symbols {
        match self {
            Source::Process(pid) | Source::Outside(pid) => Symbols::of_process(*pid),
            Source::CoreFile(_) | Source::File(_) => Symbols::of_files(),
        }
    }
}

/// Returns whether there is a file of this name that begins so.
fn begins_with(path: &str, magic: &[u8]) -> bool {
    let mut head = vec![0; magic.len()];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok()) && head == magic
}

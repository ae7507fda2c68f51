//! `pirn dump --outside`: the virtual threads of a process that does not answer, or of a core file.
//!
//! The process's memory is read as it is, through the table that each program with pirn has
//! ([`table`]). No thread is claimed. A stack counts only if the thread's count of mounts and its
//! saved stack pointer were the same before and after it was read; a thread that runs, or that ran
//! meanwhile, has none. In a core file nothing moves, and threads that ran have their registers.
//!
//! * [`memory`]: bytes of a process or a core file; [`core_file`]: what is where in a core file.
//! * [`modules`]: the program and its libraries; [`table`]: `PIRN_DEBUG`.
//! * [`threads`]: the threads; [`record`]: the record of one; [`unwind`]: their stacks.
//! * [`arch`]: what of it depends on the processor.

mod arch;
mod core_file;
mod memory;
mod modules;
mod record;
mod table;
mod threads;
mod unwind;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use pirn_dump::{Dump, Process};

use core_file::CoreFile;
use memory::Memory;
use modules::Modules;
use table::Table;

/// What the threads are read from.
pub enum Target<'a> {
    Process(u32),
    CoreFile(&'a Path),
}

/// Returns all threads that have a stack.
pub fn read(target: Target<'_>) -> Result<Dump, Box<dyn Error>> {
    let begin = now();
    let (memory, modules, mut process) = match target {
        Target::Process(pid) => {
            let memory = Memory::of_process(pid)?;
            (memory, Modules::of_process(pid)?, of_process(pid))
        }
        Target::CoreFile(path) => {
            let core = CoreFile::open(path)?;
            let modules = Modules::of_core(&core)?;
            let process = Process {
                pid: core.pid,
                program: modules.program(),
                ..Process::default()
            };
            (Memory::of_core(core), modules, process)
        }
    };
    let table = Table::find(&memory, &modules)?;
    process.version = table.version(&memory);
    process.parallelism = table.parallelism(&memory);
    process.begin = begin;
    let mut dump = threads::read(&memory, modules, &table)?;
    process.end = now();
    dump.process = process;
    Ok(dump)
}

/// Returns the time in nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

fn of_process(pid: u32) -> Process {
    let link = fs::read_link(format!("/proc/{pid}/exe"));
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let started = fields.split(' ').nth(19).and_then(|text| text.parse().ok());
    Process {
        pid,
        started: started.unwrap_or(0),
        program: link.map_or(String::new(), |path| path.display().to_string()),
        ..Process::default()
    }
}

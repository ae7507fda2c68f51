//! Why a program cannot have virtual threads: what is against preloading a library, or against one
//! that stands between the program and the C library.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::elf::{self, Elf};
use super::find;
use crate::arch::{Processor, THIS};

/// Why a program runs natively.
#[derive(Debug, PartialEq)]
pub enum Obstacle {
    /// It has no dynamic linker, which alone could preload something.
    Static,
    /// It changes its user or group: the dynamic linker preloads nothing that its caller names.
    Privileged,
    /// It is for 32-bit processors.
    ThirtyTwoBit,
    /// It is for another processor, this one if Pirn runs on it.
    OtherMachine(Option<Processor>),
    /// It uses another C library, to judge by its dynamic linker.
    OtherLibc(String),
    /// It is written in Go.
    Go,
    /// It is built with a sanitizer, this library.
    Sanitizer(String),
    /// It defines `pthread_create` itself.
    OwnThreads,
    /// It is neither an ELF file nor a script.
    Unknown,
    /// It is a script, and its interpreter is one of these.
    Interpreter(PathBuf, Box<Obstacle>),
    /// It is a script without an interpreter that can be found.
    NoInterpreter(PathBuf),
}

impl Display for Obstacle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Obstacle::Static => "it is linked statically, so no library can be preloaded",
            Obstacle::Privileged => {
                "it runs with the rights of another user or group, or with capabilities of its \
                 file, so the dynamic linker preloads nothing"
            }
            Obstacle::ThirtyTwoBit => "it is a 32-bit program, and Pirn is for 64 bits",
            Obstacle::OtherMachine(processor) => {
                let other = processor.map_or("another processor", Processor::name);
                let own = THIS.name();
                return write!(f, "it is for {other}, and this `pirn` is for {own}");
            }
            Obstacle::OtherLibc(linker) => {
                return write!(
                    f,
                    "it uses another C library than glibc (its dynamic linker is {linker})"
                );
            }
            Obstacle::Go => {
                "it is written in Go, whose runtime makes its system calls itself and has \
                 goroutines"
            }
            Obstacle::Sanitizer(library) => {
                return write!(
                    f,
                    "it is built with a sanitizer ({library}), which must be the first library"
                );
            }
            Obstacle::OwnThreads => {
                "it has a pthread_create of its own: Pirn is part of it, or a sanitizer"
            }
            Obstacle::Unknown => "it is neither an ELF file nor a script",
            Obstacle::Interpreter(path, obstacle) => {
                return write!(f, "its interpreter is {}: {obstacle}", path.display());
            }
            Obstacle::NoInterpreter(path) => {
                return write!(f, "its interpreter {} cannot be found", path.display());
            }
        })
    }
}

/// Who runs the program.
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    pub path: Option<OsString>,
}

impl Caller {
    /// Returns this process.
    pub fn this() -> Caller {
        Caller {
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            path: env::var_os("PATH"),
        }
    }
}

/// Returns what is against virtual threads in a program, if anything is.
///
/// # Errors
/// The file cannot be read. (A file that may be run but not read runs natively.)
pub fn of(path: &Path, caller: &Caller) -> io::Result<Option<Obstacle>> {
    /// The kernel follows as many.
    const INTERPRETERS: u32 = 5;
    follow(path, caller, INTERPRETERS)
}

fn follow(path: &Path, caller: &Caller, more: u32) -> io::Result<Option<Obstacle>> {
    let file = File::open(path)?;
    let mut head = Vec::new();
    (&file).take(4096).read_to_end(&mut head)?;
    let Some(line) = head.strip_prefix(b"#!") else {
        let metadata = file.metadata()?;
        let owner = (metadata.mode(), metadata.uid(), metadata.gid());
        if is_privileged(owner, caller) || has_capabilities(path, caller) {
            return Ok(Some(Obstacle::Privileged));
        }
        return Ok(of_elf(elf::read(&file)?));
    };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let Some(interpreter) = interpreter(line, caller) else {
        return Ok(Some(Obstacle::Unknown));
    };
    if more == 0 || find::check(&interpreter).is_err() {
        return Ok(Some(Obstacle::NoInterpreter(interpreter)));
    }
    let obstacle = follow(&interpreter, caller, more - 1)?;
    Ok(obstacle.map(|obstacle| Obstacle::Interpreter(interpreter, Box::new(obstacle))))
}

/// Returns the interpreter that the first line of a script names. `env` finds and runs another, so
/// that one is meant.
fn interpreter(line: &[u8], caller: &Caller) -> Option<PathBuf> {
    let mut words = line
        .split(|byte| b" \t".contains(byte))
        .filter(|word| !word.is_empty());
    let first = Path::new(OsStr::from_bytes(words.next()?));
    if first.file_name() != Some(OsStr::new("env")) {
        return Some(first.to_owned());
    }
    // Options of `env`, and variables.
    let mut words = words.skip_while(|word| word.starts_with(b"-") || word.contains(&b'='));
    let Some(name) = words.next().map(OsStr::from_bytes) else {
        return Some(first.to_owned());
    };
    match find::program(name, caller.path.as_deref()) {
        Ok(path) => Some(path),
        Err(_) => Some(PathBuf::from(name)),
    }
}

/// Returns whether a file with this mode, user and group gives other rights than its caller has.
fn is_privileged((mode, uid, gid): (u32, u32, u32), caller: &Caller) -> bool {
    const SET_USER: u32 = 0o4000;
    // Without the right to run it, the bit means something else.
    const SET_GROUP: u32 = 0o2010;
    (mode & SET_USER != 0 && uid != caller.uid)
        || (mode & SET_GROUP == SET_GROUP && gid != caller.gid)
}

/// Returns whether a file gives its caller capabilities. Root has them all.
fn has_capabilities(path: &Path, caller: &Caller) -> bool {
    let mut value = [0_u8; 64];
    caller.uid != 0 && rustix::fs::getxattr(path, "security.capability", &mut value).is_ok()
}

/// Returns what is against virtual threads in an ELF file, if anything is.
fn of_elf(elf: Elf) -> Option<Obstacle> {
    let program = match elf {
        Elf::None => return Some(Obstacle::Unknown),
        Elf::ThirtyTwoBit => return Some(Obstacle::ThirtyTwoBit),
        Elf::OtherMachine(processor) => return Some(Obstacle::OtherMachine(processor)),
        Elf::Program(program) => program,
    };
    if program.is_go {
        return Some(Obstacle::Go);
    }
    let Some(linker) = program.interpreter else {
        return Some(Obstacle::Static);
    };
    let name = linker.rsplit('/').next().unwrap_or_default();
    if !name.starts_with(THIS.linker()) {
        return Some(Obstacle::OtherLibc(linker));
    }
    if program.has_threads {
        return Some(Obstacle::OwnThreads);
    }
    const SANITIZERS: [&str; 5] = [
        "libasan.",
        "libtsan.",
        "libhwasan.",
        "liblsan.",
        "libclang_rt.",
    ];
    let is_sanitizer = |name: &String| SANITIZERS.iter().any(|start| name.starts_with(start));
    program
        .needed
        .into_iter()
        .find(is_sanitizer)
        .map(Obstacle::Sanitizer)
}

#[cfg(test)]
pub mod tests;

//! The facts about an executable, read from its file.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use object::elf::{DF_1_PIE, ET_DYN};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, Object, ObjectSymbol};

use crate::arch::{Processor, THIS};

/// Functions that pirn defines and that every program needs. It defines some 400 more.
pub const ESSENTIAL: [&str; 22] = [
    "accept4",
    "clock_nanosleep",
    "close",
    "connect",
    "epoll_wait",
    "nanosleep",
    "open64",
    "poll",
    "pthread_cond_wait",
    "pthread_create",
    "pthread_getspecific",
    "pthread_join",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_setspecific",
    "read",
    "recv",
    "sched_yield",
    "send",
    "sem_wait",
    "syscall",
    "write",
];

/// An allocator with per-thread caches.
struct Allocator {
    name: &'static str,
    /// The prefixes of its symbols.
    prefixes: &'static [&'static str],
    /// The parts before and after its name in a text that it contains, even in a stripped program.
    /// (In one piece it would be a text of this program.)
    text: Option<(&'static str, &'static str)>,
}

const ALLOCATORS: [Allocator; 4] = [
    Allocator {
        name: "jemalloc",
        prefixes: &["_rjem_", "je_arena", "je_malloc"],
        text: Some(("<", ">: ")),
    },
    Allocator {
        name: "mimalloc",
        prefixes: &["mi_malloc", "mi_heap_", "_mi_page_"],
        text: Some(("", ": error: ")),
    },
    Allocator {
        name: "tcmalloc",
        prefixes: &["tc_malloc", "TCMallocInternal"],
        text: None,
    },
    Allocator {
        name: "snmalloc",
        prefixes: &["sn_rust_", "sn_malloc", "_ZN8snmalloc"],
        text: None,
    },
];

impl Allocator {
    /// Returns whether it is in a program with these bytes and symbols, or in a library that it
    /// names.
    fn is_in(&self, bytes: &[u8], symbols: &[&str], needed: &[String]) -> bool {
        let is_its = |symbol: &&str| {
            self.prefixes
                .iter()
                .any(|prefix| symbol.starts_with(prefix))
        };
        let text = |(before, after)| [before, self.name, after].concat();
        needed.iter().any(|library| library.contains(self.name))
            || symbols.iter().any(is_its)
            || self
                .text
                .is_some_and(|around| contains(bytes, text(around).as_bytes()))
    }
}

/// A text that every program with pirn contains: the name of its carriers.
const MARK: &[u8] = b"pirn-carrier-";

/// The kind of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// Not a program for this system, but this.
    Other(&'static str),
    /// An ELF file for this processor.
    Elf(Elf),
}

/// An ELF file for this processor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Elf {
    /// The dynamic linker that it asks for.
    pub interpreter: Option<String>,
    /// Whether it is a shared library.
    pub is_library: bool,
    /// The libraries that it names.
    pub needed: Vec<String>,
    /// Whether it runs with the rights of its owner or group.
    pub is_setuid: bool,
    /// Whether it contains pirn.
    pub has_pirn: bool,
    /// The functions of [`ESSENTIAL`] that it does not define for its libraries.
    pub missing: Vec<&'static str>,
    /// Allocators that it contains or names.
    pub allocators: Vec<&'static str>,
    /// Whether one of them seems to be in `pirn::OnCarrier`.
    pub has_wrapper: bool,
    /// Whether it has no symbols but those for dynamic linking.
    pub is_stripped: bool,
}

impl Program {
    /// Reads an executable.
    pub fn read(path: &Path) -> io::Result<Program> {
        let mode = fs::metadata(path)?.mode();
        let bytes = fs::read(path)?;
        Program::parse(&bytes, mode & 0o6000 != 0)
    }

    fn parse(bytes: &[u8], is_setuid: bool) -> io::Result<Program> {
        match FileKind::parse(bytes) {
            Ok(FileKind::Elf64) => {}
            Ok(FileKind::Elf32) => return Ok(Program::Other("a 32-bit program")),
            _ if bytes.starts_with(b"#!") => return Ok(Program::Other("a script")),
            _ => return Ok(Program::Other("not an ELF file")),
        }
        let file = ElfFile64::<Endianness>::parse(bytes).map_err(io::Error::other)?;
        let header = file.elf_header();
        if Processor::of(header.e_machine(file.endian())) != Some(THIS) {
            return Ok(Program::Other("a program for another processor"));
        }
        let elf = Elf::of(&file, bytes, is_setuid).map_err(io::Error::other)?;
        Ok(Program::Elf(elf))
    }
}

impl Elf {
    fn of(file: &ElfFile64<'_>, bytes: &[u8], is_setuid: bool) -> object::Result<Elf> {
        let dynamic = Dynamic::of(file, bytes)?;
        let defined: Vec<&str> = file
            .dynamic_symbols()
            .filter(|symbol| symbol.is_definition())
            .filter_map(|symbol| symbol.name().ok())
            .collect();
        let names: Vec<&str> = file
            .symbols()
            .filter_map(|symbol| symbol.name().ok())
            .collect();
        let needed = dynamic.needed;
        let symbols = [&names[..], &defined].concat();
        let allocators = ALLOCATORS
            .iter()
            .filter(|a| a.is_in(bytes, &symbols, &needed));
        let is_dynamic = file.elf_header().e_type(file.endian()) == ET_DYN;
        Ok(Elf {
            is_library: dynamic.interpreter.is_none() && is_dynamic && !dynamic.is_pie,
            interpreter: dynamic.interpreter,
            is_setuid,
            has_pirn: contains(bytes, MARK),
            missing: ESSENTIAL
                .into_iter()
                .filter(|name| !defined.contains(name))
                .collect(),
            allocators: allocators.map(|allocator| allocator.name).collect(),
            has_wrapper: names.iter().any(|name| name.contains("OnCarrier")),
            is_stripped: names.iter().all(|name| name.is_empty()),
            needed,
        })
    }
}

/// The part that the dynamic linker reads.
#[derive(Default)]
struct Dynamic {
    interpreter: Option<String>,
    needed: Vec<String>,
    is_pie: bool,
}

impl Dynamic {
    fn of(file: &ElfFile64<'_>, bytes: &[u8]) -> object::Result<Dynamic> {
        let endian = file.endian();
        let mut dynamic = Dynamic::default();
        for header in file.elf_program_headers() {
            if let Some(path) = header.interpreter(endian, bytes)? {
                dynamic.interpreter = Some(String::from_utf8_lossy(path).into_owned());
            }
        }
        let sections = file.elf_section_table();
        if let Some((entries, strings)) = sections.dynamic(endian, bytes)? {
            let strings = sections.strings(endian, bytes, strings)?;
            for entry in entries {
                let value = entry.d_val(endian);
                match entry.d_tag(endian) {
                    object::elf::DT_NEEDED => {
                        let name = entry.string(endian, strings)?;
                        dynamic
                            .needed
                            .push(String::from_utf8_lossy(name).into_owned());
                    }
                    object::elf::DT_FLAGS_1 => {
                        dynamic.is_pie = value & DF_1_PIE.0 != 0;
                    }
                    _ => {}
                }
            }
        }
        Ok(dynamic)
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests;

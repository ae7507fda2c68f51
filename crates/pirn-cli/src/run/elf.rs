//! What is in a program's file, as far as preloading depends on it. Only the parts that matter are
//! read: a program may be hundreds of megabytes long.

use std::fs::File;
use std::io;

use object::elf::{FileHeader64, PT_NOTE};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, FileKind, Object, ObjectSection, ObjectSymbol};

use crate::arch::{Processor, THIS};

/// The kind of a file.
#[derive(Debug, PartialEq)]
pub enum Elf {
    /// It is not an ELF file.
    None,
    ThirtyTwoBit,
    /// It is for another processor: one that Pirn runs on, or none of them.
    OtherMachine(Option<Processor>),
    Program(Program),
}

/// An ELF file for this processor.
#[derive(Debug, Default, PartialEq)]
pub struct Program {
    /// The dynamic linker that it asks for.
    pub interpreter: Option<String>,
    /// The libraries that it names.
    pub needed: Vec<String>,
    /// Whether it has been built by Go's tools.
    pub is_go: bool,
    /// Whether it defines `pthread_create` for all.
    pub has_threads: bool,
}

/// Reads a file.
///
/// # Errors
/// It cannot be read, or breaks off.
pub fn read(file: &File) -> io::Result<Elf> {
    let data = &ReadCache::new(file);
    match FileKind::parse(data) {
        Ok(FileKind::Elf64) => {}
        Ok(FileKind::Elf32) => return Ok(Elf::ThirtyTwoBit),
        _ => return Ok(Elf::None),
    }
    let header = FileHeader64::<Endianness>::parse(data).map_err(io::Error::other)?;
    let endian = header.endian().map_err(io::Error::other)?;
    let processor = Processor::of(header.e_machine(endian));
    if processor != Some(THIS) {
        return Ok(Elf::OtherMachine(processor));
    }
    parse(data).map(Elf::Program).map_err(io::Error::other)
}

fn parse<'a, R: ReadRef<'a>>(data: R) -> object::Result<Program> {
    let file = ElfFile64::<Endianness, R>::parse(data)?;
    let endian = file.endian();
    let mut program = Program::default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for header in file.elf_program_headers() {
        if let Some(path) = header.interpreter(endian, data)? {
            program.interpreter = Some(text(path));
        }
        if header.p_type(endian) == PT_NOTE {
            program.is_go |= has_go_note(header.data(endian, data).unwrap_or_default());
        }
    }
    program.is_go |= file.sections().any(|s| s.name() == Ok(".go.buildinfo"));
    let sections = file.elf_section_table();
    if let Some((entries, strings)) = sections.dynamic(endian, data)? {
        let strings = sections.strings(endian, data, strings)?;
        for entry in entries {
            if entry.d_tag(endian) == object::elf::DT_NEEDED {
                program.needed.push(text(entry.string(endian, strings)?));
            }
        }
    }
    program.has_threads = file
        .dynamic_symbols()
        .any(|symbol| symbol.is_definition() && symbol.name() == Ok("pthread_create"));
    Ok(program)
}

/// Returns whether one of some notes is Go's build id. Each has three lengths (name, contents and a
/// type), and two texts that are padded to four bytes.
fn has_go_note(mut notes: &[u8]) -> bool {
    loop {
        let Some((head, rest)) = notes.split_first_chunk::<12>() else {
            return false;
        };
        let word = |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
        let (name, contents) = (word(0) as usize, word(4) as usize);
        if rest.get(..name) == Some(b"Go\0\0") {
            return true;
        }
        let length = name.next_multiple_of(4) + contents.next_multiple_of(4);
        let Some(next) = rest.get(length..) else {
            return false;
        };
        notes = next;
    }
}

#[cfg(test)]
mod tests;

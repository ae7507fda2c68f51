//! What is where in a core file of Linux for this processor: memory, mapped files, registers.
//!
//! Such a file may be a terabyte of holes, so only what is asked for is read.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::arch;

#[cfg(test)]
mod tests;

/// See the module's documentation.
pub struct CoreFile {
    file: File,
    /// The memory in the file, in the order of addresses: addresses, and the place in the file.
    parts: Vec<(Range<u64>, u64)>,
    /// The mapped files.
    pub files: Vec<Mapped>,
    /// The platform threads; the first is the one that ended the process.
    pub threads: Vec<Registers>,
    pub pid: u32,
}

/// A part of a file that was mapped.
pub struct Mapped {
    pub addresses: Range<u64>,
    /// Where the part begins in the file.
    pub offset: u64,
    pub path: Vec<u8>,
}

/// Registers of a platform thread.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    pub tid: u32,
    pub pc: u64,
    pub sp: u64,
    pub bp: u64,
    /// The link register; 0 on a processor without one.
    pub lr: u64,
}

/// Bytes of headers, and kinds of them: `elf(5)`.
const ELF_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// Kinds of notes of the name "CORE".
const NT_PRSTATUS: u32 = 1;
const NT_FILE: u32 = 0x4649_4c45;
/// The places in `struct elf_prstatus` of the thread's number and of the registers.
const PID: usize = 32;
const REGISTERS: usize = 112;
/// Notes may be as long as this; one with 65,000 threads is.
const MOST_NOTES: u64 = 256 << 20;

impl CoreFile {
    /// Reads the headers of a core file.
    pub fn open(path: &Path) -> Result<CoreFile, Box<dyn Error>> {
        let of = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(|error| of(&error))?;
        let mut core = CoreFile {
            file,
            parts: Vec::new(),
            files: Vec::new(),
            threads: Vec::new(),
            pid: 0,
        };
        core.read_headers().map_err(|error| of(&error))?;
        if core.threads.is_empty() {
            let none = format_args!("no core file of Linux for {}", std::env::consts::ARCH);
            return Err(of(&none).into());
        }
        core.pid = core.threads[0].tid;
        core.parts.sort_by_key(|(addresses, _)| addresses.start);
        Ok(core)
    }

    fn read_headers(&mut self) -> io::Result<()> {
        let mut header = [0; ELF_HEADER];
        self.file.read_exact_at(&mut header, 0)?;
        const CORE: u32 = 4 | (arch::MACHINE as u32) << 16; // the type; the machine
        if header[..6] != *b"\x7fELF\x02\x01" || number(&header, 16) != CORE {
            return Ok(());
        }
        let (programs, sections) = (wide(&header, 32), wide(&header, 40));
        let mut count = number(&header, 56) & 0xffff;
        if count == 0xffff {
            // More mappings than fit: the first section says how many.
            let mut section = [0; 64];
            self.file.read_exact_at(&mut section, sections)?;
            count = number(&section, 44);
        }
        for index in 0..u64::from(count) {
            let mut header = [0; PROGRAM_HEADER];
            let at = programs.saturating_add(index * PROGRAM_HEADER as u64);
            self.file.read_exact_at(&mut header, at)?;
            let [offset, start, len] = [8, 16, 32].map(|at| wide(&header, at));
            match number(&header, 0) {
                PT_LOAD if len > 0 => {
                    let end = start.saturating_add(len);
                    self.parts.push((start..end, offset));
                }
                PT_NOTE => {
                    let mut notes = vec![0; len.min(MOST_NOTES) as usize];
                    self.file.read_exact_at(&mut notes, offset)?;
                    self.read_notes(&notes);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_notes(&mut self, mut notes: &[u8]) {
        while notes.len() >= 12 {
            let [name, len] = [0, 4].map(|at| number(notes, at) as usize);
            let kind = number(notes, 8);
            // Numbers of 32 bits, so nothing overflows.
            let start = 12 + name.next_multiple_of(4);
            let Some(note) = notes.get(start..start + len) else {
                return;
            };
            match kind {
                NT_PRSTATUS if len >= REGISTERS + arch::REGISTERS => {
                    let register = |at| wide(note, REGISTERS + at);
                    self.threads.push(Registers {
                        tid: number(note, PID),
                        pc: register(arch::PC),
                        sp: register(arch::SP),
                        bp: register(arch::BP),
                        lr: arch::LR.map_or(0, register),
                    });
                }
                NT_FILE => self.read_files(note),
                _ => {}
            }
            notes = &notes[(start + len.next_multiple_of(4)).min(notes.len())..];
        }
    }

    /// Reads the list of mapped files: their number, the size of a page, three words each, and
    /// their paths.
    fn read_files(&mut self, note: &[u8]) {
        if note.len() < 16 {
            return;
        }
        let (count, page) = (wide(note, 0) as usize, wide(note, 8));
        let Some(paths) = count.checked_mul(24).and_then(|len| note.get(16 + len..)) else {
            return;
        };
        let entries = note[16..].chunks_exact(24);
        for (entry, path) in entries.zip(paths.split(|byte| *byte == 0)).take(count) {
            self.files.push(Mapped {
                addresses: wide(entry, 0)..wide(entry, 8),
                offset: wide(entry, 16).saturating_mul(page),
                path: path.to_vec(),
            });
        }
    }

    /// Fills `bytes` from an address on. What the kernel leaves out because it is in a mapped file
    /// is read there.
    pub fn read(&self, mut address: u64, mut bytes: &mut [u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let after = self
                .parts
                .partition_point(|(part, _)| part.start <= address);
            let part = after.checked_sub(1).map(|index| &self.parts[index]);
            let Some((part, offset)) = part.filter(|(part, _)| part.contains(&address)) else {
                return self.read_mapped(address, bytes);
            };
            let len = bytes.len().min((part.end - address) as usize);
            let (now, rest) = bytes.split_at_mut(len);
            let at = offset.saturating_add(address - part.start);
            self.file.read_exact_at(now, at)?;
            (bytes, address) = (rest, address + len as u64);
        }
        Ok(())
    }

    fn read_mapped(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut files = self.files.iter();
        let Some(mapped) = files.find(|mapped| mapped.addresses.contains(&address)) else {
            return Err(io::Error::other("not in the core file"));
        };
        let at = mapped
            .offset
            .saturating_add(address - mapped.addresses.start);
        File::open(mapped.path())?.read_exact_at(bytes, at)
    }

    /// Returns whether a file is still the one that was mapped, as far as the core file tells: the
    /// kernel keeps the first page of each.
    pub fn has_mapped(&self, path: &[u8], file: &[u8]) -> bool {
        let mut files = self.files.iter();
        let Some(first) = files.find(|mapped| mapped.offset == 0 && mapped.path == path) else {
            return true;
        };
        let start = first.addresses.start;
        let mut page = vec![0; file.len().min(4096)];
        let is_kept = self.parts.iter().any(|(part, _)| part.contains(&start));
        !is_kept || self.read(start, &mut page).is_err() || file.starts_with(&page)
    }
}

impl Mapped {
    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }
}

/// Returns the number of four bytes at this place.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Returns the number of eight bytes at this place.
fn wide(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

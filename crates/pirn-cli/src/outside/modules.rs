//! The program and its libraries, by their files.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use object::elf::{FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian as Little, Object, ObjectSection, ObjectSymbol};
use pirn_dump::Module;

use super::core_file::CoreFile;

/// See the module's documentation.
pub struct Modules(pub Vec<Loaded>);

/// A piece of code of a file.
pub struct Loaded {
    pub module: Module,
    pub file: Arc<ElfBytes>,
}

/// A file, whole.
pub struct ElfBytes(Vec<u8>);

/// A mapping of a file.
struct Mapping {
    addresses: Range<u64>,
    offset: u64,
    path: Vec<u8>,
    /// Where the file can be read.
    at: Vec<PathBuf>,
}

impl Modules {
    /// Returns what a process has mapped, also of files that have been deleted or are in its own
    /// file system.
    pub fn of_process(pid: u32) -> Result<Modules, Box<dyn Error>> {
        let maps = fs::read(format!("/proc/{pid}/maps"))
            .map_err(|error| format!("no process {pid}: {error}"))?;
        let lines = maps.split(|byte| *byte == b'\n');
        let mappings = lines.filter_map(|line| mapping(pid, line));
        Ok(Modules::load(mappings, |_, _| true))
    }

    /// Returns what was mapped, as far as the files are still there.
    pub fn of_core(core: &CoreFile) -> Result<Modules, Box<dyn Error>> {
        let mappings = core.files.iter().map(|file| Mapping {
            addresses: file.addresses.clone(),
            offset: file.offset,
            path: file.path.clone(),
            at: vec![file.path().to_owned()],
        });
        let modules = Modules::load(mappings, |path, bytes| core.has_mapped(path, bytes));
        if modules.0.is_empty() {
            return Err("the files that the core file names are not here, or not the same".into());
        }
        Ok(modules)
    }

    fn load(
        mappings: impl Iterator<Item = Mapping>,
        is_it: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Modules {
        let mut files: HashMap<Vec<u8>, Option<Arc<ElfBytes>>> = HashMap::new();
        let mut modules = Vec::new();
        for mapping in mappings {
            let file = files.entry(mapping.path.clone()).or_insert_with(|| {
                let read = mapping.at.iter().find_map(|path| fs::read(path).ok())?;
                let is_it = read.starts_with(b"\x7fELF") && is_it(&mapping.path, &read);
                is_it.then(|| Arc::new(ElfBytes(read)))
            });
            let Some(file) = file else { continue };
            let Some(bias) = file.bias(&mapping) else {
                continue;
            };
            modules.push(Loaded {
                module: Module {
                    path: mapping.path,
                    build_id: file.build_id(),
                    bias,
                    start: mapping.addresses.start,
                    end: mapping.addresses.end,
                    offset: mapping.offset,
                },
                file: Arc::clone(file),
            });
        }
        modules.sort_by_key(|loaded| loaded.module.start);
        Modules(modules)
    }

    /// Returns the module whose code an address is in.
    pub fn at(&self, address: u64) -> Option<&Loaded> {
        let after = self.0.partition_point(|it| it.module.start <= address);
        let loaded = &self.0[after.checked_sub(1)?];
        (address < loaded.module.end).then_some(loaded)
    }

    /// Returns the path of the first file with pirn in it.
    pub fn program(&self) -> String {
        let program = self.0.iter().find(|it| it.file.debug_table().is_some());
        program.map_or(String::new(), |it| {
            String::from_utf8_lossy(&it.module.path).into_owned()
        })
    }
}

/// Parses a line of `/proc/PID/maps`, if it is about code of a file.
fn mapping(pid: u32, line: &[u8]) -> Option<Mapping> {
    let line = std::str::from_utf8(line).ok()?;
    let mut fields = line.splitn(6, ' ');
    let range = fields.next()?;
    let (start, end) = range.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    if fields.next()?.as_bytes().get(2) != Some(&b'x') {
        return None;
    }
    let offset = hex(fields.next()?)?;
    let name = fields.nth(2)?.trim_start();
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    name.starts_with('/').then(|| Mapping {
        addresses: hex(start).unwrap_or(0)..hex(end).unwrap_or(0),
        offset,
        path: name.into(),
        at: vec![
            format!("/proc/{pid}/map_files/{range}").into(),
            format!("/proc/{pid}/root{name}").into(),
        ],
    })
}

impl ElfBytes {
    pub fn elf(&self) -> Option<ElfFile64<'_, Little>> {
        ElfFile64::parse(&*self.0).ok()
    }

    /// Returns what to subtract from an address in a mapping to get the file's own, if the mapping
    /// is of code.
    fn bias(&self, mapping: &Mapping) -> Option<u64> {
        let header = FileHeader64::<Little>::parse(&*self.0).ok()?;
        let endian = header.endian().ok()?;
        let mut headers = header.program_headers(endian, &*self.0).ok()?.iter();
        let code = headers.find(|part| {
            let (start, len) = part.file_range(endian);
            let pages = start & !0xfff..start.saturating_add(len);
            part.p_type(endian) == PT_LOAD
                && part.p_flags(endian).0 & PF_X.0 != 0
                && pages.contains(&mapping.offset)
        })?;
        let own = code.p_vaddr(endian).wrapping_sub(code.p_offset(endian));
        let own = own.wrapping_add(mapping.offset);
        Some(mapping.addresses.start.wrapping_sub(own))
    }

    fn build_id(&self) -> Vec<u8> {
        let id = self
            .elf()
            .and_then(|elf| Some(elf.build_id().ok()??.to_vec()));
        id.unwrap_or_default()
    }

    /// Returns the file's own address of `PIRN_DEBUG`.
    pub fn debug_table(&self) -> Option<u64> {
        let elf = self.elf()?;
        let section = elf.section_by_name(".pirn_debug");
        section.map(|section| section.address())
    }

    /// Returns the addresses of the functions that the file defines for others, sorted.
    pub fn exported(&self) -> Vec<(u64, u64)> {
        let Some(elf) = self.elf() else {
            return Vec::new();
        };
        let symbols = elf.dynamic_symbols().filter(ObjectSymbol::is_definition);
        let mut all: Vec<_> = symbols
            .map(|symbol| (symbol.address(), symbol.size()))
            .collect();
        all.sort_unstable();
        all
    }
}

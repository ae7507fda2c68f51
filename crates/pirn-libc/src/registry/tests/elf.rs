//! The part of an ELF file that the tests need: its dynamic symbols.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A function in a table of dynamic symbols.
pub(super) struct Symbol {
    pub(super) name: String,
    /// Its address; 0 if another file must define it.
    pub(super) value: usize,
    /// Its version, if it has one.
    pub(super) version: Option<String>,
    /// It exists for programs that were linked with an older version of the library.
    pub(super) old: bool,
}

struct Elf(Vec<u8>);

/// Offset, size and related section of a section.
#[derive(Clone, Copy)]
struct Section {
    at: usize,
    size: usize,
    link: usize,
}

const DYNSYM: usize = 11;
const VERDEF: usize = 0x6fff_fffd;
const VERSYM: usize = 0x6fff_ffff;
const FUNCTION: usize = 2;
const HIDDEN: usize = 0x8000;

/// Returns the functions that a shared library or an executable defines or refers to.
pub(super) fn functions(path: &Path) -> Vec<Symbol> {
    let elf = Elf(fs::read(path).unwrap());
    let table = elf.find(DYNSYM).expect("a table of dynamic symbols");
    let names = elf.section(table.link).at;
    let versions = elf
        .find(VERDEF)
        .map_or_else(BTreeMap::new, |s| elf.versions(s));
    let version = |index: usize| match elf.find(VERSYM) {
        Some(numbers) => elf.number(numbers.at + 2 * index, 2),
        None => 0,
    };
    (0..table.size / 24)
        .map(|index| (index, table.at + 24 * index))
        .filter(|&(_, at)| elf.number(at + 4, 1) & 0xf == FUNCTION)
        .map(|(index, at)| Symbol {
            name: elf.text(names + elf.number(at, 4)),
            value: elf.number(at + 8, 8),
            version: versions.get(&(version(index) & !HIDDEN)).cloned(),
            old: version(index) & HIDDEN != 0,
        })
        .collect()
}

impl Elf {
    fn number(&self, at: usize, bytes: usize) -> usize {
        let bytes = &self.0[at..at + bytes];
        bytes
            .iter()
            .rev()
            .fold(0, |number, &byte| number << 8 | usize::from(byte))
    }

    fn text(&self, at: usize) -> String {
        let rest = &self.0[at..];
        let end = rest.iter().position(|&byte| byte == 0).unwrap();
        String::from_utf8(rest[..end].to_vec()).unwrap()
    }

    fn header(&self, index: usize) -> usize {
        self.number(0x28, 8) + index * self.number(0x3a, 2)
    }

    fn section(&self, index: usize) -> Section {
        let header = self.header(index);
        Section {
            at: self.number(header + 0x18, 8),
            size: self.number(header + 0x20, 8),
            link: self.number(header + 0x28, 4),
        }
    }

    /// Returns the section of a type that occurs at most once.
    fn find(&self, kind: usize) -> Option<Section> {
        let mut all = 0..self.number(0x3c, 2);
        let index = all.find(|&index| self.number(self.header(index) + 4, 4) == kind)?;
        Some(self.section(index))
    }

    /// Returns the names of the versions that the file defines, by their numbers.
    fn versions(&self, table: Section) -> BTreeMap<usize, String> {
        let names = self.section(table.link).at;
        let mut versions = BTreeMap::new();
        let mut at = table.at;
        loop {
            let name = self.number(at + self.number(at + 12, 4), 4);
            versions.insert(self.number(at + 4, 2), self.text(names + name));
            match self.number(at + 16, 4) {
                0 => return versions,
                next => at += next,
            }
        }
    }
}

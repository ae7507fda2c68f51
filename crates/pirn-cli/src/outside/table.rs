//! `PIRN_DEBUG`: the names and values with which a program says where its data are. Its layout, and
//! the names, are in `docs/debugging.md`.

use std::collections::HashMap;
use std::error::Error;

use super::memory::Memory;
use super::modules::Modules;

/// See the module's documentation.
pub struct Table(HashMap<String, u64>);

const NAME: usize = 24;

impl Table {
    /// Finds the table in a program with pirn.
    pub fn find(memory: &Memory, modules: &Modules) -> Result<Table, Box<dyn Error>> {
        let mut places = modules.0.iter().filter_map(|loaded| {
            let own = loaded.file.debug_table()?;
            Some(own.wrapping_add(loaded.module.bias))
        });
        let address = places.next().ok_or("there is no pirn in this program")?;
        Table::read(memory, address)
    }

    fn read(memory: &Memory, address: u64) -> Result<Table, Box<dyn Error>> {
        let head = memory.bytes(address, 24)?;
        let number =
            |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default());
        let (version, stride, count) = (number(8), number(12) as usize, number(16) as usize);
        if head[..8] != *b"PIRNDBG\0"
            || version != 1
            || !(32..4096).contains(&stride)
            || count > 4096
        {
            return Err("the program's PIRN_DEBUG is not what this version of pirn knows".into());
        }
        let entries = memory.bytes(address + 24, stride * count)?;
        let entries = entries.chunks_exact(stride).map(|entry| {
            let (name, rest) = entry.split_at(NAME);
            let name = String::from_utf8_lossy(name);
            let value = rest
                .first_chunk()
                .map_or(0, |bytes| u64::from_le_bytes(*bytes));
            (name.trim_end_matches('\0').to_owned(), value)
        });
        Ok(Table(entries.collect()))
    }

    /// Returns a value that no reader can do without.
    pub fn get(&self, name: &str) -> Result<u64, Box<dyn Error>> {
        let missing = || format!("the program's PIRN_DEBUG does not say `{name}`");
        Ok(self.0.get(name).copied().ok_or_else(missing)?)
    }

    /// Returns a value that other versions may lack.
    pub fn maybe(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Returns the library's version.
    pub fn version(&self, memory: &Memory) -> String {
        let text = self.maybe("version").and_then(|at| memory.text_to_zero(at));
        text.unwrap_or_else(|| "pirn".into())
    }

    /// Returns the number of processors; 0 if there is no runtime.
    pub fn parallelism(&self, memory: &Memory) -> u32 {
        let read = || {
            let runtime = memory.word(self.maybe("runtime")?).ok()?;
            memory
                .word(runtime.checked_add(self.maybe("runtime.parallelism")?)?)
                .ok()
        };
        read().unwrap_or(0) as u32
    }
}

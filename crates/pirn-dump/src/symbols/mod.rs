//! Names of functions, from the symbol tables and the debug information of ELF files.

mod demangle;
mod files;
#[cfg(test)]
mod tests;

use crate::model::{Dump, Module};
use crate::names::{Frame, Names};
use addr2line::Loader;
use files::{Files, Found};
use std::collections::HashMap;
use std::path::PathBuf;

/// Finds names of frames in the files that a process has mapped.
///
/// A file counts as the right one if it has the [`Module`]'s build id. It is looked for where the
/// process sees it (`/proc/PID/root`), among its mappings, as `/proc/PID/exe`, and on this machine;
/// its debug information also where distributions put it, by build id and debug link.
///
/// # Examples
/// ```
/// use pirn_dump::{Dump, Symbols};
/// let mut symbols = Symbols::of_process(std::process::id());
/// let names = symbols.names(&Dump::default());
/// assert!(symbols.problems().is_empty());
/// # let _ = names;
/// ```
pub struct Symbols {
    files: Files,
    /// What has been found, by build id and path.
    loaded: HashMap<(Vec<u8>, Vec<u8>), Option<Tables>>,
    problems: Vec<String>,
}

/// The tables of one module.
struct Tables {
    /// The file with debug information, if there is any, or else the module's own.
    main: Loader,
    /// The module's own file, if the debug information is in another.
    own: Option<Loader>,
}

impl Symbols {
    /// Finds names for a process that runs on this machine, by its id as this process sees it.
    pub fn of_process(pid: u32) -> Symbols {
        Symbols::with(Files::of_process(Some(PathBuf::from(format!(
            "/proc/{pid}"
        )))))
    }

    /// Finds names for this process itself, whichever namespace it is in.
    pub fn of_self() -> Symbols {
        Symbols::with(Files::of_process(Some(PathBuf::from("/proc/self"))))
    }

    /// Finds names for a process that has ended, or of another machine, in the files of this one.
    pub fn of_files() -> Symbols {
        Symbols::with(Files::of_process(None))
    }

    fn with(files: Files) -> Symbols {
        Symbols {
            files,
            loaded: HashMap::new(),
            problems: Vec::new(),
        }
    }

    /// Finds the names of all frames of a dump.
    pub fn names(&mut self, dump: &Dump) -> Names {
        let mut names = Names::by(dump, |module, address| self.frames(module, address));
        names.add_variables(dump, |module, address| self.variable(module, address));
        names
    }

    /// Returns the name of the variable that an address of a module's symbol table lies in.
    fn variable(&mut self, module: &Module, address: u64) -> Option<String> {
        // Beyond the sizes of programs; what is behind them is the heap.
        if address > 1 << 32 {
            return None;
        }
        let (name, offset) = self.symbol(module, address)?;
        // The linker's own symbols, the last of which has no end.
        if ["_end", "end", "_edata", "edata", "__bss_start"].contains(&name.as_str()) {
            return None;
        }
        Some(if offset == 0 {
            name
        } else {
            format!("{name}+{offset:#x}")
        })
    }

    /// Returns the calls at an address of a module's symbol table, innermost first: several, if the
    /// compiler put one into the other. Empty if nothing is known.
    pub fn frames(&mut self, module: &Module, address: u64) -> Vec<Frame> {
        self.tables(module)
            .map_or_else(Vec::new, |tables| tables.frames(address))
    }

    /// Returns the name of the variable or function that an address of a module's symbol table lies
    /// in, and how far behind its beginning.
    pub fn symbol(&mut self, module: &Module, address: u64) -> Option<(String, u64)> {
        self.tables(module)?.symbol(address)
    }

    /// Returns what was missing: one line per module of which there is no name to be had.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    fn tables(&mut self, module: &Module) -> Option<&Tables> {
        let key = (module.build_id.clone(), module.path.clone());
        let loaded = self.loaded.entry(key).or_insert_with(|| {
            let found = self.files.find(module);
            match found.and_then(|found| Tables::load(&found)) {
                Ok(tables) => Some(tables),
                Err(problem) => {
                    // The kernel's own code is in no file.
                    if module.path.starts_with(b"/") {
                        let path = String::from_utf8_lossy(&module.path).into_owned();
                        self.problems
                            .push(format!("no names for {path}: {problem}"));
                    }
                    None
                }
            }
        });
        loaded.as_ref()
    }
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols")
            .field("modules", &self.loaded.len())
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

impl Tables {
    fn load(found: &Found) -> Result<Tables, String> {
        let load = |path: &PathBuf| {
            Loader::new_with_sup(path, found.supplement.as_ref())
                .or_else(|_| Loader::new(path))
                .map_err(|error| format!("{}: {error}", path.display()))
        };
        match (&found.debug, &found.own) {
            (Some(debug), own) => Ok(Tables {
                main: load(debug)?,
                own: own.as_ref().and_then(|own| load(own).ok()),
            }),
            (None, Some(own)) => Ok(Tables {
                main: load(own)?,
                own: None,
            }),
            (None, None) => Err("the file was not found".to_string()),
        }
    }

    /// Returns the demangled symbol at an address, and how far behind its beginning that is.
    fn symbol(&self, address: u64) -> Option<(String, u64)> {
        let find = |loader: &Loader| {
            let symbol = loader.find_symbol_info(address)?;
            Some((demangle::name(symbol.name()), address - symbol.address()))
        };
        find(&self.main).or_else(|| self.own.as_ref().and_then(find))
    }

    fn frames(&self, address: u64) -> Vec<Frame> {
        let mut frames = self.calls(address);
        let symbol = self.symbol(address);
        if frames.is_empty() && symbol.is_some() {
            frames.push(Frame::default());
        }
        if let (Some(outermost), Some((name, offset))) = (frames.last_mut(), symbol) {
            // With line tables only, names in DWARF lack their path: `handle` for `server::handle`.
            // The symbol table has it, but only for functions that are there themselves. Where
            // linkers have made one function of several with equal code, DWARF has the right one.
            if outermost
                .function
                .as_ref()
                .is_none_or(|name| !name.contains("::"))
            {
                outermost.function = Some(name);
            }
            outermost.offset = Some(offset);
        }
        frames
    }

    /// Returns the calls that the debug information has for an address.
    fn calls(&self, address: u64) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        let Ok(mut found) = self.main.find_frames(address) else {
            return frames;
        };
        while let Ok(Some(call)) = found.next() {
            let location = call.location;
            let location = location.as_ref();
            frames.push(Frame {
                function: call
                    .function
                    .as_ref()
                    .and_then(|name| name.raw_name().ok().map(|it| demangle::name(&it))),
                file: location.and_then(|it| it.file.map(str::to_string)),
                line: location.and_then(|it| it.line),
                column: location
                    .and_then(|it| it.column)
                    .filter(|column| *column > 0),
                inlined: true,
                ..Frame::default()
            });
            // Damaged debug information may describe more calls than any program has.
            if frames.len() == 256 {
                break;
            }
        }
        if let Some(outermost) = frames.last_mut() {
            outermost.inlined = false;
        }
        frames
    }
}

//! The files in which names are: a module's own, and those with its debug information.

use crate::model::Module;
use object::Object;
use object::read::elf::ElfFile64;
use object::{Endianness, ReadCache};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where distributions put debug information.
const DEBUG: &str = "/usr/lib/debug";

/// Finds files as a process sees them.
pub(super) struct Files {
    /// Its folder in `/proc`, if it still runs.
    proc: Option<PathBuf>,
}

/// The files of a module.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The module's own.
    pub own: Option<PathBuf>,
    /// One with debug information that the module's own has not.
    pub debug: Option<PathBuf>,
    /// One that debug information refers to.
    pub supplement: Option<PathBuf>,
}

/// What a file says about itself.
pub(super) struct Facts {
    pub build_id: Vec<u8>,
    has_debug: bool,
    debug_link: Option<PathBuf>,
    /// The name and the build id of a file that the debug information refers to.
    supplement: Option<(PathBuf, Vec<u8>)>,
}

impl Files {
    pub(super) fn of_process(proc: Option<PathBuf>) -> Files {
        Files { proc }
    }

    /// Finds the files of a module, or says why it has none.
    pub(super) fn find(&self, module: &Module) -> Result<Found, String> {
        if !module.path.starts_with(b"/") && module.build_id.is_empty() {
            return Err("it is in no file".to_string());
        }
        let (own, other) = self.own(module);
        let facts = own.as_deref().and_then(facts);
        let mut found = Found {
            own,
            ..Found::default()
        };
        if !facts.as_ref().is_some_and(|facts| facts.has_debug) {
            let link = facts.as_ref().and_then(|facts| facts.debug_link.as_deref());
            found.debug = self.debug(module, link);
        }
        let described = found.debug.as_deref().and_then(self::facts).or(facts);
        if let Some((name, id)) = described.and_then(|facts| facts.supplement) {
            let beside = found
                .debug
                .as_ref()
                .or(found.own.as_ref())
                .and_then(|path| path.parent());
            let beside = beside.map(|folder| folder.join(&name)).into_iter();
            found.supplement = beside
                .chain(self.everywhere(&by_build_id(&id)))
                .find(|path| has_build_id(path, &id));
        }
        match (&found.own, &found.debug, other) {
            (None, None, true) => {
                Err("the file was replaced since the process started".to_string())
            }
            (None, None, false) => Err("the file was not found".to_string()),
            _ => Ok(found),
        }
    }

    /// Returns the module's own file, and whether there was another with its name.
    fn own(&self, module: &Module) -> (Option<PathBuf>, bool) {
        let path = Path::new(OsStr::from_bytes(&module.path));
        let path = without_deleted(path);
        let mut candidates = Vec::new();
        if path.is_absolute() {
            candidates.extend(self.everywhere(path));
        }
        if let Some(proc) = &self.proc {
            candidates.push(proc.join("exe"));
            candidates.extend(mappings(proc, module));
        }
        let right = |candidate: &PathBuf| {
            // Without a build id only the name can tell.
            let named = module.build_id.is_empty()
                && candidate.ends_with(path.strip_prefix("/").unwrap_or(path));
            named && facts(candidate).is_some() || has_build_id(candidate, &module.build_id)
        };
        match candidates.iter().position(right) {
            Some(number) => (Some(candidates.swap_remove(number)), false),
            None => (None, self.everywhere(path).any(|path| path.is_file())),
        }
    }

    /// Returns the file with a module's debug information, if it is not its own.
    fn debug(&self, module: &Module, link: Option<&Path>) -> Option<PathBuf> {
        let mut candidates = Vec::new();
        if !module.build_id.is_empty() {
            candidates.extend(self.everywhere(&by_build_id(&module.build_id)));
        }
        let path = Path::new(OsStr::from_bytes(&module.path));
        if let (Some(link), Some(folder)) = (link, path.parent()) {
            for beside in [
                folder.join(link),
                folder.join(".debug").join(link),
                under(DEBUG, &folder.join(link)),
            ] {
                candidates.extend(self.everywhere(&beside));
            }
        }
        candidates.into_iter().find(|candidate| {
            // A link without a build id has a checksum. It is not worth reading a gigabyte for.
            facts(candidate).is_some_and(|it| it.has_debug && it.build_id == module.build_id)
        })
    }

    /// Returns a path as the process sees it, and as this process does.
    fn everywhere(&self, path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
        let theirs = self
            .proc
            .as_ref()
            .map(|proc| under(proc.join("root"), path));
        theirs.into_iter().chain([path.to_path_buf()])
    }
}

/// Returns an absolute path below a folder.
fn under(folder: impl AsRef<Path>, path: &Path) -> PathBuf {
    folder.as_ref().join(path.strip_prefix("/").unwrap_or(path))
}

/// Returns the path of debug information by build id.
fn by_build_id(id: &[u8]) -> PathBuf {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (folder, file) = hex.split_at(hex.len().min(2));
    Path::new(DEBUG)
        .join(".build-id")
        .join(folder)
        .join(format!("{file}.debug"))
}

/// Removes what the kernel says of files that are gone.
fn without_deleted(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    Path::new(OsStr::from_bytes(
        bytes.strip_suffix(b" (deleted)").unwrap_or(bytes),
    ))
}

/// Returns the files that a process has mapped where a module is. The kernel shows them to root
/// only; they can be read even if they have been deleted.
fn mappings(proc: &Path, module: &Module) -> Vec<PathBuf> {
    let Ok(folder) = fs::read_dir(proc.join("map_files")) else {
        return Vec::new();
    };
    let inside = |name: &OsStr| {
        let (start, _) = name.to_str()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        Some((module.start..module.end).contains(&start))
    };
    folder
        .filter_map(|entry| entry.ok())
        .filter(|entry| inside(&entry.file_name()).unwrap_or(false))
        .map(|entry| entry.path())
        .take(4)
        .collect()
}

fn has_build_id(path: &Path, id: &[u8]) -> bool {
    !id.is_empty() && facts(path).is_some_and(|facts| facts.build_id == id)
}

/// Reads what a file says about itself. None if it is not an ELF file for this kind of machine.
fn facts(path: &Path) -> Option<Facts> {
    // Opening a pipe would wait for a writer.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    let path_of = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    Some(Facts {
        build_id: file.build_id().ok().flatten().unwrap_or_default().to_vec(),
        has_debug: file.has_debug_symbols(),
        debug_link: file
            .gnu_debuglink()
            .ok()
            .flatten()
            .map(|(name, _)| path_of(name)),
        supplement: file
            .gnu_debugaltlink()
            .ok()
            .flatten()
            .map(|(name, id)| (path_of(name), id.to_vec())),
    })
}

/// Reads what a file says about itself, in tests.
#[cfg(test)]
pub(super) fn facts_of(path: &[u8]) -> Facts {
    facts(Path::new(OsStr::from_bytes(path))).unwrap()
}

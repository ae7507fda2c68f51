//! The facts about a machine, read from its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::arch::{self, ThreadPointer};

/// A machine, as the kernel describes it. `None` means that the kernel does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The processor's name.
    pub processor: Option<String>,
    pub thread_pointer: ThreadPointer,
    /// Bytes of a page of memory.
    pub page: Option<u64>,
    /// `6.18.4-generic`
    pub kernel: Option<String>,
    /// The version of the GNU C library, `2.36`, or the library in its place.
    pub libc: Libc,
    /// `vm.max_map_count`
    pub mappings: Option<u64>,
    /// Limits of open files: soft and hard, and the ceiling of the latter, `fs.nr_open`.
    pub files_soft: Option<u64>,
    pub files_hard: Option<u64>,
    pub files_ceiling: Option<u64>,
    /// The maximum number of processes and threads: of the user, and of the cgroup.
    pub threads_of_user: Option<u64>,
    pub threads_of_cgroup: Option<u64>,
    /// The limit of address space, in bytes.
    pub address_space: Option<u64>,
    /// The available memory, and the total that the cgroup allows, in bytes.
    pub memory_available: Option<u64>,
    pub memory_of_cgroup: Option<u64>,
    /// The number of processors online, and the share that the cgroup allows, in thousandths.
    pub processors: Option<u64>,
    pub processors_of_cgroup: Option<u64>,
    /// `vm.overcommit_memory`
    pub overcommit: Option<u64>,
    /// Whether system calls are filtered.
    pub filtered: bool,
    /// Libraries that `LD_PRELOAD` puts in front of all others.
    pub preload: Option<String>,
}

/// The C library of this program.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Libc {
    /// The GNU C library, in this version.
    Gnu(u32, u32),
    /// It cannot be determined.
    #[default]
    Unknown,
}

/// Entries of the auxiliary vector.
const AT_PAGESZ: u64 = 6;
const AT_HWCAP2: u64 = 26;

impl Machine {
    /// Reads the files below `root`; `/` for this machine.
    pub fn read(root: &Path) -> Machine {
        let files = Files(root);
        let cpuinfo = files.text("proc/cpuinfo");
        let limits = files.text("proc/self/limits").unwrap_or_default();
        let (files_soft, files_hard) = limit(&limits, "Max open files");
        let flags = cpuinfo.as_deref().and_then(|text| field(text, "flags"));
        let auxv = files.bytes("proc/self/auxv");
        let hwcap2 = |auxv: &Vec<u8>| auxiliary(auxv, AT_HWCAP2).unwrap_or(0);
        Machine {
            processor: cpuinfo
                .as_deref()
                .and_then(|text| field(text, "model name"))
                .map(Into::into),
            thread_pointer: arch::thread_pointer(flags, auxv.as_ref().map(hwcap2)),
            page: auxv.and_then(|auxv| auxiliary(&auxv, AT_PAGESZ)),
            kernel: files
                .text("proc/sys/kernel/osrelease")
                .map(|text| text.trim().into()),
            libc: files.libc(),
            mappings: files.number("proc/sys/vm/max_map_count"),
            files_soft,
            files_hard,
            files_ceiling: files.number("proc/sys/fs/nr_open"),
            threads_of_user: limit(&limits, "Max processes").0,
            threads_of_cgroup: files.of_cgroup("pids", &["pids.max"], number),
            address_space: limit(&limits, "Max address space").0,
            memory_available: files
                .text("proc/meminfo")
                .and_then(|text| kibibytes(field(&text, "MemAvailable")?)),
            memory_of_cgroup: files.of_cgroup(
                "memory",
                &["memory.max", "memory.limit_in_bytes"],
                limit_of_memory,
            ),
            processors: files
                .text("sys/devices/system/cpu/online")
                .and_then(|text| members(&text)),
            processors_of_cgroup: files.of_cgroup("cpu", &["cpu.max"], share),
            overcommit: files.number("proc/sys/vm/overcommit_memory"),
            filtered: files
                .text("proc/self/status")
                .is_some_and(|text| field(&text, "Seccomp") == Some("2")),
            preload: files
                .bytes("proc/self/environ")
                .and_then(|environ| variable(&environ, "LD_PRELOAD")),
        }
    }
}

/// The files of a machine.
struct Files<'a>(&'a Path);

impl Files<'_> {
    fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.0.join(path)).ok()
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }

    fn number(&self, path: &str) -> Option<u64> {
        number(&self.text(path)?)
    }

    /// Returns the C library that is mapped into this process.
    fn libc(&self) -> Libc {
        let version = || {
            let maps = self.text("proc/self/maps")?;
            let mut paths = maps
                .lines()
                .filter_map(|line| line.find('/').map(|at| &line[at + 1..]));
            let path =
                paths.find(|path| path.contains("/libc.so.6") || path.contains("/libc-2."))?;
            gnu_version(&self.bytes(path)?)
        };
        version().map_or(Libc::Unknown, |(major, minor)| Libc::Gnu(major, minor))
    }

    /// Returns the minimum that the cgroup of this process, and those above it, allow: the value
    /// that `parse` finds in the first of `names` that exists in each.
    fn of_cgroup(
        &self,
        controller: &str,
        names: &[&str],
        parse: fn(&str) -> Option<u64>,
    ) -> Option<u64> {
        let memberships = self.text("proc/self/cgroup")?;
        let limit_of = |folder: PathBuf| {
            let text = names
                .iter()
                .find_map(|name| fs::read_to_string(folder.join(name)).ok())?;
            parse(&text)
        };
        let folders = |line: &str| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let is_it = controllers.is_empty() || controllers.split(',').any(|c| c == controller);
            let mount = self.0.join("sys/fs/cgroup").join(controllers);
            is_it.then(|| {
                let groups = Path::new(path).ancestors();
                let groups =
                    groups.map(|group| mount.join(group.strip_prefix("/").unwrap_or(group)));
                groups.collect::<Vec<_>>()
            })
        };
        memberships
            .lines()
            .filter_map(folders)
            .flatten()
            .filter_map(limit_of)
            .min()
    }
}

/// Returns the value of the first line `name: value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn number<N: FromStr>(text: &str) -> Option<N> {
    text.trim().parse().ok()
}

/// Returns a cgroup's limit of memory; version 1 writes "none" as nearly 2^63.
fn limit_of_memory(text: &str) -> Option<u64> {
    number(text).filter(|&bytes: &u64| bytes < 1 << 60)
}

fn kibibytes(text: &str) -> Option<u64> {
    number::<u64>(text.strip_suffix("kB")?).map(|kib| kib << 10)
}

/// Returns the soft and the hard limit in `/proc/self/limits`; `None` for unlimited.
fn limit(limits: &str, name: &str) -> (Option<u64>, Option<u64>) {
    let line = limits.lines().find_map(|line| line.strip_prefix(name));
    let mut values = line.unwrap_or("").split_whitespace().map(number);
    (values.next().flatten(), values.next().flatten())
}

/// Returns the number of members of a list such as `0-3,8`.
fn members(list: &str) -> Option<u64> {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        number::<u64>(last)?
            .checked_sub(number(first)?)
            .map(|n| n + 1)
    };
    list.trim().split(',').map(count).sum()
}

/// Returns the share that `cpu.max` allows, in thousandths of a processor: quota and period, or
/// `max`.
fn share(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    (number::<u64>(quota)? * 1000).checked_div(number(period)?)
}

/// Returns an entry of the auxiliary vector, which has pairs of a key and a value.
fn auxiliary(auxv: &[u8], key: u64) -> Option<u64> {
    let (words, _) = auxv.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    words
        .chunks_exact(2)
        .find(|pair| pair[0] == key)
        .map(|pair| pair[1])
}

/// Returns a variable of an environment as `/proc` shows it.
fn variable(environ: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(environ);
    let value = text
        .split('\0')
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    (!value.is_empty()).then(|| value.to_owned())
}

/// Returns the version that the GNU C library states about itself.
fn gnu_version(library: &[u8]) -> Option<(u32, u32)> {
    const BANNER: &[u8] = b"GNU C Library ";
    let at = library
        .windows(BANNER.len())
        .position(|window| window == BANNER)?;
    let banner = &library[at..library.len().min(at + 200)];
    let banner = String::from_utf8_lossy(banner);
    let version = banner.split_once("version ")?.1;
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(number);
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests;

//! What there is to know about a machine, read from its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A machine as the kernel tells of it. `None`: it does not tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The processor's name.
    pub processor: Option<String>,
    /// Whether the processor has FSGSBASE, and whether the kernel lets programs use it.
    pub has_fsgsbase: Option<bool>,
    pub fsgsbase_enabled: Option<bool>,
    /// `6.18.4-generic`
    pub kernel: Option<String>,
    /// The version of the GNU C library, `2.36`, or what there is in its place.
    pub libc: Libc,
    /// `vm.max_map_count`
    pub mappings: Option<u64>,
    /// Limits of open files: soft and hard, and the ceiling of the latter, `fs.nr_open`.
    pub files_soft: Option<u64>,
    pub files_hard: Option<u64>,
    pub files_ceiling: Option<u64>,
    /// Limits of processes and threads: of the user, and of the cgroup.
    pub threads_of_user: Option<u64>,
    pub threads_of_cgroup: Option<u64>,
    /// Limit of address space, bytes.
    pub address_space: Option<u64>,
    /// Memory that is available, and what the cgroup allows in all, bytes.
    pub memory_available: Option<u64>,
    pub memory_of_cgroup: Option<u64>,
    /// Processors that are online, and how much of them the cgroup allows, in thousandths.
    pub processors: Option<u64>,
    pub processors_of_cgroup: Option<u64>,
    /// `vm.overcommit_memory`
    pub overcommit: Option<u64>,
    /// System calls are filtered.
    pub filtered: bool,
    /// Libraries that `LD_PRELOAD` puts in front of all others.
    pub preload: Option<String>,
}

/// The C library of this very program.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Libc {
    /// The GNU C library, in this version.
    Gnu(u32, u32),
    /// It cannot be told which.
    #[default]
    Unknown,
}

/// Bit of FSGSBASE in `AT_HWCAP2`.
const HWCAP2_FSGSBASE: u64 = 1 << 1;
const AT_HWCAP2: u64 = 26;

impl Machine {
    /// Reads what the files below `root` tell; `/` for this machine.
    pub fn read(root: &Path) -> Machine {
        let files = Files(root);
        let cpuinfo = files.text("proc/cpuinfo");
        let limits = files.text("proc/self/limits").unwrap_or_default();
        let (files_soft, files_hard) = limit(&limits, "Max open files");
        let flags = cpuinfo.as_deref().and_then(|text| field(text, "flags"));
        Machine {
            processor: cpuinfo
                .as_deref()
                .and_then(|text| field(text, "model name"))
                .map(Into::into),
            has_fsgsbase: flags.map(|flags| flags.split(' ').any(|flag| flag == "fsgsbase")),
            fsgsbase_enabled: files
                .bytes("proc/self/auxv")
                .map(|auxv| auxiliary(&auxv, AT_HWCAP2).unwrap_or(0) & HWCAP2_FSGSBASE != 0),
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

    /// The C library that is mapped into this process.
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

    /// The least of what the cgroup of this process, and those above it, allow: what `parse` finds
    /// in the first of `names` that each has.
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

/// The value of the first line `name: value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn number<N: FromStr>(text: &str) -> Option<N> {
    text.trim().parse().ok()
}

/// A cgroup's limit of memory; version 1 writes "none" as nearly 2^63.
fn limit_of_memory(text: &str) -> Option<u64> {
    number(text).filter(|&bytes: &u64| bytes < 1 << 60)
}

fn kibibytes(text: &str) -> Option<u64> {
    number::<u64>(text.strip_suffix("kB")?).map(|kib| kib << 10)
}

/// The soft and the hard limit in `/proc/self/limits`; `None` for unlimited.
fn limit(limits: &str, name: &str) -> (Option<u64>, Option<u64>) {
    let line = limits.lines().find_map(|line| line.strip_prefix(name));
    let mut values = line.unwrap_or("").split_whitespace().map(number);
    (values.next().flatten(), values.next().flatten())
}

/// How many a list such as `0-3,8` has.
fn members(list: &str) -> Option<u64> {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        number::<u64>(last)?
            .checked_sub(number(first)?)
            .map(|n| n + 1)
    };
    list.trim().split(',').map(count).sum()
}

/// What `cpu.max` allows, in thousandths of a processor: quota and period, or `max`.
fn share(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    (number::<u64>(quota)? * 1000).checked_div(number(period)?)
}

/// An entry of the auxiliary vector: pairs of a key and a value.
fn auxiliary(auxv: &[u8], key: u64) -> Option<u64> {
    let (words, _) = auxv.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    words
        .chunks_exact(2)
        .find(|pair| pair[0] == key)
        .map(|pair| pair[1])
}

/// A variable in an environment as `/proc` shows it.
fn variable(environ: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(environ);
    let value = text
        .split('\0')
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    (!value.is_empty()).then(|| value.to_owned())
}

/// The version that the GNU C library says it is.
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
mod tests {
    use super::*;

    /// A folder with these files, gone when dropped.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str, files: &[(&str, &[u8])]) -> Root {
            let root =
                std::env::temp_dir().join(format!("pirn-doctor-{name}-{}", std::process::id()));
            for (path, bytes) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
            Root(root)
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_empty_root_tells_nothing() {
        assert_eq!(
            Machine::read(Path::new("/nowhere/at/all")),
            Machine::default()
        );
    }

    #[test]
    fn the_files_of_a_machine_are_understood() {
        let auxv: Vec<u8> = [16_u64, 0xff, AT_HWCAP2, 2, 0, 0]
            .iter()
            .flat_map(|n| n.to_ne_bytes())
            .collect();
        let limits = "Limit  Soft Limit  Hard Limit  Units\n\
                      Max processes    4096   unlimited  processes\n\
                      Max open files   1024   524288     files\n\
                      Max address space  unlimited unlimited bytes\n";
        let root = Root::new("full", &[
            ("proc/cpuinfo", b"processor\t: 0\nmodel name\t: Loom 9\nflags\t\t: fpu fsgsbase avx\n"),
            ("proc/self/auxv", &auxv),
            ("proc/sys/kernel/osrelease", b"6.12.3-generic\n"),
            ("proc/self/maps", b"7f00-7f01 r-xp 00000000 08:01 5    /lib/libc.so.6\n"),
            ("lib/libc.so.6", b"\x7fELF GNU C Library (Debian GLIBC 2.41-9+x1) stable release version 2.41.\n"),
            ("proc/sys/vm/max_map_count", b"65530\n"),
            ("proc/self/limits", limits.as_bytes()),
            ("proc/sys/fs/nr_open", b"1048576\n"),
            ("proc/meminfo", b"MemTotal: 9 kB\nMemAvailable:   2048 kB\n"),
            ("proc/self/cgroup", b"0::/a/b\n"),
            ("sys/fs/cgroup/a/memory.max", b"1000000\n"),
            ("sys/fs/cgroup/a/b/memory.max", b"max\n"),
            ("sys/fs/cgroup/a/b/cpu.max", b"150000 100000\n"),
            ("sys/fs/cgroup/a/pids.max", b"99\n"),
            ("sys/devices/system/cpu/online", b"0-3,8\n"),
            ("proc/sys/vm/overcommit_memory", b"2\n"),
            ("proc/self/status", b"Name:\tx\nSeccomp:\t2\n"),
            ("proc/self/environ", b"PATH=/bin\0LD_PRELOAD=libx.so\0"),
        ]);
        let expected = Machine {
            processor: Some("Loom 9".into()),
            has_fsgsbase: Some(true),
            fsgsbase_enabled: Some(true),
            kernel: Some("6.12.3-generic".into()),
            libc: Libc::Gnu(2, 41),
            mappings: Some(65_530),
            files_soft: Some(1024),
            files_hard: Some(524_288),
            files_ceiling: Some(1_048_576),
            threads_of_user: Some(4096),
            threads_of_cgroup: Some(99),
            address_space: None,
            memory_available: Some(2 << 20),
            memory_of_cgroup: Some(1_000_000),
            processors: Some(5),
            processors_of_cgroup: Some(1500),
            overcommit: Some(2),
            filtered: true,
            preload: Some("libx.so".into()),
        };
        assert_eq!(Machine::read(&root.0), expected);
    }

    #[test]
    fn cgroups_of_version_1_are_understood() {
        let root = Root::new(
            "v1",
            &[
                ("proc/self/cgroup", b"4:cpuset,memory:/x\n3:pids:/x\n0::/\n"),
                (
                    "sys/fs/cgroup/cpuset,memory/x/memory.limit_in_bytes",
                    b"5000\n",
                ),
                ("sys/fs/cgroup/pids/pids.max", b"max\n"),
                (
                    "sys/fs/cgroup/cpuset,memory/memory.limit_in_bytes",
                    b"9223372036854771712\n",
                ),
            ],
        );
        let machine = Machine::read(&root.0);
        assert_eq!(
            (machine.memory_of_cgroup, machine.threads_of_cgroup),
            (Some(5000), None)
        );
    }

    #[test]
    fn nonsense_is_nothing() {
        assert_eq!(members("0-"), None);
        assert_eq!(members("3-1"), None);
        assert_eq!(share("max 100000"), None);
        assert_eq!(share("5 0"), None);
        assert_eq!(auxiliary(&[1, 2, 3], 26), None);
        assert_eq!(gnu_version(b"GNU C Library "), None);
        assert_eq!(gnu_version(b"musl libc"), None);
        assert_eq!(limit("Max open files", "Max open files"), (None, None));
        assert_eq!(kibibytes("12"), None);
    }

    #[test]
    fn this_machine_tells() {
        let machine = Machine::read(Path::new("/"));
        assert_eq!(machine.has_fsgsbase, Some(true));
        assert_eq!(machine.fsgsbase_enabled, Some(true));
        assert!(matches!(machine.libc, Libc::Gnu(2, 31..)), "{machine:?}");
        assert!(machine.kernel.is_some() && machine.mappings.is_some());
        assert!(machine.processors >= Some(1) && machine.memory_available > Some(0));
    }
}

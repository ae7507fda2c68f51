use super::*;

/// A folder with these files, gone when dropped.
struct Root(PathBuf);

impl Root {
    fn new(name: &str, files: &[(&str, &[u8])]) -> Root {
        let root = std::env::temp_dir().join(format!("pirn-doctor-{name}-{}", std::process::id()));
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
    let expected = Machine {
        thread_pointer: arch::thread_pointer(None, None),
        ..Machine::default()
    };
    assert_eq!(Machine::read(Path::new("/nowhere/at/all")), expected);
}

/// The files of a machine, but for two that the test makes.
const FILES: &[(&str, &[u8])] = &[
    (
        "proc/cpuinfo",
        b"processor\t: 0\nmodel name\t: Loom 9\nflags\t\t: fpu fsgsbase avx\n",
    ),
    ("proc/sys/kernel/osrelease", b"6.12.3-generic\n"),
    (
        "proc/self/maps",
        b"7f00-7f01 r-xp 00000000 08:01 5    /lib/libc.so.6\n",
    ),
    (
        "lib/libc.so.6",
        b"\x7fELF GNU C Library (Debian GLIBC 2.41-9+x1) stable release version 2.41.\n",
    ),
    ("proc/sys/vm/max_map_count", b"65530\n"),
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
];

#[test]
fn the_files_of_a_machine_are_understood() {
    let auxv: Vec<u8> = [16_u64, 0xff, AT_HWCAP2, 2, AT_PAGESZ, 4096, 0, 0]
        .iter()
        .flat_map(|n| n.to_ne_bytes())
        .collect();
    let limits = "Limit  Soft Limit  Hard Limit  Units\n\
                      Max processes    4096   unlimited  processes\n\
                      Max open files   1024   524288     files\n\
                      Max address space  unlimited unlimited bytes\n";
    let mut files = FILES.to_vec();
    files.extend([
        ("proc/self/auxv", &auxv[..]),
        ("proc/self/limits", limits.as_bytes()),
    ]);
    let root = Root::new("full", &files);
    let expected = Machine {
        processor: Some("Loom 9".into()),
        thread_pointer: arch::thread_pointer(Some("fpu fsgsbase avx"), Some(2)),
        page: Some(4096),
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
    let by_instruction = [ThreadPointer::Instruction, ThreadPointer::Fsgsbase];
    assert!(
        by_instruction.contains(&machine.thread_pointer),
        "{machine:?}"
    );
    assert!(machine.page >= Some(4096), "{machine:?}");
    assert!(matches!(machine.libc, Libc::Gnu(2, 31..)), "{machine:?}");
    assert!(machine.kernel.is_some() && machine.mappings.is_some());
    assert!(machine.processors >= Some(1) && machine.memory_available > Some(0));
}

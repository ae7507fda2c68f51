use super::super::finding::Verdict::{self, Bad, Ok, Warn};
use super::*;

/// A machine on which all is well.
fn good() -> Machine {
    Machine {
        processor: Some("Loom 9".into()),
        thread_pointer: ThreadPointer::Fsgsbase,
        page: Some(4096),
        kernel: Some("6.18.4-generic".into()),
        libc: Libc::Gnu(2, 41),
        mappings: Some(65_530),
        files_soft: Some(1 << 20),
        files_hard: Some(1 << 20),
        files_ceiling: Some(1 << 20),
        threads_of_user: Some(96_000),
        threads_of_cgroup: None,
        address_space: None,
        memory_available: Some(8 << 30),
        memory_of_cgroup: None,
        processors: Some(8),
        processors_of_cgroup: None,
        overcommit: Some(0),
        filtered: true,
        preload: None,
    }
}

/// What is said about `subject` on that machine after a change.
fn about(subject: &str, change: impl FnOnce(&mut Machine)) -> (Verdict, String) {
    let mut machine = good();
    change(&mut machine);
    let findings = examine(&machine);
    let mut others = findings.iter().filter(|f| f.subject != subject);
    assert!(others.all(|f| f.verdict == Ok), "{findings:?}");
    let finding = findings
        .iter()
        .find(|f| f.subject == subject)
        .expect(subject);
    // What is not well says what to change.
    assert_eq!(
        finding.advice.is_empty(),
        finding.verdict == Ok,
        "{finding:?}"
    );
    (
        finding.verdict,
        format!("{} -> {}", finding.found, finding.advice),
    )
}

#[track_caller]
fn check(subject: &str, change: impl FnOnce(&mut Machine), verdict: Verdict, words: &[&str]) {
    let (found, text) = about(subject, change);
    assert_eq!(found, verdict, "{text}");
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text:?}");
    }
}

#[test]
fn a_good_machine_is_good() {
    assert!(examine(&good()).iter().all(|f| f.verdict == Ok));
}

#[test]
fn a_machine_of_which_nothing_is_known_is_not_called_bad() {
    let findings = examine(&Machine::default());
    assert!(findings.iter().all(|f| f.verdict == Warn), "{findings:?}");
}

#[test]
fn processors() {
    check(
        "processor",
        |m| m.thread_pointer = ThreadPointer::Withheld,
        Warn,
        &["nofsgsbase", "Loom 9"],
    );
    let without = |m: &mut Machine| m.thread_pointer = ThreadPointer::Lacking;
    check("processor", without, Warn, &["Ivy Bridge", "system call"]);
    let unknown = |m: &mut Machine| m.thread_pointer = ThreadPointer::Unknown;
    check("processor", unknown, Warn, &["/proc"]);
    check(
        "processors",
        |m| m.processors_of_cgroup = Some(500),
        Warn,
        &["0.5", "cpu.max"],
    );
    check(
        "processors",
        |m| m.processors_of_cgroup = Some(2500),
        Ok,
        &["2.5", "8 online"],
    );
    check(
        "processors",
        |m| m.processors_of_cgroup = Some(9000),
        Ok,
        &["8 online"],
    );
}

#[test]
fn kernels_and_libraries() {
    let old = |m: &mut Machine| m.kernel = Some("6.12.9".into());
    check(
        "guard pages",
        old,
        Warn,
        &["vm.max_map_count", "30,717", "65530"],
    );
    let ancient = |m: &mut Machine| m.kernel = Some("4.19.0".into());
    let mut machine = good();
    ancient(&mut machine);
    assert!(
        examine(&machine)
            .iter()
            .any(|f| f.subject == "kernel" && f.verdict == Bad)
    );
    check(
        "C library",
        |m| m.libc = Libc::Gnu(2, 28),
        Bad,
        &["2.28", "2.34"],
    );
    check("C library", |m| m.libc = Libc::Unknown, Warn, &["glibc"]);
}

#[test]
fn limits() {
    check(
        "open files",
        |m| m.files_soft = Some(1024),
        Warn,
        &["1,024", "ulimit -n 1048576"],
    );
    let hard = |m: &mut Machine| (m.files_soft, m.files_hard) = (Some(4096), Some(4096));
    check("open files", hard, Warn, &["fs.nr_open", "1,048,576"]);
    check(
        "OS threads",
        |m| m.threads_of_cgroup = Some(64),
        Warn,
        &["pids.max", "64"],
    );
    check(
        "address space",
        |m| m.address_space = Some(2 << 30),
        Warn,
        &["ulimit -v", "2.0 GiB"],
    );
    check(
        "overcommit",
        |m| m.overcommit = Some(2),
        Warn,
        &["vm.overcommit_memory"],
    );
    check(
        "memory",
        |m| m.memory_of_cgroup = Some(100 << 20),
        Warn,
        &["memory.max", "100 MiB"],
    );
    check(
        "memory",
        |m| m.memory_available = Some(96 << 30),
        Ok,
        &["96.0 GiB", "21,474,000"],
    );
    let large_pages =
        |m: &mut Machine| (m.memory_available, m.page) = (Some(96 << 30), Some(64 << 10));
    check("memory", large_pages, Ok, &["1,556,000", "64 KiB"]);
    check(
        "preloaded",
        |m| m.preload = Some("libx.so".into()),
        Warn,
        &["libx.so"],
    );
}

#[test]
fn the_trial_is_a_finding() {
    assert_eq!(trial(Result::Ok(())).verdict, Ok);
    let failed = trial(Err("no threads".into()));
    assert_eq!((failed.verdict, &*failed.found), (Bad, "no threads"));
}

#[test]
fn versions_and_numbers() {
    assert_eq!(version("6.18.44-fc"), Some((6, 18)));
    assert_eq!(version("nonsense"), None);
    assert_eq!(
        [7, 1000, 1_234_567].map(grouped),
        ["7", "1,000", "1,234,567"]
    );
    assert_eq!([5 << 20, 3 << 29].map(size), ["5 MiB", "1.5 GiB"]);
}

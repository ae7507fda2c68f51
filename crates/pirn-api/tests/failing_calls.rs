//! Each system call that the runtime makes for itself fails in a test,
//! `crates/pirn/tests/runtime/failing_calls.rs`, or is listed here with the reason why not. So a
//! new one cannot be forgotten.

use pirn_api::rust_files;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const CRATES: [&str; 3] = ["pirn-rt", "pirn-libc", "pirn-posix"];
const TABLE: &str = "pirn/tests/runtime/failing_calls.rs";

/// The calls that do not fail in the test: the reason, and their names.
const EXEMPT: [(&str, &str); 3] = [
    (
        "the kernel documents no error for what the runtime asks, and a filter that refuses it \
         stops libc and std as well",
        "close exit futex getcpu gettid read rseq rt_sigaction rt_sigprocmask \
         write",
    ),
    (
        "made when the program makes this call or its kin, which gets the error",
        "accept4 capget clock_nanosleep connect dup dup3 execveat flock \
         getrusage io_uring_setup kill lseek mq_timedreceive mq_timedsend msgrcv msgsnd newfstatat \
         pipe2 pkey_alloc readv recvfrom recvmmsg recvmsg semtimedop sendfile sendmmsg sendmsg \
         sendto setsockopt shutdown socket socketpair splice tee timer_create timerfd_create tkill \
         vmsplice wait4 writev",
    ),
    (
        "without an answer, a default holds, or the program's setting does not",
        "getpgid getpriority ioctl sched_getscheduler sched_setaffinity sched_setscheduler \
         setpriority",
    ),
];

#[test]
fn each_system_call_of_the_runtime_fails_in_a_test_or_is_exempt_for_a_reason() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table = fs::read_to_string(crates.join(TABLE)).unwrap();
    let table = &table[table.find("const CALLS").unwrap()..table.find("];").unwrap()];
    let mut failing = names(table, "libc::SYS_");
    failing.extend(names(table, "legacy::").iter().map(|it| it.to_lowercase()));
    let exempt: BTreeSet<&str> = EXEMPT
        .iter()
        .flat_map(|(_, names)| names.split(' '))
        .collect();
    let mut made = BTreeSet::new();
    for name in CRATES {
        for file in rust_files(&crates.join(name).join("src")) {
            // Those that newer processors lack are calls of programs.
            let is_legacy = file.ends_with("legacy.rs");
            if !is_legacy && !file.to_str().unwrap().contains("test") {
                let text = code(&fs::read_to_string(&file).unwrap());
                // In other crates most names are in tables of the program's calls.
                let start = match name {
                    "pirn-rt" => "libc::SYS_",
                    _ => "call!(libc::SYS_",
                };
                made.extend(names(&text, start));
            }
        }
    }
    let known = |name: &&String| failing.contains(*name) || exempt.contains(name.as_str());
    let forgotten = Vec::from_iter(made.iter().filter(|name| !known(name)));
    assert!(
        forgotten.is_empty(),
        "neither in {TABLE} nor exempt: {forgotten:?}"
    );
    let gone = Vec::from_iter(exempt.iter().filter(|name| !made.contains(**name)));
    assert!(gone.is_empty(), "exempt, but not called: {gone:?}");
}

/// Returns the code of a file without comments, tests and spaces.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(str::split_whitespace).collect()
}

/// Returns the names of the system calls in a text that stand behind these letters.
fn names(text: &str, start: &str) -> BTreeSet<String> {
    let is_part = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let parts = text.split(start).skip(1);
    parts
        .map(|part| part.chars().take_while(is_part).collect())
        .collect()
}

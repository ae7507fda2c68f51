//! Diagnostics: each is provoked in a child process, whose line about it is read; and a program in
//! order has none.

use std::fs::{self, File};
use std::hint;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::{TempDir, child, sys, watched};
use pirn::thread::{self, Builder, JoinHandle};

const ONE: (&str, &str) = ("PIRN_PARALLELISM", "1");
const NO_SPARES: (&str, &str) = ("PIRN_SPARE_CARRIERS", "0");
/// Longer than a busy machine takes to read a page of the program from the disk, which also holds a
/// carrier.
const STUCK: (&str, &str) = ("PIRN_DIAGNOSTICS", "stuck-carrier=300ms");

/// Set in a child once its parent has read what it waited for.
static OVER: AtomicBool = AtomicBool::new(false);

/// Waits, in a child, until the parent has seen enough: a platform thread reads standard input,
/// which ends then.
pub(super) fn notice_end() -> std::thread::JoinHandle<()> {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        OVER.store(true, SeqCst);
    })
}

/// Computes without being preempted until the parent has seen enough.
fn hog() {
    thread::no_preemption(|| {
        while !OVER.load(SeqCst) {
            hint::spin_loop();
        }
    });
}

fn named(name: &str, f: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    Builder::new().name(name.into()).spawn(f).unwrap()
}

fn join_all(threads: Vec<JoinHandle<()>>) {
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

/// Starts the running test as a child with these variables.
fn start(variables: &[(&str, &str)]) -> Child {
    let mut command = child::command();
    command
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Runs the running test as a child until it reports this diagnostic, then lets it end. Returns the
/// line without the name, and all that follows.
pub(super) fn provoke(name: &str, variables: &[(&str, &str)]) -> (String, String) {
    let mut child = start(variables);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let head = format!("pirn: {name}: ");
    let mut before = String::new();
    let line = lines.by_ref().map(Result::unwrap).find_map(|line| {
        let found = line.strip_prefix(&head).map(str::to_owned);
        before = before.clone() + &line + "\n";
        found
    });
    drop(child.stdin.take());
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    let rest = rest.join("\n");
    assert!(child.wait().unwrap().success(), "{before}{rest}");
    let line = line.unwrap_or_else(|| panic!("no line about {name}: {before}"));
    (line, rest)
}

/// Runs the running test as a child, which ends by itself. Returns the lines about it.
fn lines(variables: &[(&str, &str)]) -> Vec<String> {
    let output = child::run(variables);
    assert!(output.status.success(), "{}", child::report(&output));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = text.lines().filter(|line| line.starts_with("pirn: "));
    lines.map(str::to_owned).collect()
}

fn assert_has(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "no {part:?} in {line:?}");
    }
}

/// Reads a byte of standard input without libc.
fn read_unseen() {
    let mut byte = 0_u8;
    sys::inline(libc::SYS_read, 0, (&raw mut byte).addr(), 1, 0, 0);
}

#[watched]
fn a_carrier_that_is_blocked_in_the_kernel_is_explained() {
    if child::is_here() {
        return named("reader\n", read_unseen).join().unwrap();
    }
    let (line, rest) = provoke("stuck-carrier", &[STUCK]);
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    let parts = [
        // Perhaps the platform thread that waits for its end.
        " \"reader\\n\" has held carrier \"",
        " UTC: blocked in the kernel, in read on descriptor 0 (pipe:[",
        "called from ",
        program,
        "PIRN_TRACE_STUCK=short",
    ];
    assert_has(&line, &parts);
    assert!(!rest.contains("pirn: "), "once: {rest}");
}

#[watched]
fn a_carrier_that_computes_and_cannot_be_preempted_is_explained_if_others_wait() {
    if child::is_here() {
        let end = notice_end();
        let hog = named("hog", hog);
        thread::spawn(|| ()).join().unwrap();
        hog.join().unwrap();
        return end.join().unwrap();
    }
    let (line, _) = provoke("stuck-carrier", &[ONE, NO_SPARES, STUCK]);
    let parts = [" \"hog\" has held carrier \"", ": computing "];
    assert_has(&line, &parts);
}

/// The innermost frame of a stuck thread that is ours, with this many and one around it.
#[inline(never)]
fn weave(wait: fn(), more: usize) {
    match more {
        0 => wait(),
        more => weave(wait, more - 1),
    }
    hint::black_box(());
}

#[watched]
fn the_stack_of_a_stuck_thread_is_shown_if_asked_for() {
    if child::is_here() {
        let wait: fn() = match std::env::var("PIRN_TEST_WAIT").as_deref() {
            Ok("kernel") => read_unseen,
            _ => hog,
        };
        let end = notice_end();
        let weaver = named("weaver", move || weave(wait, 10));
        // Without another thread to run, the monitor lets one that computes go on.
        join_all(vec![thread::spawn(|| ()), weaver]);
        return end.join().unwrap();
    }
    for (wait, innermost) in [("kernel", "read_unseen"), ("computing", "hog")] {
        for (trace, least) in [("short", 3), ("full", 12)] {
            let own = [("PIRN_TEST_WAIT", wait), ("PIRN_TRACE_STUCK", trace)];
            let variables = [&own[..], &[ONE, NO_SPARES, STUCK]].concat();
            let (line, rest) = provoke("stuck-carrier", &variables);
            assert_has(&line, &[" \"weaver\" has held carrier \""]);
            let frames = rest.lines().take_while(|line| line.starts_with("    "));
            let frames: Vec<_> = frames.collect();
            assert!(frames.len() >= least, "{line}\n{rest}");
            let place = |name| frames.iter().position(|frame| frame.contains(name));
            let (inner, outer) = (place(innermost), place("weave"));
            assert!(inner.is_some() && inner < outer, "{line}\n{rest}");
            assert!(trace == "full" || frames.len() <= 9, "{rest}");
        }
    }
}

#[watched]
fn spare_carriers_that_are_all_stuck_are_reported() {
    if child::is_here() {
        let end = notice_end();
        let all = (0..4).map(|_| thread::spawn(hog));
        join_all(all.collect());
        return end.join().unwrap();
    }
    let one_spare = ("PIRN_SPARE_CARRIERS", "1");
    let variable = ("PIRN_DIAGNOSTICS", "spares-exhausted=50ms");
    let (line, rest) = provoke("spares-exhausted", &[ONE, one_spare, variable]);
    let parts = [
        "all 2 carriers have been stuck for ",
        "0 blocked in the kernel, 2 computing",
        "PIRN_SPARE_CARRIERS=1 ",
    ];
    assert_has(&line, &parts);
    assert!(!rest.contains("pirn: "), "once: {rest}");
    // With none allowed, threads that compute keep the others waiting, as the operator has chosen.
    let both = (
        "PIRN_DIAGNOSTICS",
        "spares-exhausted=50ms,stuck-carrier=200ms",
    );
    let mut child = start(&[ONE, NO_SPARES, both]);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.find_map(|line| line.unwrap().strip_prefix("pirn: ").map(str::to_owned));
    drop(child.stdin.take());
    assert!(first.unwrap().starts_with("stuck-carrier: "));
    assert!(child.wait().unwrap().success());
}

/// Takes a lease on a file: a thread that truncates it waits until the lease is given back, if only
/// for 45 s.
fn lease(file: &File) -> bool {
    // SAFETY: no pointers. The kernel's signal about the lease would end the process.
    unsafe {
        libc::signal(libc::SIGIO, libc::SIG_IGN);
        libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) == 0
    }
}

#[watched]
fn a_full_pool_is_reported() {
    let folder = TempDir::new("lease");
    let path = folder.join("file");
    let file = File::create(&path).unwrap();
    if !lease(&file) {
        return crate::common::skip("this file system has no leases");
    }
    if child::is_here() {
        let end = notice_end();
        let mut name = path.as_os_str().as_bytes().to_vec();
        name.push(0);
        let name: &'static [u8] = name.leak();
        // SAFETY: a path.
        let truncate = || assert_eq!(unsafe { libc::truncate(name.as_ptr().cast(), 0) }, 0);
        let all = (0..3).map(|_| thread::spawn(truncate)).collect();
        end.join().unwrap();
        drop(file);
        return join_all(all);
    }
    let variables = [
        ONE,
        ("PIRN_MAX_BLOCKING_THREADS", "2"),
        ("PIRN_DIAGNOSTICS", "pool-full=100ms"),
    ];
    let (line, rest) = provoke("pool-full", &variables);
    let parts = [
        "all 2 threads make calls, 2 of 2 in ",
        " and 1 calls wait; raise PIRN_MAX_BLOCKING_THREADS=2",
    ];
    assert_has(&line, &parts);
    assert!(!rest.contains("pirn: "), "once: {rest}");
}

#[watched]
fn a_place_whose_threads_only_become_more_is_reported() {
    if child::is_here() {
        let end = notice_end();
        while !OVER.load(SeqCst) {
            thread::spawn(thread::park);
            std::thread::sleep(Duration::from_millis(1));
        }
        return end.join().unwrap();
    }
    // The second makes the looks frequent.
    let variable = ("PIRN_DIAGNOSTICS", "growing-site=50,pool-full=5ms");
    let (line, _) = provoke("growing-site", &[variable]);
    let parts = [
        "threads spawned at ",
        "observe/diagnostics.rs:",
        " have only become more: from ",
    ];
    assert_has(&line, &parts);
}

#[watched]
fn what_is_switched_off_is_not_said() {
    if child::is_here() {
        let end = notice_end();
        let begin = Instant::now();
        let compute = move || {
            let is_over = || OVER.load(SeqCst) && begin.elapsed() > Duration::from_millis(300);
            thread::no_preemption(|| while !is_over() {});
        };
        join_all((0..3).map(|_| thread::spawn(compute)).collect());
        return end.join().unwrap();
    }
    let stuck = ("PIRN_DIAGNOSTICS", "stuck-carrier=20ms");
    provoke("stuck-carrier", &[ONE, NO_SPARES, stuck]);
    // Without a parent that waits, it ends soon.
    let run = |variable| lines(&[ONE, NO_SPARES, variable]);
    for off in ["none", "pool-full,growing-site"] {
        assert_eq!(run(("PIRN_DIAGNOSTICS", off)), [""; 0], "{off}");
    }
    let quiet = [ONE, NO_SPARES, stuck, ("PIRN_QUIET", "")];
    assert_eq!(lines(&quiet), [""; 0]);
}

#[watched]
fn a_program_in_order_is_not_reported() {
    if child::is_here() {
        let folder = TempDir::new("diagnostics");
        let done = AtomicUsize::new(0);
        let begin = Instant::now();
        // Longer than the limits.
        while begin.elapsed() < Duration::from_millis(2500) {
            thread::scope(|scope| {
                for i in 0..100 {
                    let path = folder.join(&format!("{i}"));
                    let done = &done;
                    scope.spawn(move || {
                        fs::write(&path, b"weft").unwrap();
                        thread::sleep(Duration::from_millis(i % 7));
                        assert_eq!(fs::read(&path).unwrap(), b"weft");
                        done.fetch_add(1, SeqCst);
                    });
                }
            });
        }
        return assert!(done.into_inner() > 0);
    }
    let all = "stuck-carrier,spares-exhausted,pool-full,growing-site";
    let said = lines(&[("PIRN_DIAGNOSTICS", all)]);
    assert_eq!(said, [""; 0]);
}

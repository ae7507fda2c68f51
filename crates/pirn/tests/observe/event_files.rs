//! Files of events that a process writes by itself, as `PIRN_EVENTS` asks for.

use std::io::{self, BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::common::{TempDir, child, watched};
use pirn::thread;
use pirn_events::{Recording, Timeline, What};

/// Runs the test again as a child with `PIRN_EVENTS`. Returns its only file of events.
fn file_of(rules: &str) -> Option<(Recording, String)> {
    let folder = TempDir::new("events");
    let value = format!("64K,{rules},folder={}", folder.path().display());
    let variables = [("PIRN_EVENTS", value.as_str()), ("PIRN_PARALLELISM", "2")];
    let mut command = child::command();
    command
        .envs(variables)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let find = || std::fs::read_dir(folder.path()).unwrap().next();
    let complete = || {
        let bytes = std::fs::read(find()?.unwrap().path()).ok()?;
        let recording = Recording::read(&mut bytes.as_slice()).ok()?;
        recording.complete.then_some(recording)
    };
    let found = loop {
        if let Some(recording) = complete() {
            break Some(recording);
        }
        if child.try_wait().unwrap().is_some() {
            break complete();
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let mut said = String::new();
    if let Some(recording) = &found {
        // It says so after it has written the file.
        let mut lines = BufReader::new(child.stderr.as_mut().unwrap());
        while !said.contains(&recording.reason) && lines.read_line(&mut said).unwrap() > 0 {}
        said += str::from_utf8(lines.buffer()).unwrap();
    }
    drop(child.stdin.take()); // The child ends.
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", child::report(&output));
    said += str::from_utf8(&output.stderr).unwrap();
    Some((found?, said))
}

/// Waits, in a child, until the parent has seen enough.
fn until_seen() {
    let _ = io::stdin().read(&mut [0]);
}

fn joined(handle: thread::JoinHandle<()>) {
    let _ = handle.join();
}

#[watched]
fn a_panic_writes_a_file() {
    if child::is_here() {
        joined(thread::spawn(|| panic!("on purpose")));
        return until_seen();
    }
    assert_panic_is_written();
}

#[watched]
fn a_panic_of_a_subtask_writes_a_file() {
    if child::is_here() {
        let joined = pirn::scope::open(|s| {
            s.fork(|| -> Result<(), io::Error> { panic!("on purpose") });
            s.join()?;
            Ok(())
        });
        assert!(joined.is_err());
        return until_seen();
    }
    assert_panic_is_written();
}

#[watched]
fn a_panic_of_a_task_writes_a_file() {
    if child::is_here() {
        let executor = pirn::executor::ThreadPerTask::new();
        let task = executor.submit(|| panic!("on purpose")).unwrap();
        assert!(task.join().is_err());
        return until_seen();
    }
    assert_panic_is_written();
}

/// Runs the test as a child that writes a file because of a panic.
fn assert_panic_is_written() {
    let (recording, stderr) = file_of("panic").unwrap();
    assert!(
        recording.reason.ends_with("has panicked"),
        "{}",
        recording.reason
    );
    assert!(stderr.contains(&recording.reason), "{stderr}");
    let timeline = Timeline::new(&recording);
    assert!(
        timeline
            .events
            .iter()
            .any(|event| event.what == What::Panic)
    );
}

#[watched]
fn a_stuck_carrier_writes_a_file() {
    if child::is_here() {
        static OVER: AtomicBool = AtomicBool::new(false);
        let hog = thread::spawn(|| {
            thread::no_preemption(|| {
                while !OVER.load(SeqCst) {
                    std::hint::spin_loop();
                }
            });
        });
        until_seen();
        OVER.store(true, SeqCst);
        return joined(hog);
    }
    let (recording, _) = file_of("stuck=30ms").unwrap();
    assert!(
        recording.reason.contains("has carried one thread for"),
        "{}",
        recording.reason
    );
    let timeline = Timeline::new(&recording);
    assert!(
        timeline
            .events
            .iter()
            .any(|event| matches!(event.what, What::Stuck { .. }))
    );
}

#[watched]
fn a_long_latency_writes_a_file() {
    if child::is_here() {
        // More threads than carriers keep those for longer than the limit; the others wait.
        static DONE: AtomicU64 = AtomicU64::new(0);
        let compute = |_| {
            thread::spawn(|| {
                thread::no_preemption(|| {
                    let begin = std::time::Instant::now();
                    while begin.elapsed() < Duration::from_millis(60) {
                        std::hint::spin_loop();
                    }
                });
                DONE.fetch_add(1, SeqCst);
            })
        };
        let threads = [0; 40].map(compute);
        until_seen();
        return threads.into_iter().for_each(joined);
    }
    let (recording, _) = file_of("latency=40ms").unwrap();
    assert!(
        recording.reason.contains("was runnable for more than 40ms"),
        "{}",
        recording.reason
    );
}

//! `pirn events`: recordings of a server, as traces that are read here field by field.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

mod shared;
mod trace;

use shared::{Folder, PIRN, Server, greet, own};
use trace::Trace;

/// Makes requests as long as `f` takes: some hundreds per second, because a trace of more than
/// 5,000 threads has names for some of them only, and each request has a thread.
fn ask_while<R>(server: &Server, f: impl FnOnce() -> R) -> R {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(SeqCst) {
                greet(server);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let _over = Over(&over);
        f()
    })
}

/// Sets it when it is dropped, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn pirn(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = Command::new(PIRN);
    command
        .current_dir(&folder.0)
        .args(arguments)
        .output()
        .unwrap()
}

/// Runs a command that must succeed, and returns what it says.
fn run(folder: &Folder, arguments: &[&str]) -> String {
    let output = pirn(folder, arguments);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}{errors}");
    said
}

/// Runs a command that must fail, and returns the reason that it gives.
fn reason(folder: &Folder, arguments: &[&str]) -> String {
    let output = pirn(folder, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!errors.contains("panicked"), "{errors}");
    let reason = errors.strip_prefix("pirn: ");
    reason
        .unwrap_or_else(|| panic!("{errors}"))
        .trim_end()
        .into()
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

/// A turn of a thread on a processor: from when to when.
type Turn = (u64, u64);

/// Asserts that the switches of each processor follow one another, and returns the turns of the
/// virtual threads.
fn turns(trace: &Trace) -> BTreeMap<u64, Vec<Turn>> {
    let mut on: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut turns: BTreeMap<u64, Vec<Turn>> = BTreeMap::new();
    for switch in &trace.switches {
        let before = on.insert(switch.cpu, (switch.time, switch.next));
        if let Some((time, thread)) = before {
            assert!(time <= switch.time, "{switch:?} is before {time}");
            assert_eq!(thread, switch.prev, "who left was not there: {switch:?}");
            turns.entry(thread).or_default().push((time, switch.time));
        }
    }
    for (time, thread) in on.into_values() {
        turns.entry(thread).or_default().push((time, u64::MAX));
    }
    turns.remove(&0);
    turns
}

/// Asserts that a trace is one of carriers and threads with names, each of which is on one carrier
/// at a time. Returns the number of threads that ran.
fn check(trace: &Trace) -> usize {
    let mut turns = turns(trace);
    for (thread, turns) in &mut turns {
        assert!(trace.names.contains_key(thread), "{thread} has no name");
        turns.sort();
        assert!(
            turns.is_sorted_by(|a, b| a.1 <= b.0),
            "{thread} is in two places"
        );
    }
    // `main` carries a thread that it joins, or that it lends itself to.
    let is_carrier = |name: &&String| {
        ["carrier ", "platform thread "]
            .iter()
            .any(|kind| name.starts_with(kind))
    };
    let carriers = trace.names.values().filter(is_carrier).count() as u64;
    let cpus = trace.switches.iter().map(|switch| switch.cpu);
    assert!(
        cpus.max().is_none_or(|cpu| cpu < carriers),
        "{:?}",
        trace.names
    );
    turns.len()
}

#[test]
fn a_recording_is_a_trace_of_carriers_and_threads() {
    let folder = Folder::new("events-trace");
    let server = shared::demo_in(&[("PIRN_PARALLELISM", "2")]);
    greet(&server);
    let (pid, file) = (server.pid(), format!("pirn-{}.pftrace", server.pid()));
    let said = ask_while(&server, || {
        run(&folder, &["events", &pid, "--seconds", "1"])
    });
    assert_has(
        &said,
        &[
            &format!("recording process {pid} for 1 s"),
            &file,
            " on 2 carriers",
        ],
    );
    let trace = Trace::read(&fs::read(folder.path(&file)).unwrap());
    let threads = check(&trace);
    assert!(
        threads > 2 * own(),
        "the server's own, and the ones that answer: {threads}"
    );
    assert_eq!(trace.pid, u64::from(server.running.process.id()));
    assert_has(&trace.program, &["pirn"]);
    let said_threads = format!(" of {} virtual threads ", trace.virtual_threads());
    assert_has(&said, &[&said_threads]);
    // Each was spawned and woken by a thread.
    assert!(!trace.woken.is_empty());
    assert!(
        trace
            .woken
            .iter()
            .all(|thread| trace.names.contains_key(thread))
    );
}

#[test]
fn events_are_saved_and_read_later() {
    let folder = Folder::new("events-saved");
    let server = shared::demo();
    greet(&server);
    let pid = server.pid();
    let record = ["events", &pid, "--seconds", "1", "--output", "some.events"];
    let said = ask_while(&server, || run(&folder, &record));
    let bytes = fs::metadata(folder.path("some.events")).unwrap().len();
    assert_has(&said, &[&format!("some.events: {bytes} bytes of events")]);
    drop(server);
    // A file that is there already is replaced, the longer one as well.
    fs::write(folder.path("a.pftrace"), vec![0xff; 8 << 20]).unwrap();
    let said = run(&folder, &["events", "some.events", "--output", "a.pftrace"]);
    assert_has(&said, &["a.pftrace: ", " virtual threads on "]);
    assert!(!said.contains("recording process"), "{said}");
    let trace = Trace::read(&fs::read(folder.path("a.pftrace")).unwrap());
    assert!(check(&trace) > 2 * own());
    assert_eq!(trace.pid.to_string(), pid);
    run(&folder, &["events", "some.events", "--output", "b.pftrace"]);
    let [a, b] = ["a.pftrace", "b.pftrace"].map(|name| fs::read(folder.path(name)).unwrap());
    assert!(a == b, "the same events make another trace");
    let json = reason(&folder, &["events", "some.events", "--output", "c.json"]);
    assert_has(&json, &[".pftrace", "traceconv json"]);
    assert!(!fs::exists(folder.path("c.json")).unwrap());
    // A recording that breaks off says so, and is read as far as it goes.
    let half = fs::read(folder.path("some.events")).unwrap();
    fs::write(folder.path("half.events"), &half[..half.len() / 2]).unwrap();
    let said = run(&folder, &["events", "half.events", "--output", "d.pftrace"]);
    assert_has(&said, &["the recording breaks off"]);
    check(&Trace::read(&fs::read(folder.path("d.pftrace")).unwrap()));
}

#[test]
fn what_a_process_has_kept_is_taken_at_once() {
    let folder = Folder::new("events-kept");
    let server = shared::demo_in(&[("PIRN_EVENTS", "64K")]);
    (0..20).for_each(|_| greet(&server));
    let said = run(
        &folder,
        &["events", &server.pid(), "--kept", "-o", "kept.pftrace"],
    );
    assert!(!said.contains("recording process"), "{said}");
    let trace = Trace::read(&fs::read(folder.path("kept.pftrace")).unwrap());
    assert!(
        check(&trace) > 2 * own(),
        "what was before the question: {said}"
    );

    let keeps_none = shared::demo();
    greet(&keeps_none);
    let said = run(
        &folder,
        &["events", &keeps_none.pid(), "--kept", "-o", "none.pftrace"],
    );
    assert_has(&said, &[" 0 events ", "PIRN_EVENTS"]);
    check(&Trace::read(
        &fs::read(folder.path("none.pftrace")).unwrap(),
    ));
    // Asking does not keep it from being recorded later.
    let record = [
        "events",
        &keeps_none.pid(),
        "--seconds",
        "1",
        "-o",
        "some.pftrace",
    ];
    ask_while(&keeps_none, || run(&folder, &record));
    let trace = Trace::read(&fs::read(folder.path("some.pftrace")).unwrap());
    assert!(check(&trace) > 2 * own());
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let folder = Folder::new("events-refused");
    let none = reason(&folder, &["events", "4194304", "--seconds", "1"]);
    assert_eq!(none, "there is no process 4194304");
    let none = reason(&folder, &["events", "no-server-of-this-name"]);
    assert_has(&none, &["no-server-of-this-name"]);
    for bad in [
        &["--seconds", "0"][..],
        &["--seconds", "x"],
        &["--kept", "--seconds", "2"],
    ] {
        let arguments = [&["events", "1"][..], bad].concat();
        assert_eq!(pirn(&folder, &arguments).status.code(), Some(2), "{bad:?}");
    }
    fs::write(
        folder.path("no.events"),
        b"PIRNEVTS and then nothing sensible",
    )
    .unwrap();
    reason(&folder, &["events", "no.events"]);
    fs::write(folder.path("empty.events"), b"").unwrap();
    reason(&folder, &["events", "empty.events"]);
    assert_eq!(
        fs::read_dir(&folder.0).unwrap().count(),
        2,
        "no trace was made"
    );
}

#[test]
fn what_cannot_be_written_is_said_before_anything_is_recorded() {
    let folder = Folder::new("events-unwritable");
    fs::create_dir(folder.path("folder")).unwrap();
    let server = shared::demo();
    greet(&server);
    let pid = server.pid();
    for (file, cause) in [
        ("folder", "Is a directory"),
        ("folder/trace.pftrace/", "Is a directory"),
        ("none/some.events", "No such file or directory"),
    ] {
        let output = pirn(
            &folder,
            &["events", &pid, "--seconds", "1", "--output", file],
        );
        assert_eq!(output.status.code(), Some(1), "{file}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "it recorded");
        let errors = String::from_utf8_lossy(&output.stderr);
        let expected = format!("pirn: cannot write '{file}': {cause}");
        assert!(errors.starts_with(&expected), "{errors}");
    }
}

/// A process that says nothing when it is asked: all that it serves at a time are here already.
#[test]
fn a_recording_that_fails_leaves_files_as_they_are() {
    let folder = Folder::new("events-failed");
    let server = shared::demo();
    greet(&server);
    let pid = server.pid();
    fs::write(folder.path("a.events"), "before").unwrap();
    fs::write(folder.path("a.pftrace"), "before").unwrap();
    let mut recording: Vec<Child> = Vec::new();
    for number in 0..4 {
        let file = format!("long{number}.events");
        let mut command = Command::new(PIRN);
        command.current_dir(&folder.0).stdout(Stdio::piped());
        let arguments = ["events", &pid, "--seconds", "100", "--output", &file];
        recording.push(command.args(arguments).spawn().unwrap());
        // It has begun: its first events are there.
        while fs::metadata(folder.path(&file)).map_or(0, |it| it.len()) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    for file in ["a.events", "a.pftrace", "b.events", "b.pftrace"] {
        let reason = reason(
            &folder,
            &["events", &pid, "--seconds", "1", "--output", file],
        );
        assert_has(&reason, &["4 clients are being served already"]);
    }
    for process in &mut recording {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    for there in ["a.events", "a.pftrace"] {
        assert_eq!(fs::read(folder.path(there)).unwrap(), b"before");
    }
    for new in ["b.events", "b.pftrace"] {
        assert!(!fs::exists(folder.path(new)).unwrap(), "{new} was left");
    }
}

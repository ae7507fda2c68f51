//! `pirn dump`, asked about processes that have prepared nothing.

mod shared;

use shared::{Folder, PIRN, Server, own};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Starts a server without clients.
fn start() -> Server {
    with_threads(shared::demo())
}

/// Waits until a server's virtual threads have been spawned.
fn with_threads(server: Server) -> Server {
    let threads = format!("/proc/{}/task", server.pid());
    let is_monitor = |path: PathBuf| {
        let name = fs::read_to_string(path.join("comm"));
        name.is_ok_and(|name| name.trim_end() == "pirn-monitor")
    };
    let names = || fs::read_dir(&threads).unwrap().flatten();
    while !names().any(|thread| is_monitor(thread.path())) {
        std::thread::sleep(Duration::from_millis(1));
    }
    server
}

/// Returns what a dump of a server without clients begins with.
fn threads() -> String {
    format!("{} virtual threads", own())
}

/// Waits until the process handles `SIGQUIT`: that is the last step of the runtime's start.
fn until_handled(server: &Server) {
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        let mut lines = status.lines();
        let handled = lines.find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(handled.trim(), 16).unwrap() & 0b100 != 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Copies the command. By another process: a child that this one forks meanwhile would hold the
/// file open for writing, and it could not be run.
fn copy_command(to: &str) {
    assert!(
        Command::new("cp")
            .args([PIRN, to])
            .status()
            .unwrap()
            .success()
    );
}

fn pirn(arguments: &[&str]) -> Output {
    Command::new(PIRN).args(arguments).output().unwrap()
}

/// Runs a command that must succeed, and returns what it writes.
fn shown(arguments: &[&str]) -> String {
    let output = pirn(arguments);
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {said}{errors}");
    said
}

/// Runs a command that must fail, and returns the reason that it gives.
fn reason(arguments: &[&str]) -> String {
    let output = pirn(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert_eq!(text(&output.stdout), "");
    let errors = text(&output.stderr);
    errors
        .strip_prefix("pirn: ")
        .expect(&errors)
        .trim_end()
        .into()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

/// Runs a command until what it writes has these parts: now and then one of the server's threads
/// runs.
#[track_caller]
fn assert_shows(arguments: &[&str], parts: &[&str]) {
    let has_all = |text: &String| parts.iter().all(|part| text.contains(part));
    let mut texts = (0..20).map(|_| shown(arguments));
    let found = texts.by_ref().find(has_all);
    assert_has(&found.unwrap_or_else(|| shown(arguments)), parts);
}

#[test]
fn it_shows_a_process_that_has_prepared_nothing() {
    let server = start();
    let (pid, socket) = (server.pid(), server.address.clone());
    assert_shows(
        &["dump", &pid],
        &[
            &format!("{}: {} waiting", threads(), own()),
            &socket,
            "accept4",
            "running.rs",
            "accept_all",
        ],
    );
    let text = shown(&["dump", &pid, "--format", "folded"]);
    assert_has(&text, &["accept4 1\n"]);
    let text = shown(&["dump", &pid, "--tree"]);
    assert_has(&text, &["in no scope, 3 threads", &socket]);
}

#[test]
fn it_shows_only_what_is_asked_for() {
    let server = start();
    let with = |condition| shown(&["dump", &server.pid(), "--where", condition]);
    assert_has(&with("state=waiting,frame=accept"), &["1 virtual thread"]);
    assert_has(&with("name=http-accept"), &["1 virtual thread", "accept4"]);
    let text = shown(&["dump", &server.pid(), "--id", "3", "--format", "threads"]);
    assert_has(&text, &["#3", "http-accept", "accept4"]);
    let text = shown(&["dump", &server.pid(), "--runtime-frames"]);
    assert_has(&text, &["pirn_rt::blocking"]);
    let output = pirn(&[
        "dump",
        &server.pid(),
        "--where",
        "state=running,frame=accept",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(" virtual threads, none meets the conditions"),
        "{said}"
    );
    let output = pirn(&["dump", &server.pid(), "--where", "colour=red"]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "an error of the command line"
    );
}

#[test]
fn processes_are_listed() {
    let server = start();
    let line = format!("{:>8} ", server.pid());
    let listed = shown(&["ps"]);
    let ours = listed.lines().find(|listed| listed.starts_with(&line));
    let ours = ours.unwrap_or_else(|| panic!("{listed}"));
    assert!(ours.ends_with(" demo server 127.0.0.1:0"), "{ours}");
    let own = format!("{:>8} ", std::process::id());
    assert!(!listed.contains(&own), "this one has none: {listed}");
}

#[test]
fn a_saved_dump_is_shown_later_and_compared() {
    let folder = Folder::new("saved");
    let file = folder.path("first.pirndump");
    let server = start();
    let save = || assert_eq!(shown(&["dump", &server.pid(), "--output", &file]), "");
    save();
    while !shown(&["dump", &file]).contains("3 waiting") {
        save();
    }
    assert_shows(
        &["dump", &server.pid(), "--diff", &file],
        &["3 threads before, 3 after", "0 groups grew"],
    );
    let saved = shown(&["dump", &file, "--format", "folded"]);
    assert_shows(&["dump", &server.pid(), "--format", "folded"], &[&saved]);
    drop(server);
    assert_eq!(shown(&["dump", &file, "--format", "folded"]), saved);
    let text = folder.path("later.txt");
    assert_eq!(shown(&["dump", &file, "--output", &text]), "");
    assert_has(
        &fs::read_to_string(&text).unwrap(),
        &[&threads(), "accept4"],
    );

    fs::write(&file, b"PIRNDUMP and then nothing sensible").unwrap();
    assert!(reason(&["dump", &file]).starts_with(&format!("cannot read '{file}': ")));
    assert!(reason(&["dump", &folder.path("none")]).contains("No such file"));
}

#[test]
fn a_process_is_found_by_its_name() {
    let folder = Folder::new("named");
    let program = folder.path("a-server-of-some-name");
    copy_command(&program);
    let start = || with_threads(shared::demo_by(&mut Command::new(&program)));
    let one = start();
    let name = "a-server-of-some-name";
    assert_has(&shown(&["dump", name]), &[&threads()]);
    let other = start();
    let error = reason(&["dump", name]);
    assert_has(
        &error,
        &["2 processes are called", &one.pid(), &other.pid()],
    );
    let error = reason(&["dump", "no-server-of-this-name"]);
    assert_has(
        &error,
        &["no process with virtual threads is called \"no-server-of-this-name\""],
    );
}

#[test]
fn a_program_that_was_replaced_still_has_names() {
    let folder = Folder::new("replaced");
    let program = folder.path("server");
    copy_command(&program);
    let server = shared::demo_by(&mut Command::new(&program));
    fs::remove_file(&program).unwrap();
    fs::write(&program, "another version").unwrap();
    let text = shown(&["dump", &server.pid()]);
    assert_has(&text, &[&threads(), "accept_all", "running.rs"]);
}

#[test]
fn who_cannot_answer_is_said_and_what_to_do() {
    let none = reason(&["dump", "4194304"]); // More than any process has.
    assert_eq!(none, "there is no process 4194304");
    let mut sleep = Command::new("sleep").arg("60").spawn().unwrap();
    let error = reason(&["dump", &sleep.id().to_string()]);
    assert_has(
        &error,
        &["(\"sleep\") has no virtual threads", "pirn doctor"],
    );
    assert!(sleep.try_wait().unwrap().is_none(), "it was harmed");
    sleep.kill().unwrap();
    sleep.wait().unwrap();

    let server = start();
    server.running.signal("-STOP");
    let error = reason(&["dump", &server.pid()]);
    assert_has(
        &error,
        &["has not answered within two seconds", "it is stopped"],
    );
    server.running.signal("-CONT");
    shown(&["dump", &server.pid()]);
}

#[test]
fn a_process_may_refuse() {
    let mut command = Command::new(PIRN);
    let closed = with_threads(shared::demo_by(
        command.env("PIRN_OBSERVE", "0").env("PIRN_PREEMPT", "0"),
    ));
    let error = reason(&["dump", &closed.pid()]);
    assert_has(&error, &["does not let tools in", "PIRN_OBSERVE=0"]);
}

#[test]
fn another_user_is_told_who_may() {
    let nobody = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", PIRN]);
        command
    };
    if !nobody()
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        eprintln!("skipped: this user cannot become another");
        return;
    }
    let server = start();
    let asks = || nobody().args(["dump", &server.pid()]).output().unwrap();
    let refused = |output: Output| {
        assert_eq!(output.status.code(), Some(1));
        assert_has(&text(&output.stderr), &["belongs to user 0", "sudo"]);
    };
    refused(asks());
    shown(&["dump", &server.pid()]); // Now it listens.
    refused(asks());
    let own = with_threads(shared::demo_by(&mut nobody()));
    let output = nobody().args(["dump", &own.pid()]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_has(&text(&output.stdout), &[&threads()]);
    assert_has(&shown(&["dump", &own.pid()]), &[&threads()]);
}

#[test]
fn a_process_in_a_container_is_shown_from_outside() {
    const NAMESPACES: [&str; 5] = ["--pid", "--mount", "--mount-proc", "--fork", "--kill-child"];
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(NAMESPACES);
        command
    };
    if !unshare()
        .arg("true")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        eprintln!("skipped: this user may not make namespaces");
        return;
    }
    let children = |outer: &Server| {
        let children = format!("/proc/{0}/task/{0}/children", outer.pid());
        fs::read_to_string(children).unwrap().trim().to_owned()
    };
    let outer = shared::demo_by(unshare().arg(PIRN));
    let text = shown(&["dump", &children(&outer)]);
    assert_has(&text, &[&threads(), &outer.address]);

    // With files of its own, too: the socket is not where it would be out here.
    let user = fs::metadata("/proc/self").unwrap().uid();
    let folder = format!("/tmp/pirn-{user}");
    let script = "mkdir -p -m 700 $0 && mount -t tmpfs -o mode=700 none $0 && exec \"$@\"";
    let mut command = unshare();
    command.args(["sh", "-c", script, &folder, PIRN]);
    let outer = shared::demo_by(command.env_remove("XDG_RUNTIME_DIR"));
    let pid = children(&outer);
    let text = shown(&["dump", &pid]);
    assert_has(&text, &[&threads(), &outer.address, "accept_all"]);
    let inside = fs::read_dir(format!("/proc/{pid}/root{folder}")).unwrap();
    let names: Vec<_> = inside.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].to_str().unwrap().starts_with("1-"), "{names:?}");
    assert!(!Path::new(&folder).join(&names[0]).exists());
}

#[test]
fn sigquit_writes_the_dump_to_standard_error() {
    let (from, to) = std::io::pipe().unwrap();
    // Shells start what is to run in the background with this signal ignored.
    let mut command = Command::new("env");
    command.args(["--default-signal=QUIT", PIRN]).stderr(to);
    let server = with_threads(shared::demo_by(&mut command));
    drop(command); // It holds an end of the pipe.
    until_handled(&server);
    server.running.signal("-QUIT");
    let mut lines = BufReader::new(from).lines().map(Result::unwrap);
    assert_has(&lines.next().unwrap(), &["pirn: SIGQUIT: "]);
    assert!(lines.any(|line| line.contains("accept4")));
    shown(&["dump", &server.pid(), "--timeout", "60"]);
}

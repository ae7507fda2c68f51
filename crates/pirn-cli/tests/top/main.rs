//! `pirn top`, asked about a server: as text, and in a terminal that the test holds.

mod panics;
#[path = "../shared/mod.rs"]
mod shared;
mod terminal;

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use shared::{PIRN, Server, own};
use terminal::Terminal;

/// A server with threads of its own, one of which waits for connections, and one per connection
/// that waits for requests.
struct Target {
    server: Server,
    _clients: Vec<TcpStream>,
}

impl Target {
    fn with_clients(count: usize) -> Target {
        let server = shared::demo_in(&[("PIRN_PARALLELISM", "2")]);
        let clients = (0..count).map(|_| server.connect()).collect();
        let target = Target {
            server,
            _clients: clients,
        };
        target.until_waiting(count + own());
        target
    }

    /// Waits until so many threads wait.
    fn until_waiting(&self, count: usize) {
        let expected = format!("{count} waiting");
        loop {
            let dump = pirn(&["dump", &self.pid()]);
            if text(&dump.stdout).contains(&expected) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn pid(&self) -> String {
        self.server.pid()
    }

    fn signal(&self, name: &str) {
        self.server.running.signal(name);
    }

    fn kill(&mut self) {
        self.server.running.kill();
    }

    /// Returns a terminal in which `pirn top` shows the server.
    fn top(&self, columns: u16, rows: u16) -> Terminal {
        Terminal::start(&[PIRN, "top", &self.pid(), "-d", "0.2"], columns, rows)
    }
}

fn pirn(arguments: &[&str]) -> Output {
    let mut command = Command::new(PIRN);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the page of groups, once all threads wait: now and then one of the server's runs.
fn page_of_waiting(server: &Target) -> String {
    let mut pages = (0..20).map(|_| page(server, &[]));
    let waiting = pages.find(|page| page.contains("6 waiting"));
    waiting.unwrap_or_else(|| page(server, &[]))
}

/// Runs `pirn top --batch` for one page with these arguments.
#[track_caller]
fn page(server: &Target, arguments: &[&str]) -> String {
    let pid = server.pid();
    let mut all = vec!["top", "--batch", "-d", "0.1", "-n", "1", &pid];
    all.extend(arguments);
    let output = pirn(&all);
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {said}{errors}");
    said
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

/// Returns the rows below the titles.
fn rows(page: &str, first_title: &str) -> Vec<String> {
    let mut lines = page.lines().map(str::to_string);
    let titles = lines.find(|line| line.trim_start().starts_with(first_title));
    assert!(titles.is_some(), "{page}");
    let mut rows: Vec<String> = lines.collect();
    rows.pop(); // How old it is.
    rows
}

#[test]
fn groups_are_a_page_of_text() {
    let server = Target::with_clients(3);
    let page = page_of_waiting(&server);
    let pid = format!("pirn  pid {}  up ", server.pid());
    assert_has(
        &page,
        &[
            &pid,
            "threads     6 in all",
            "6 waiting",
            "per second      0 spawned",
            "carrier 0",
            "carrier 1",
            "4 groups; dump",
        ],
    );
    let rows = rows(&page, "COUNT");
    assert_eq!(rows.len(), 1 + own(), "{page}");
    assert_has(
        &rows[0],
        &[
            "3",
            "waiting",
            "read",
            "running.rs:",
            "Socket as std::io::Read",
        ],
    );
    let accepts = rows.iter().find(|row| row.contains("accept")).unwrap();
    assert_has(accepts, &["1", "waiting", "read", "running.rs:"]);
    let plain = |c: char| c == '\n' || !c.is_control();
    assert!(page.chars().all(plain), "{page:?}");
}

#[test]
fn threads_and_carriers_are_pages_of_text() {
    let server = Target::with_clients(3);
    let threads = page(&server, &["--page", "threads", "--sort", "id"]);
    let ids: Vec<String> = rows(&threads, "ID")
        .iter()
        .map(|row| row.split_whitespace().next().unwrap().into())
        .collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6"], "{threads}");
    assert_has(&threads, &["read fd ", "127.0.0.1:"]);
    let one = page(&server, &["--page", "threads", "--where", "frame=accept"]);
    assert_eq!(rows(&one, "ID").len(), 1, "{one}");
    let few = page(&server, &["--page", "threads", "--rows", "2"]);
    assert_eq!(rows(&few, "ID").len(), 2, "{few}");
    let carriers = page(&server, &["--page", "carriers"]);
    assert_eq!(rows(&carriers, "CARRIER").len(), 2, "{carriers}");
    // A bare word, also on the page of groups, which then needs all threads.
    let groups = page(&server, &["--where", "accept"]);
    assert_eq!(rows(&groups, "COUNT").len(), 1, "{groups}");
}

#[test]
fn pages_follow_until_the_process_ends() {
    let mut server = Target::with_clients(1);
    let mut top = Command::new(PIRN)
        .args(["top", "--batch", "-d", "0.1", &server.pid()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let is_head = |line: &String| line.starts_with("pirn  pid ");
    for _ in 0..2 {
        assert!(
            lines
                .by_ref()
                .map(Result::unwrap)
                .any(|line| is_head(&line))
        );
    }
    server.kill();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let mut errors = String::new();
    top.stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    assert_eq!(top.wait().unwrap().code(), Some(1));
    assert_eq!(
        errors,
        format!("pirn: process {} (\"pirn\") has ended\n", server.pid())
    );
    assert!(
        rest.last()
            .is_some_and(|line| line.contains("groups; dump")),
        "{rest:?}"
    );
}

#[test]
fn a_stopped_process_is_a_page_that_says_so() {
    let server = Target::with_clients(1);
    let mut top = Command::new(PIRN)
        .args(["top", "--batch", "-d", "0.1", &server.pid()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let mut until = |part: &str| assert!(lines.any(|line| line.contains(part)), "no {part:?}");
    until("groups; dump");
    server.signal("-STOP");
    until("it is stopped");
    server.signal("-CONT");
    until("groups; dump");
    top.kill().unwrap();
    top.wait().unwrap();
}

#[test]
fn what_is_wrong_is_said() {
    let server = Target::with_clients(0);
    let reason = |arguments: &[&str]| {
        let output = pirn(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert_eq!(text(&output.stdout), "");
        text(&output.stderr)
    };
    let pid = server.pid();
    assert_has(
        &reason(&["top", &pid]),
        &["this is not a terminal: --batch"],
    );
    let error = reason(&["top", "-b", &pid, "--sort", "stuck"]);
    assert_has(
        &error,
        &["groups are not sorted by stuck, but by one of: count, growth, age"],
    );
    assert_has(
        &reason(&["top", "-b", "4194304"]),
        &["there is no process 4194304"],
    );
    for (wrong, why) in [
        (["-d", "0"], "it is not between 0.01 and 3600"),
        (
            ["--where", "colour=red"],
            "there is no condition \"colour\"",
        ),
    ] {
        let output = pirn(&[&["top", "-b", &pid], &wrong[..]].concat());
        assert_eq!(output.status.code(), Some(2), "of the command line");
        assert_has(&text(&output.stderr), &[why]);
    }
}

#[test]
fn keys_turn_pages_and_open_stacks() {
    let server = Target::with_clients(3);
    let mut top = server.top(120, 30);
    let first = top.until_has(&["1 of 4 groups; dump", "threads     6 in all"]);
    assert_has(&first, &["COUNT", "q quit"]);
    assert!(top.screen().alternate_screen());
    top.write("\r");
    top.until_has(&["3 threads waiting to read", "spawned at", "Esc back"]);
    top.write("\x1b");
    top.until_has(&["COUNT"]);
    top.write("2");
    top.until_has(&["1 of 6 threads", "MOUNTS/s"]);
    top.write("/frame=accept\r");
    top.until_has(&["where frame=accept", "1 thread; dump"]);
    top.write("\r");
    top.until_has(&["thread #3", "accept4", "read fd "]);
    top.write("q\x1b");
    top.until_has(&["1 of 6 threads"]);
    top.write("3");
    top.until_has(&["CARRIER", "1 of 2 carriers"]);
    top.write("h");
    top.until_has(&["What is shown"]);
    top.write("\x03");
    assert!(top.ended().success());
}

#[test]
fn without_colors_nothing_has_one() {
    let server = Target::with_clients(2);
    let has_color = |screen: &vt100::Screen| {
        let places = (0..30).flat_map(|row| (0..120).map(move |column| (row, column)));
        places
            .filter_map(|(row, column)| screen.cell(row, column))
            .any(|cell| cell.fgcolor() != vt100::Color::Default)
    };
    let pid = server.pid();
    for (variable, expected) in [("NO_COLOR=1", false), ("NO_COLOR=", true)] {
        let mut top = Terminal::start(&["env", variable, PIRN, "top", &pid], 120, 30);
        top.until_has(&["groups; dump", "sorted by count", "carrier 1"]);
        assert_eq!(has_color(top.screen()), expected, "{variable}");
        assert!(top.screen().contents().contains("COUNT"));
        top.write("q");
        assert!(top.ended().success());
    }
}

#[test]
fn the_size_of_the_terminal_may_change() {
    let server = Target::with_clients(2);
    let mut top = server.top(100, 24);
    top.until_has(&["groups; dump"]);
    for (columns, rows) in [(40, 10), (1, 1), (3, 2), (300, 60), (40, 10)] {
        top.resize(columns, rows);
        top.write(" "); // Pausing draws, too.
    }
    top.until_has(&["1 groups", "COUNT", "q quit"]);
    top.write("q");
    assert!(top.ended().success());
}

#[test]
fn the_end_of_the_process_is_said_and_waited_at() {
    let mut server = Target::with_clients(1);
    let mut top = server.top(120, 30);
    top.until_has(&["groups; dump"]);
    server.kill();
    let last = top.until_has(&["has ended: q ends"]);
    assert_has(&last, &["COUNT", "waiting"]);
    top.write("2");
    top.until_has(&["ID", "NAME"]);
    top.write("q");
    assert!(top.ended().success());
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let server = Target::with_clients(1);
    for name in ["-TERM", "-HUP"] {
        let mut top = server.top(120, 30);
        top.until_has(&["groups; dump"]);
        let pid = top.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &pid])
                .status()
                .unwrap()
                .success()
        );
        top.ended();
    }
}

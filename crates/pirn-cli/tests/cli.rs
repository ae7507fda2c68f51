//! The built `pirn` command, run with tiny sizes.

mod shared;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output, Stdio};

use shared::PIRN;

/// Runs `pirn` with `arguments` to its end.
fn pirn(arguments: &[&str]) -> Output {
    let mut command = Command::new(PIRN);
    finish(command.args(arguments))
}

/// Runs a shell script, for example an `ulimit` with `pirn` after it.
fn shell(script: &str) -> Output {
    finish(Command::new("sh").args(["-c", script]))
}

fn finish(command: &mut Command) -> Output {
    let _watchdog = shared::watch(format!("{command:?}"));
    command
        .stdin(Stdio::null())
        .output()
        .expect("the command can be run")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The values in the row of the demo's table that begins with `name`.
fn row(table: &str, name: &str) -> Vec<String> {
    table
        .lines()
        .map(|line| line.split(['│', '┆']).map(str::trim).collect::<Vec<_>>())
        .find(|cells| cells.get(1) == Some(&name))
        .map(|cells| {
            cells[2..cells.len() - 1]
                .iter()
                .map(|&cell| cell.into())
                .collect()
        })
        .unwrap_or_else(|| panic!("no row {name:?} in\n{table}"))
}

fn assert_success(output: &Output) {
    assert!(
        output.status.success(),
        "{}\n{}\n{}",
        output.status,
        stdout(output),
        stderr(output)
    );
}

#[test]
fn gdb_script_prints_commands_for_gdb() {
    let output = pirn(&["gdb-script"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("class PirnUnwinder(gdb.unwinder.Unwinder)"));
}

#[test]
fn demo_runs_on_both_kinds_of_threads() {
    let output = pirn(&[
        "demo",
        "--users",
        "200",
        "--delay-ms",
        "20",
        "--requests",
        "2",
    ]);
    assert_success(&output);
    let said = stdout(&output);
    assert!(
        said.starts_with("virtual threads: 200 users, 2 requests each, 20 ms"),
        "{said}"
    );
    assert_eq!(row(&said, ""), ["virtual threads", "platform threads"]);
    assert_eq!(row(&said, "users"), ["200", "200"]);
    assert_eq!(row(&said, "requests answered"), ["400", "400"]);
    assert_eq!(row(&said, "errors"), ["0", "0"]);
    for latency in [
        "latency, mean",
        "latency, p50",
        "latency, p99",
        "latency, max",
    ] {
        for value in row(&said, latency) {
            let millis: f64 = value.trim_end_matches(" ms").parse().expect(&value);
            assert!(
                millis >= 19.9,
                "{latency} is {value}, but the handler waits 20 ms"
            );
        }
    }
    let threads = &row(&said, "OS threads, peak")[1];
    assert!(
        threads.parse::<u32>().unwrap() >= 400,
        "two for each user: {threads}"
    );
    assert_eq!(row(&said, "throughput").len(), 2);
    assert_eq!(row(&said, "resident memory, peak").len(), 2);
    assert_eq!(
        stderr(&output),
        "",
        "the progress line is for terminals only"
    );
}

#[test]
fn demo_runs_with_one_user_and_without_delay() {
    let output = pirn(&["demo", "--users", "1", "--delay-ms", "0", "--requests", "1"]);
    assert_success(&output);
    assert_eq!(row(&stdout(&output), "requests answered"), ["1", "1"]);
}

#[test]
fn demo_raises_its_soft_limit_of_open_files() {
    let output = shell(&format!(
        "ulimit -Sn 64 && exec {PIRN} demo --users 100 --delay-ms 1 --requests 1"
    ));
    assert_success(&output);
    assert_eq!(row(&stdout(&output), "users"), ["100", "100"]);
}

/// What to put before a command so that it may not raise its hard limits; `None` where that cannot
/// be had.
fn unprivileged() -> Option<&'static str> {
    let root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let without_capability = "setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource";
    if !root {
        return Some("");
    }
    let works = Command::new("sh")
        .args(["-c", &format!("{without_capability} true")])
        .stderr(Stdio::null())
        .status();
    works
        .is_ok_and(|status| status.success())
        .then_some(without_capability)
}

#[test]
fn demo_scales_down_where_it_may_not_open_enough_files() {
    let Some(unprivileged) = unprivileged() else {
        println!("skipped: root may raise every limit, and there is no setpriv to take that away");
        return;
    };
    // 33 files are for other things, and a carrier and a user take one each.
    let others = 33 + std::thread::available_parallelism().unwrap().get();
    let limit = others + 51;
    let output = shell(&format!(
        "ulimit -n {limit} && exec {unprivileged} {PIRN} demo --users 100 --delay-ms 1 --requests 2"
    ));
    assert_success(&output);
    let said = stdout(&output);
    assert!(
        said.contains(&format!(
            "  51 instead of 100 users: the limit of open files is {limit} "
        )) && said.contains(&format!("and {others} are for listeners")),
        "{said}"
    );
    assert_eq!(row(&said, "users"), ["51", "51"]);
    assert_eq!(row(&said, "requests answered"), ["102", "102"]);
    assert_eq!(stderr(&output), "", "the runtime has nothing to warn of");

    let output = shell(&format!(
        "ulimit -n 30 && exec {unprivileged} {PIRN} demo --users 1"
    ));
    assert_eq!(output.status.code(), Some(1));
    let said = stdout(&output);
    assert!(
        said.contains("  0 instead of 1 users: the limit of open files is 30 "),
        "{said}"
    );
}

#[test]
fn million_goes_through_all_its_steps() {
    let output = pirn(&["demo", "million", "--threads", "200"]);
    assert_success(&output);
    let said = stdout(&output);
    assert!(said.starts_with("200 virtual threads\n"), "{said}");
    let steps: Vec<_> = said
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(steps[..6], ["200", "step", "spawn", "park", "wake", "join"]);
    assert!(said.contains("memory of virtual threads: "), "{said}");
}

#[test]
fn the_demos_server_answers_outside_clients() {
    let server = shared::demo_with(&mut Command::new(PIRN), &["--delay-ms", "1"]);
    let hello = server.ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(hello.starts_with("HTTP/1.1 200 OK\r\n"), "{hello}");
    assert!(hello.ends_with("\r\n\r\nHello, World!"), "{hello}");
    let bad = server.ask("nonsense\r\n\r\n");
    assert!(bad.starts_with("HTTP/1.1 400 "), "{bad}");
    let large = server.ask(&format!(
        "GET / HTTP/1.1\r\nX: {}\r\n\r\n",
        "x".repeat(20_000)
    ));
    assert!(large.starts_with("HTTP/1.1 431 "), "{large}");
}

#[test]
fn the_demos_server_has_several_addresses_and_ends_when_it_is_told_to() {
    let mut command = Command::new(PIRN);
    let arguments = [
        "demo",
        "server",
        "--platform-threads",
        "127.0.0.1:0",
        "127.0.0.2:0",
    ];
    let (mut running, last) = shared::Running::start(command.args(arguments), "127.0.0.2:");
    let address = last.rsplit('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nHello, World!"), "{answer}");
    running.signal("-TERM");
    assert_eq!(running.process.wait().unwrap().code(), Some(0));
}

#[test]
fn the_demos_server_keeps_many_connections_at_once() {
    let server = shared::demo();
    let mut streams: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for _ in 0..2 {
        for stream in &mut streams {
            stream
                .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                .unwrap();
        }
        for stream in &mut streams {
            let mut reader = BufReader::new(stream);
            let lines: Vec<_> = reader
                .by_ref()
                .lines()
                .map_while(Result::ok)
                .take_while(|l| !l.is_empty())
                .collect();
            assert_eq!(lines[0], "HTTP/1.1 200 OK");
            let mut body = [0; 13];
            reader.read_exact(&mut body).unwrap();
            assert_eq!(&body, b"Hello, World!");
        }
    }
}

/// Bad arguments end with `code` and say what is wrong.
fn assert_refused(arguments: &[&str], code: i32, says: &str) {
    let output = pirn(arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(
        said.contains(says),
        "{arguments:?} says {said:?}, not {says:?}"
    );
    assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    assert_eq!(stdout(&output), "", "{arguments:?}");
}

#[test]
fn bad_arguments_are_refused() {
    assert_refused(&["demo", "--users", "0"], 2, "'--users <USERS>'");
    assert_refused(&["demo", "--users", "-1"], 2, "'-1'");
    assert_refused(&["demo", "--users", "many"], 2, "'many'");
    assert_refused(&["demo", "--requests", "0"], 2, "'--requests <REQUESTS>'");
    assert_refused(
        &["demo", "--delay-ms", "3600001"],
        2,
        "'--delay-ms <DELAY_MS>'",
    );
    assert_refused(
        &["demo", "million", "--threads", "0"],
        2,
        "'--threads <THREADS>'",
    );
    assert_refused(&["demo", "billion"], 2, "'billion'");
    assert_refused(&["dance"], 2, "'dance'");
    assert_refused(&["demo", "server"], 2, "<ADDR>");
    let line = ["demo", "server", "127.0.0.1:0", "--delay-ms", "x"];
    assert_refused(&line, 2, "'x'");
}

#[test]
fn addresses_that_cannot_be_listened_on_are_refused() {
    for address in ["nonsense", "127.0.0.1", "127.0.0.1:99999", "192.0.2.1:80"] {
        let says = format!("pirn: cannot listen on '{address}': ");
        assert_refused(&["demo", "server", address], 1, &says);
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert_refused(&["demo", "server", &address], 1, "in use");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = finish(Command::new(PIRN).arg("gdb-script").stdout(writer));
    assert_success(&output);
    assert_eq!(stderr(&output), "");
}

#[test]
fn help_names_the_commands() {
    let output = pirn(&["--help"]);
    assert_success(&output);
    let said = stdout(&output);
    assert!(said.contains("demo") && said.contains("doctor"), "{said}");
}

#[test]
fn shells_complete_and_the_manual_has_a_page_for_each_command() {
    for shell in ["bash", "zsh", "fish"] {
        let output = pirn(&["completions", shell]);
        assert_success(&output);
        let script = stdout(&output);
        assert!(script.contains("runtime-frames"), "{shell}: {script}");
    }
    let folder = shared::Folder::new("manual");
    assert_success(&pirn(&["manual", folder.0.to_str().unwrap()]));
    let page = fs::read_to_string(folder.path("pirn-dump.1")).unwrap();
    assert!(page.contains(r"\-\-runtime\-frames"), "{page}");
    assert_refused(&["manual", "/none"], 1, "pirn: cannot write to '/none'");
}

#[test]
fn nothing_is_run_without_a_command() {
    let output = pirn(&[]);
    assert_eq!(output.status.code(), Some(2));
    let help = stderr(&output);
    assert!(help.contains("Usage: pirn <COMMAND>"), "{help}");
    assert!(help.contains("\n  dump "), "{help}");
}

#[test]
fn the_doctor_says_that_virtual_threads_run_here() {
    let output = pirn(&["doctor", "--program", PIRN]);
    let out = stdout(&output);
    assert!(output.status.success(), "{out}{}", stderr(&output));
    for subject in [
        "processor",
        "kernel",
        "C library",
        "guard pages",
        "trial",
        "interposition",
    ] {
        assert!(
            out.lines().any(|line| line[6..].starts_with(subject)),
            "no {subject} in {out}"
        );
    }
    assert!(out.contains("Virtual threads run here"), "{out}");
    assert!(!out.contains("\nbad"), "{out}");
    assert!(out.lines().count() < 40, "more than a screen: {out}");
}

#[test]
fn the_doctor_says_what_pirn_run_does_with_a_program_without_pirn() {
    let script = concat!(env!("CARGO_TARGET_TMPDIR"), "/doctors-script");
    fs::write(script, "#!/bin/sh\n").unwrap();
    for (program, word) in [
        ("/bin/sh", "`pirn run` gives it"),
        (script, "a script: `pirn run`"),
    ] {
        let output = pirn(&["doctor", "--program", program]);
        let out = stdout(&output);
        assert!(output.status.success() && out.contains(word), "{out}");
    }
    fs::write(script, "#!/no/such/interpreter\n").unwrap();
    let output = pirn(&["doctor", "--program", script]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("cannot be found"));
    let output = pirn(&["doctor", "--program", "/no/such/file"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("/no/such/file"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_doctor_writes_json() {
    let output = pirn(&["doctor", "--json"]);
    let out = stdout(&output);
    assert!(output.status.success(), "{out}");
    assert!(out.starts_with("{\n  \"verdict\": \""), "{out}");
    assert!(out.contains("\"subject\": \"kernel\""), "{out}");
}

#[test]
fn the_doctor_sees_what_this_process_may() {
    let output = shell(&format!(
        "ulimit -n 100; ulimit -v 8000000; exec {PIRN} doctor"
    ));
    let out = stdout(&output);
    assert!(output.status.success(), "{out}");
    assert!(out.contains("warn  open files"), "{out}");
    assert!(out.contains("warn  address space"), "{out}");
}

#[test]
fn the_doctor_fails_where_virtual_threads_do() {
    let output = shell(&format!("PIRN_PARALLELISM=0 exec {PIRN} doctor"));
    let out = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(
        out.lines()
            .any(|l| l.starts_with("bad   trial") && l.contains("PIRN_PARALLELISM")),
        "{out}"
    );
}

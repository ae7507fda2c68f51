//! `pirn dump --outside`, and `pirn dump` of a core file: what is read of a process that is not
//! asked.

mod shared;

use shared::{Folder, PIRN, Server};
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A test that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// Connections that are silent, and requests that are being handled.
const SILENT: usize = 20;
const ASKING: usize = 7;

/// A server with connections. It is killed at the end.
struct Subject {
    server: Server,
    _connections: Vec<TcpStream>,
}

impl Subject {
    /// Starts one in a folder, in which it may leave a core file.
    fn start(folder: &Path) -> Subject {
        let script = "ulimit -c $(ulimit -H -c); exec \"$0\" \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, PIRN]).current_dir(folder);
        let server = shared::demo_with(&mut command, &["--delay-ms", "3600000"]);
        let connect = |request: &str| {
            let mut stream = server.connect();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        };
        let silent = (0..SILENT).map(|_| connect(""));
        let asking = (0..ASKING).map(|_| connect("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        let _connections = silent.chain(asking).collect();
        Subject {
            server,
            _connections,
        }
    }

    fn pid(&self) -> String {
        self.server.pid()
    }
}

/// The server is named like the library: what it calls is taken for the runtime's own.
fn dump(arguments: &[&str]) -> Output {
    let mut command = Command::new(PIRN);
    command
        .args(["dump", "--runtime-frames"])
        .args(arguments)
        .output()
        .unwrap()
}

/// Returns the text of a dump, once all connections have their threads.
fn text(arguments: &[&str]) -> String {
    let begin = Instant::now();
    loop {
        let output = dump(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}\n{error}");
        let waiting = |count: usize, what: &str| text.contains(&format!("{count} threads {what}"));
        if waiting(SILENT, "waiting to read") && waiting(ASKING, "waiting for a point in time") {
            return text;
        }
        assert!(
            begin.elapsed() < pirn_testing::patient(PATIENCE),
            "{text}\n{error}"
        );
    }
}

/// Asserts that the two groups of threads are there with their stacks, as a dump from inside shows
/// them.
fn check(text: &str) {
    let group = |count: usize| {
        let mut paragraphs = text.split("\n\n");
        let group = paragraphs.find(|text| text.starts_with(&format!("{count} threads ")));
        group.unwrap_or_else(|| panic!("no {count} threads:\n{text}"))
    };
    let in_order = |group: &str, parts: &[&str]| {
        let mut rest = group;
        for part in parts {
            let (_, after) = rest
                .split_once(part)
                .unwrap_or_else(|| panic!("no {part:?} where it should be:\n{group}"));
            rest = after;
        }
    };
    let silent = group(SILENT);
    in_order(
        silent,
        &[
            "spawned at",
            "running.rs",
            "read fd ",
            "recv",
            "next_head",
            "serve",
        ],
    );
    let asking = group(ASKING);
    in_order(
        asking,
        &[
            "spawned at",
            "running.rs",
            "clock_nanosleep",
            "handle",
            "serve",
        ],
    );
    for group in [silent, asking] {
        let ends = ["(no stack)", "lost", "unsure", "too deep"];
        assert!(!ends.iter().any(|end| group.contains(end)), "{group}");
    }
}

#[test]
fn a_process_that_is_stopped_is_read_from_outside() {
    let folder = Folder::new("outside");
    let subject = Subject::start(&folder.0);
    check(&text(&["--outside", &subject.pid()]));
    let stop = Command::new("kill")
        .args(["-STOP", &subject.pid()])
        .status();
    assert!(stop.unwrap().success());
    check(&text(&["--outside", &subject.pid()]));
    let of_one = dump(&["--outside", &subject.pid(), "--format", "json"]);
    let json = String::from_utf8_lossy(&of_one.stdout);
    assert!(json.trim_start().starts_with('{'), "{json}");
}

#[test]
fn a_core_file_has_the_threads() {
    let folder = Folder::new("core-file");
    let mut subject = Subject::start(&folder.0);
    check(&text(&["--outside", &subject.pid()]));
    let abort = Command::new("kill")
        .args(["-ABRT", &subject.pid()])
        .status();
    assert!(abort.unwrap().success());
    subject.server.running.process.wait().unwrap();
    let files = fs::read_dir(&folder.0)
        .unwrap()
        .map(|file| file.unwrap().path());
    let Some(core) = files.into_iter().next() else {
        return eprintln!("skipped: the kernel writes no core file to the current folder here");
    };
    check(&text(&[core.to_str().unwrap()]));
}

#[test]
fn what_is_no_core_file_is_refused() {
    let folder = Folder::new("no-core-file");
    let path = folder.path("core");
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let output = dump(&[&path]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(
            error.contains(&path) && !error.contains("panicked"),
            "{error}"
        );
    };
    refused(b"\x7fELF");
    let program = fs::read(PIRN).unwrap();
    refused(&program);
    // The header of a core file whose tables are beyond its end, and one of zeros.
    let machine = &program[18..20];
    let mut core = [
        b"\x7fELF\x02\x01\x01" as &[u8],
        &[0; 9],
        &[4, 0],
        machine,
        &[0; 44],
    ]
    .concat();
    refused(&core);
    core[32..40].fill(0x7f);
    core[56] = 9;
    refused(&core);
    core[56..58].fill(0xff);
    refused(&core);
}

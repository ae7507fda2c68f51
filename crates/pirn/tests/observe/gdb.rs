//! The commands for gdb, on a live process and on a core file that the kernel has written.
//!
//! A child process runs threads of four kinds; it is the same test, run again. The expected frames
//! are the functions here, by name.

use std::cell::Cell;
use std::fs;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pirn::thread;

use crate::common::{TempDir, child, skip, sys, watched};

/// gdb looks at 10,000 threads in seconds, but loads the debug information of the tests first.
const PATIENCE: Duration = Duration::from_secs(240);

thread_local! {
    static MARK: Cell<u64> = const { Cell::new(7) };
}

static GATE: Mutex<()> = Mutex::new(());
static COMPUTES: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn waits_for_bytes(depth: u32, stream: &mut TcpStream) -> u32 {
    if depth > 0 {
        return black_box(waits_for_bytes(depth - 1, stream)) + 1;
    }
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    byte[0].into()
}

#[inline(never)]
fn waits_at_the_gate() {
    drop(GATE.lock());
    black_box(());
}

#[inline(never)]
fn parks(mark: u64) {
    MARK.set(mark);
    loop {
        thread::park();
        black_box(());
    }
}

#[inline(never)]
fn computes() {
    MARK.set(99);
    COMPUTES.store(true, Ordering::SeqCst);
    loop {
        black_box(());
    }
}

/// The first line of the function below. Names without paths are all that line tables have.
const STEPS_BEGIN: u32 = line!() + 3;
#[inline(never)]
fn waits_in_lines(step: Duration) -> u32 {
    let mut done = 1;
    thread::sleep(step);
    done += 1;
    (0..50).for_each(|_| thread::sleep(step));
    done += 1;
    black_box(done) // the last line
}

/// The child to step through: several threads in the same function.
fn be_stepped() {
    let waiting = || waits_in_lines(Duration::from_millis(1));
    let threads = [(); 4].map(|()| thread::spawn(waiting));
    // This thread does not join them: if it did, it might become their carrier.
    while !threads.iter().all(thread::JoinHandle::is_finished) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The child: starts the threads, `count` of which park, tells ids, and waits for its end.
fn be_looked_at(count: u64) {
    sys::let_others_trace();
    let spawn = |name: String, f: Box<dyn FnOnce() + Send>| {
        let handle = thread::Builder::new().name(name).spawn(f).unwrap();
        handle.thread().clone()
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _silent = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut stream = listener.accept().unwrap().0;
    let _shut = GATE.lock().unwrap();
    let reader = spawn(
        "reader".into(),
        Box::new(move || {
            waits_for_bytes(3, &mut stream);
        }),
    );
    let at_gate = [0, 1, 2].map(|i| spawn(format!("gate-{i}"), Box::new(waits_at_the_gate)));
    let parked: Vec<_> = (0..count)
        .map(|i| spawn(format!("parked-{i}"), Box::new(move || parks(i))))
        .collect();
    let waiting = || {
        let mut all = parked.iter().chain(&at_gate).chain([&reader]);
        all.all(|thread| format!("{thread:?}").contains("waiting"))
    };
    while !waiting() {
        thread::yield_now();
    }
    let busy = spawn("busy".into(), Box::new(computes));
    while !COMPUTES.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    let ids = [&reader, &parked[5], &busy].map(|thread| format!("{:?}", thread.id()));
    println!("\nlook: {}", ids.join(" "));
    io::stdout().flush().unwrap();
    loop {
        std::thread::park();
    }
}

/// The child, and the ids of three of its threads. It is killed at the end.
struct Subject {
    process: Child,
    reader: String,
    parked: String,
    busy: String,
}

impl Subject {
    fn start(program: Option<&Path>, folder: &TempDir) -> Subject {
        let mut command = child::command();
        if let Some(program) = program {
            command = child::command_of(program);
        }
        let command = command.current_dir(folder.path()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut lines = lines.map(|line| line.unwrap());
        let ids = lines.find_map(|line| Some(line.strip_prefix("look: ")?.to_owned()));
        let ids = ids.expect("the child has ended");
        let mut numbers = ids.split(' ').map(|id| {
            let digits = id.chars().filter(char::is_ascii_digit);
            digits.collect::<String>()
        });
        let mut next = || numbers.next().unwrap();
        Subject {
            process,
            reader: next(),
            parked: next(),
            busy: next(),
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the reason why gdb cannot be tried here.
fn no_gdb() -> Option<&'static str> {
    let python = ["-nx", "-batch", "-ex", "python print('it has ' + 'python')"];
    match Command::new("gdb").args(python).output() {
        Err(_) => Some("there is no gdb"),
        Ok(output) if !String::from_utf8_lossy(&output.stdout).contains("it has python") => {
            Some("gdb has no Python")
        }
        Ok(_) => None,
    }
}

/// Runs gdb with these arguments, Pirn's script and these commands. Returns what it prints.
fn gdb(folder: &TempDir, arguments: &[&str], commands: &[String]) -> String {
    let script = folder.join("pirn.gdb.py");
    fs::write(&script, pirn::GDB_SCRIPT).unwrap();
    let mut command = Command::new("gdb");
    command.args(["-nx", "-q", "-batch", "-ex", "set width 0"]);
    command.args(["-ex".into(), format!("source {}", script.display())]);
    for line in commands {
        command.args(["-ex", "echo \\n--\\n", "-ex", line]);
    }
    command.args(arguments);
    // One pipe, so that errors are where they belong.
    let (mut reader, writer) = io::pipe().unwrap();
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().unwrap())
        .stderr(writer);
    let mut process = command.spawn().unwrap();
    drop(command); // with its ends of the pipe
    let mut text = Vec::new();
    reader.read_to_end(&mut text).unwrap();
    process.wait().unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

/// Asserts that `text` contains `parts` in this order.
fn assert_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some(at) = rest.find(part) else {
            panic!("no {part:?} where it should be:\n{text}");
        };
        rest = &rest[at + part.len()..];
    }
}

/// The commands whose output [`check`] expects.
fn commands(subject: &Subject) -> Vec<String> {
    let Subject {
        reader,
        parked,
        busy,
        ..
    } = subject;
    vec![
        "pirn threads name=gate-*".into(),
        "pirn groups".into(),
        format!("pirn bt {reader}"),
        format!("pirn bt {busy}"),
        format!("pirn apply {parked} frame"),
        format!("pirn tls {parked},{busy} {}::MARK", module_path!()),
        "thread apply all -s -q print $pirn_id()".into(),
        "pirn bt 4294967295".into(),
    ]
}

/// Checks what gdb has printed of `count` parked threads and the others; `named` is whether it
/// knows all functions' names.
fn check(subject: &Subject, output: &str, count: u64, named: bool) {
    let mut parts = output.split("\n--\n").skip(1);
    let mut next = || {
        parts
            .next()
            .unwrap_or_else(|| panic!("too little:\n{output}"))
    };
    let of = |name: &'static str| if named { name } else { "" };

    let gates = next();
    for i in 0..3 {
        let name = format!("\"gate-{i}\" waiting (futex 0x");
        assert_in_order(gates, &[&name, ") in ", of("syscall")]);
    }
    assert!(gates.contains("\n3 virtual threads"), "{gates}");

    let groups = next();
    let all = format!("\n{} virtual threads, ", count + 5);
    if named {
        let largest = format!("{count} waiting: ");
        assert!(groups.starts_with(&largest), "{groups}");
        assert_in_order(
            groups,
            &["::parks", "3 waiting: ", "syscall", "waits_at_the_gate"],
        );
        assert!(groups.contains(&format!("{all}4 groups")), "{groups}");
    }
    assert!(groups.contains(&all), "{groups}");

    let own = of("waits_for_bytes");
    let start = of("start_of_stack");
    assert_in_order(
        next(),
        &["\"reader\" waiting", "recvfrom", own, own, own, own, start],
    );
    let busy = next();
    assert_in_order(busy, &["\"busy\" running on LWP ", of("computes"), start]);
    assert!(!busy.contains("recvfrom"), "{busy}");
    assert_in_order(next(), &["\"parked-5\" waiting", of("parks")]);
    let marks = next();
    if marks.contains("no variable") {
        skip("thread-locals in gdb: this build has no debug information about variables");
    } else {
        assert_in_order(
            marks,
            &[&format!("#{} ", subject.parked), "value: 5}", "value: 99}"],
        );
    }
    assert!(
        next().contains(&format!(" = {}\n", subject.busy)),
        "{output}"
    );
    assert!(
        next().contains("no thread with a stack: #4294967295"),
        "{output}"
    );
}

#[watched(limit = PATIENCE)]
fn threads_of_a_live_process() {
    if child::is_here() {
        return be_looked_at(10_000);
    }
    if let Some(reason) = no_gdb() {
        return skip(reason);
    }
    let folder = TempDir::new("gdb-live");
    let subject = Subject::start(None, &folder);
    let pid = subject.process.id().to_string();
    let output = gdb(&folder, &["-p", &pid], &commands(&subject));
    check(&subject, &output, 10_000, true);
}

#[watched(limit = PATIENCE)]
fn threads_of_a_live_process_without_symbols() {
    if child::is_here() {
        return be_looked_at(100);
    }
    if let Some(reason) = no_gdb() {
        return skip(reason);
    }
    let folder = TempDir::new("gdb-stripped");
    let program = folder.join("stripped");
    let this = std::env::current_exe().unwrap();
    let stripped = Command::new("strip")
        .arg("-o")
        .args([&program, &this])
        .status();
    if !stripped.is_ok_and(|status| status.success()) {
        return skip("there is no strip");
    }
    let subject = Subject::start(Some(&program), &folder);
    let pid = subject.process.id().to_string();
    let output = gdb(&folder, &["-p", &pid], &commands(&subject));
    check(&subject, &output, 100, false);
}

#[watched(limit = PATIENCE)]
fn threads_of_a_core_file() {
    if child::is_here() {
        sys::core_file();
        return be_looked_at(100);
    }
    if let Some(reason) = no_gdb() {
        return skip(reason);
    }
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    if pattern.starts_with(['|', '/']) {
        return skip("the kernel does not write core files to the current folder");
    }
    let folder = TempDir::new("gdb-core");
    let mut subject = Subject::start(None, &folder);
    // SAFETY: our own child, which has not been waited for.
    unsafe { libc::kill(subject.process.id() as libc::pid_t, libc::SIGABRT) };
    subject.process.wait().unwrap();
    let files = fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().path());
    let Some(core): Option<PathBuf> = files.into_iter().next() else {
        return skip("the limit of core files is 0");
    };
    let program = std::env::current_exe().unwrap();
    let arguments = [program.to_str().unwrap(), core.to_str().unwrap()];
    let output = gdb(&folder, &arguments, &commands(&subject));
    check(&subject, &output, 100, true);
}

#[watched(limit = PATIENCE)]
fn steps_follow_a_thread_from_carrier_to_carrier() {
    if child::is_here() {
        return be_stepped();
    }
    if let Some(reason) = no_gdb() {
        return skip(reason);
    }
    let folder = TempDir::new("gdb-steps");
    let subject = child::command();
    let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
    let mut commands = vec![
        format!("break tests/observe/gdb.rs:{STEPS_BEGIN}"),
        "handle SIGURG nostop noprint pass".into(),
    ];
    for (name, value) in subject.get_envs() {
        commands.push(format!(
            "set environment {}={}",
            text(name),
            text(value.unwrap())
        ));
    }
    let next = ["pirn next".to_owned(), "print $pirn_id()".into()];
    commands.extend(["run".into(), "disable".into(), next[1].clone()]);
    commands.extend([&next[..]; 5].concat());
    commands.extend(["pirn finish".into(), next[1].clone(), "kill".into()]);
    let arguments: Vec<_> = [subject.get_program()]
        .into_iter()
        .chain(subject.get_args())
        .collect();
    let arguments: Vec<_> = arguments.into_iter().map(text).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let output = gdb(&folder, &[&["--args"], &arguments[..]].concat(), &commands);
    let ids: Vec<_> = output
        .lines()
        .filter(|line| line.starts_with('$'))
        .collect();
    let ids: Vec<_> = ids
        .iter()
        .map(|line| line.split_once(" = ").unwrap().1)
        .collect();
    assert_eq!(ids.len(), 7, "{output}");
    assert!(ids.iter().all(|id| *id == ids[0] && *id != "0"), "{output}");
    assert_in_order(
        &output,
        &["done = 1", "for_each", "the last line", "be_stepped"],
    );
}

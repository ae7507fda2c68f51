//! `std::process::Command`: hundreds of children at once, each with a virtual thread that waits
//! for it or talks to it through pipes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use pirn::thread;
use pirn_compat::{self as common, Latch, THREADS, on_threads, watched};

/// A shell that runs `script` with `argument` as its `$1`.
fn shell(script: &str, argument: usize) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", &argument.to_string()]);
    command
}

/// All threads are in `output()`, and all the children wait for the end of the same pipe.
#[watched]
fn output_waits_for_all_children_at_once() {
    let (gate, hold_gate) = io::pipe().unwrap();
    let waiting = Latch::new(THREADS);
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (gate, waiting) = (gate.try_clone().unwrap(), &waiting);
            scope.spawn(move || {
                let script = "cat; echo child $1; echo error $1 >&2; exit $(($1 % 100))";
                let mut command = shell(script, index);
                command.stdin(gate);
                waiting.arrive();
                let output = command.output().unwrap();
                assert_eq!(output.stdout, format!("child {index}\n").as_bytes());
                assert_eq!(output.stderr, format!("error {index}\n").as_bytes());
                assert_eq!(output.status.code(), Some((index % 100) as i32));
            });
        }
        waiting.wait();
        drop(hold_gate);
    });
}

#[watched]
fn wait_returns_each_childs_own_status() {
    let (gate, hold_gate) = io::pipe().unwrap();
    let waiting = Latch::new(THREADS);
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (gate, waiting) = (gate.try_clone().unwrap(), &waiting);
            scope.spawn(move || {
                let mut command = shell("read line; exit $(($1 % 100))", index);
                let mut child = command.stdin(gate).spawn().unwrap();
                assert!(child.try_wait().unwrap().is_none());
                waiting.arrive();
                let status = child.wait().unwrap();
                assert_eq!(status.code(), Some((index % 100) as i32));
            });
        }
        waiting.wait();
        drop(hold_gate);
    });
}

/// A child that sends each line back.
fn cat() -> Child {
    Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Every line makes the way to the child and back; no thread sends before all have a child.
#[watched]
fn lines_go_to_a_child_and_back() {
    let started = Latch::new(THREADS);
    on_threads(THREADS, |index| {
        let mut child = cat();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        started.arrive_and_wait();
        for round in 0..10 {
            let sent = format!("thread {index}, round {round}\n");
            input.write_all(sent.as_bytes()).unwrap();
            let mut received = String::new();
            output.read_line(&mut received).unwrap();
            assert_eq!(received, sent);
        }
        drop(input);
        assert_eq!(output.read_line(&mut String::new()).unwrap(), 0);
        assert!(child.wait().unwrap().success());
    });
}

/// All threads block in a read of what their children will only write when told to.
#[watched]
fn all_threads_block_reading_from_children() {
    let reading = Latch::new(THREADS);
    on_threads(THREADS, |index| {
        let mut child = cat();
        let mut input = child.stdin.take().unwrap();
        let mut output = child.stdout.take().unwrap();
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                reading.arrive();
                io::read_to_string(&mut output).unwrap()
            });
            reading.wait();
            write!(input, "{index}").unwrap();
            drop(input);
            assert_eq!(reader.join().unwrap(), index.to_string());
        });
        assert!(child.wait().unwrap().success());
    });
}

/// Far more than a pipe holds, so that each side blocks on the other time and again.
#[watched]
fn large_input_and_output() {
    const LENGTH: usize = 256 * 1024;
    on_threads(THREADS, |index| {
        let mut child = cat();
        let mut input = child.stdin.take().unwrap();
        let sent: Vec<u8> = (0..LENGTH).map(|i| (i / 1000 + index) as u8).collect();
        thread::scope(|scope| {
            let sent = &sent;
            scope.spawn(move || input.write_all(sent).unwrap());
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            assert!(output.stdout == *sent, "thread {index}: wrong content");
        });
    });
}

/// `wait_with_output` must read both pipes together, or one fills up and the child hangs.
#[watched]
fn output_and_errors_are_read_together() {
    const LENGTH: usize = 100 * 1024;
    on_threads(THREADS, |_| {
        let script = "head -c $1 /dev/zero >&2; head -c $1 /dev/zero; head -c $1 /dev/zero >&2";
        let output = shell(script, LENGTH).output().unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, vec![0; LENGTH]);
        assert_eq!(output.stderr, vec![0; 2 * LENGTH]);
    });
}

#[watched]
fn a_killed_child_ends_the_read_and_the_wait() {
    const SIGKILL: i32 = 9;
    let reading = Latch::new(THREADS);
    on_threads(THREADS, |_| {
        let mut child = cat();
        let mut output = child.stdout.take().unwrap();
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                reading.arrive();
                output.read(&mut [0]).unwrap()
            });
            reading.wait();
            child.kill().unwrap();
            assert_eq!(reader.join().unwrap(), 0);
        });
        assert_eq!(child.wait().unwrap().signal(), Some(SIGKILL));
    });
}

#[watched]
fn a_missing_program_is_an_error() {
    on_threads(THREADS, |_| {
        let error = Command::new("/nonexistent/program").spawn().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    });
}

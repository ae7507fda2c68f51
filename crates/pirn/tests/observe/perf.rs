//! `perf record --call-graph dwarf` sees the whole stack of a virtual thread that computes.

use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use pirn::thread;

use crate::common::{TempDir, child, skip, sys, watched};

#[inline(never)]
fn computes_deeply(depth: u32) -> u32 {
    if depth > 0 {
        return black_box(computes_deeply(depth - 1)) + 1;
    }
    loop {
        black_box(());
    }
}

/// The child: computes until it is killed.
fn compute() {
    sys::let_others_trace();
    let _computing = thread::spawn(|| computes_deeply(8));
    println!("\nlook:");
    loop {
        std::thread::park();
    }
}

#[watched]
fn perf_sees_stacks_to_their_end() {
    if child::is_here() {
        return compute();
    }
    let folder = TempDir::new("perf");
    let mut subject = child::command().stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(subject.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "look:"));
    let (pid, data) = (subject.id().to_string(), folder.join("perf.data"));
    let arguments = [
        "record",
        "-q",
        "--call-graph",
        "dwarf",
        "-F",
        "99",
        "-p",
        &pid,
        "-o",
    ];
    let mut record = Command::new("perf");
    record.args(arguments).arg(&data).args(["--", "sleep", "2"]);
    let recorded = record.output();
    subject.kill().unwrap();
    subject.wait().unwrap();
    match recorded {
        Err(_) => return skip("there is no perf"),
        Ok(output) if !output.status.success() => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return skip(&format!("perf may not record here: {}", text.trim()));
        }
        Ok(_) => {}
    }
    // Inlined functions would be looked up one by one, by another program.
    let script = ["script", "--no-inline", "-F", "comm,ip,sym", "-i"];
    let output = Command::new("perf")
        .args(script)
        .arg(&data)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let samples = text
        .split("\n\n")
        .filter(|sample| sample.contains("computes_deeply"));
    let samples: Vec<_> = samples.collect();
    assert!(!samples.is_empty(), "no sample of it:\n{text}");
    for sample in samples {
        assert!(sample.matches("computes_deeply").count() >= 9, "{sample}");
        assert!(sample.trim_end().ends_with("start_of_stack"), "{sample}");
        assert!(sample.contains("pirn-carrier"), "{sample}");
    }
}

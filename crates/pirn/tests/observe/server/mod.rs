//! The inspection server: tests with real processes, which have prepared nothing unless they say
//! so.

#[cfg(feature = "dump")]
mod bare;
mod folders;
#[cfg(feature = "dump")]
mod malloc;
mod quit;
mod relatives;
#[cfg(feature = "dump")]
mod slow;
#[cfg(feature = "dump")]
mod standstill;
mod strangers;
mod target;
mod worst;

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;

use crate::common::{child, watched};
use target::{Target, ask, be_target, socket_of, until};

/// A process with a parked thread, which does what it is told.
fn target(name: &str) -> Target {
    Target::start(&[], name)
}

#[watched]
fn a_process_that_has_not_prepared_answers() {
    if child::is_here() {
        return be_target();
    }
    let target = target("");
    let descriptors = target.descriptors();
    assert_eq!(socket_of(target.pid()), None, "no client has asked");
    let answer = ask(&target, "version");
    let lines: Vec<_> = answer.lines().collect();
    assert_eq!(lines[0], "ok text", "{answer}");
    assert_eq!(lines[2], "protocol 1");
    assert_eq!(lines[3], format!("pid {}", target.pid()));
    assert_eq!(target.descriptors(), descriptors, "the program's own");
    // Again, now that it listens.
    assert!(ask(&target, "version").starts_with("ok text\n"));
    let socket = socket_of(target.pid()).unwrap();
    target.finish();
    assert!(!socket.exists(), "{socket:?} was left behind");
}

#[watched]
fn a_process_may_listen_from_the_start() {
    if child::is_here() {
        return be_target();
    }
    let target = Target::start(&[("PIRN_OBSERVE", "1")], "");
    let socket = until(|| socket_of(target.pid()));
    let mut answer = String::new();
    let mut stream = until(|| UnixStream::connect(&socket).ok());
    std::io::Write::write_all(&mut stream, b"pirn 1 version\n").unwrap();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("ok text\n"), "{answer}");
    target.finish();
}

#[watched]
fn a_process_may_refuse() {
    if child::is_here() {
        return be_target();
    }
    let target = Target::start(&[("PIRN_OBSERVE", "0")], "");
    target.ask_in_vain();
    assert_eq!(socket_of(target.pid()), None);
    target.finish();
}

#[watched]
fn what_is_not_understood_is_refused_with_a_reason() {
    if child::is_here() {
        return be_target();
    }
    let target = target("");
    let refused = |line: &str| {
        let answer = ask(&target, line);
        let reason = answer.strip_prefix("error ").expect(&answer).to_owned();
        reason.trim_end().to_owned()
    };
    let unknown = refused("explode");
    assert!(
        unknown.contains("does not know the command \"explode\""),
        "{unknown}"
    );
    assert_eq!(refused("version x=1"), "version has no x");
    assert_eq!(refused("version x"), "\"x\" is not key=value");
    assert_eq!(refused(&"x".repeat(5000)), "the request is too long");
    assert!(ask(&target, "version").starts_with("ok text\n"));
    target.finish();
}

#[watched]
fn the_socket_is_private() {
    use std::os::unix::fs::MetadataExt;
    if child::is_here() {
        return be_target();
    }
    let target = target("");
    ask(&target, "version");
    let socket = socket_of(target.pid()).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    target.finish();
}

#[watched]
fn metrics_come_once_or_in_a_stream() {
    if child::is_here() {
        return be_target();
    }
    let target = target("");
    let answer = ask(&target, "metrics");
    let text = answer.strip_prefix("ok text\n").expect(&answer);
    assert!(
        text.contains("\npirn_threads{state=\"waiting\"} "),
        "{text}"
    );
    assert!(text.ends_with("\"} 1\n"), "the whole of {text}");
    let refused = ask(&target, "watch interval-ms=1");
    assert!(refused.starts_with("error interval-ms is 1"), "{refused}");
    let mut stream = target::connect(target.pid(), &target::usual_folder());
    std::io::Write::write_all(&mut stream, b"pirn 1 watch interval-ms=10\n").unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(stream));
    let lines = Vec::from_iter(lines.take(4).map(Result::unwrap));
    assert_eq!(lines[0], "ok lines");
    for line in &lines[1..] {
        assert!(
            line.starts_with("{\"time\":") && line.ends_with("}]}"),
            "{line}"
        );
        assert!(line.contains("\"rates\":{\"started\":"), "{line}");
    }
    target.finish();
}

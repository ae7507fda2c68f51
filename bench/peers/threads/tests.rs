//! Every workload, twice in one process and very small: that the work comes out right, by the
//! protocol.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The program of the package that this is compiled for.
const PEER: &str = match (
    option_env!("CARGO_BIN_EXE_peer-pirn"),
    option_env!("CARGO_BIN_EXE_peer-os-threads"),
) {
    (Some(path), _) | (_, Some(path)) => path,
    _ => panic!("neither peer is there"),
};

/// A running peer. Dropped, it is at the end of its input, and must end by itself.
struct Peer {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start(command: &str) -> Peer {
        let mut process = Command::new(PEER)
            .args(command.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the peer starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("it is a pipe"));
        let mut peer = Peer {
            process,
            input,
            output,
        };
        assert!(PEER.ends_with(peer.line()["peer"].as_str().expect("a name")));
        peer
    }

    fn say(&mut self, word: &str) {
        let input = self.input.as_mut().expect("not ended");
        writeln!(input, "{word}").expect("the peer listens");
    }

    /// The next line that is not the workload's own.
    fn line(&mut self) -> Value {
        loop {
            let mut line = String::new();
            let length = self.output.read_line(&mut line).expect("it is text");
            assert!(length > 0, "the peer has ended");
            if line.starts_with('{') {
                return serde_json::from_str(&line).expect("it is JSON");
            }
        }
    }

    /// Has it do a round, answering `answers` where it stands still; gives the names of the metrics
    /// that it has numbers of.
    fn round(&mut self, mut answers: &[&str]) -> Vec<String> {
        self.say("round");
        let mut metrics = Vec::new();
        loop {
            let line = self.line();
            if line.get("end").is_some() {
                assert_eq!(answers.len(), 0);
                return metrics;
            } else if line.get("at").is_some() {
                self.say(answers[0]);
                answers = &answers[1..];
            } else if line.get("skip").is_none() {
                assert!(line["done"].is_u64(), "{line}");
                assert_eq!(line["done"], line["due"], "{line}");
                assert!(line["value"].as_f64().is_some_and(|n| n >= 0.0), "{line}");
                metrics.push(line["metric"].as_str().expect("a name").to_owned());
            }
        }
    }

    fn end(mut self) -> Option<i32> {
        self.input = None;
        self.process.wait().expect("it ends").code()
    }
}

/// Two rounds of a workload, which must give these metrics.
fn check(command: &str, answers: &[&str], metrics: &[&str]) {
    let mut peer = Peer::start(command);
    assert_eq!(peer.round(answers), metrics);
    assert_eq!(peer.round(answers), metrics);
    assert_eq!(peer.end(), Some(0));
}

#[test]
fn short_threads() {
    let metrics = ["burst", "join inside", "join main"];
    check("spawn burst=20 inside=10 main=5", &[], &metrics);
    check("skynet threads=100", &[], &["wall"]);
    check("cpu-bound tasks=9 iterations=100", &[], &["wall"]);
    let metrics = ["p50", "p99", "max"];
    check("ticker tasks=9 iterations=1000", &[], &metrics);
    for kind in 0..3 {
        let command = format!("hogs tasks=5 ms=20 kind={kind}");
        check(&command, &[], &["p99", "least", "work"]);
    }
    check("malloc pairs=5000", &[], &["64 B", "mixed"]);
}

#[test]
fn threads_that_pass_something_on() {
    check("pingpong trips=50", &[], &["channel", "park"]);
    check("chain threads=20", &[], &["wall"]);
    check("mutex threads=4 ops=4000", &[], &["lock"]);
    check("echo connections=7 trips=5", &[], &["round trip"]);
}

#[test]
fn threads_in_scopes() {
    let metrics: &[&str] = match PEER.ends_with("os-threads") {
        true => &["two", "many"],
        false => &["two", "many", "first"],
    };
    check("scope two=5 many=2 forks=7 first=3 tasks=5", &[], metrics);
}

#[test]
fn actors() {
    if PEER.ends_with("os-threads") {
        return; // It has none.
    }
    let metrics = ["1 to 1", "4 to 4", "4 to 1"];
    check("actor-messages messages=5000 many=8000", &[], &metrics);
    let metrics = ["tell", "ask", "in turn", "replies"];
    // Two take turns to an even and to an odd number.
    for turns in [50, 51] {
        let command = format!("actor-asks crowd=7 tells=500 asks=50 turns={turns} each=5");
        check(&command, &[], &metrics);
    }
    let metrics = ["create", "create and end"];
    check("actor-create actors=50", &[], &metrics);
    check("actor-idle actors=50", &["go"], &["ask"]);
    check("actor-chain row=50", &[], &["wall"]);
    check("actor-skynet leaves=100", &[], &["wall"]);
}

/// Whether the two see each other depends on the scheduler, unless they have one core.
#[test]
fn yielding_threads() {
    let mut peer = Peer::start("yield yields=1000");
    peer.say("round");
    let yields = peer.line();
    assert_eq!(yields["metric"], "yield");
    assert_eq!(
        (&yields["done"], &yields["due"]),
        (&2000.into(), &2000.into())
    );
    let switches = peer.line();
    assert_eq!(switches["metric"], "switch");
    assert!(switches.get("skip").is_some() || switches["done"].as_u64() <= Some(2000));
    assert_eq!(peer.line()["end"], true);
    assert_eq!(peer.end(), Some(0));
}

#[test]
fn waiting_threads() {
    check("parked step=20", &["more 30", "go"], &["spawn", "wake"]);
    let metrics = ["sink", "wake", "pause"];
    check("deep threads=5 depth=50", &["go"], &metrics);
    // More than fits in the default stacks of either peer.
    check("deep threads=2 depth=40000", &["go"], &metrics);
    let metrics = ["arm", "rearm", "cancel"];
    check("timers threads=20 waits=50", &[], &metrics);
}

#[test]
fn sleeping_threads() {
    check("sleepers threads=20 ms=2", &[], &["wall"]);
    check("database tasks=9 permits=2 ms=1", &[], &["wall"]);
    let command = "wait-and-hurry tasks=9 ms=2 iterations=100";
    check(command, &[], &["wall"]);
    check("random-numbers tasks=9 times=3 ms=1", &[], &["wall"]);
}

#[test]
fn servers() {
    let mut backend = Peer::start("serve delay_ms=1");
    let backend_port = port(&mut backend);
    let mut gateway = Peer::start(&format!("gateway backend={backend_port}"));
    let gateway_port = port(&mut gateway);

    for _ in 0..2 {
        assert_eq!(answer(backend_port), ("200".into(), "Hello, World!".into()));
        assert_eq!(answer(gateway_port), ("200".into(), "39".into()));
    }
    assert_eq!(backend.end(), Some(0));
    let (status, text) = answer(gateway_port);
    assert_eq!(status, "502");
    assert!(text.contains("Connection refused"), "{text}");
    assert_eq!(gateway.end(), Some(0));
}

#[test]
fn the_server_of_a_textbook_greets_and_says_what_it_cannot_do() {
    let call = |needs: &str| format!("http-server delay_ms=1 connections=1 {needs}");
    let mut server = Peer::start(&call("http2=0 tls=0 body=0"));
    let here = port(&mut server);
    assert_eq!(answer(here), ("200".into(), "Hello, World!".into()));
    assert_eq!(server.end(), Some(0));
    for (needs, lacks) in [
        ("http2=1 tls=0 body=0", "HTTP/2"),
        ("http2=0 tls=1 body=0", "TLS"),
        ("http2=0 tls=0 body=7", "bodies"),
    ] {
        let mut server = Peer::start(&call(needs));
        let line = server.line();
        let told = line["error"].as_str().expect("an error");
        assert!(told.contains(lacks), "{told}");
        assert_eq!(server.end(), Some(2));
    }
}

fn port(peer: &mut Peer) -> u16 {
    let port = peer.line()["listening"].as_u64().expect("a port");
    port.try_into().expect("a port has 16 bits")
}

/// The status code and the body that `GET /` gives.
fn answer(port: u16) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it answers");
    let (head, body) = response.split_once("\r\n\r\n").expect("head and body");
    let status = head.split(' ').nth(1).expect("a status");
    (status.to_owned(), body.to_owned())
}

#[test]
fn what_cannot_be_done_is_told() {
    for (command, error) in [
        ("nonsense", "no workload \"nonsense\""),
        ("spawn burst=1", "inside is missing"),
    ] {
        let mut peer = Peer::start(command);
        let line = peer.line();
        let told = line["error"].as_str().expect("an error");
        assert!(told.contains(error), "{told}");
        assert_eq!(peer.end(), Some(2));
    }
}

//! Dumps for tests.

use crate::model::*;
use crate::names::{Frame, Names};
use crate::view::{Format, View};

/// A dump in which everything occurs once, with names that try to get out of every format.
pub fn everything() -> Dump {
    let waits = waits();
    let names = hostile_names();
    let threads: Vec<Thread> = (0..)
        .zip(&waits)
        .map(|(number, wait)| Thread {
            id: 1 + number as u64,
            name: names.get(number).map(|name| name.to_vec()),
            state: State::ALL[if *wait == Wait::None { number % 3 } else { 3 }],
            wait: wait.clone(),
            until: (*wait == Wait::Sleep).then_some(2_000_000_000),
            stack: (number != 0).then_some(number as u32 % 2),
            place: (number % 3 != 0).then_some(0),
            scope: [None, Some(7), Some(8)][number % 3],
            carrier: (number == 0).then_some(0),
            mounts: 5,
            unmoved_since: (number % 2 == 0).then_some(500_000_000),
            interrupted: number == 3,
            is_virtual: number != 5,
            stack_bytes: Some(4096),
            works_for: works_for(number),
        })
        .collect();
    Dump {
        groups: groups(&threads),
        totals: Totals {
            started: 100,
            ended: 80,
            listed: threads.len() as u64,
            by_state: [1, 0, 0, 13, 0],
            unlisted_new: 4,
            unclaimed: 1,
            cut: 2,
        },
        threads,
        ..surroundings()
    }
}

/// One of each kind.
fn waits() -> Vec<Wait> {
    vec![
        Wait::None,
        Wait::Lock {
            address: 0x7f00_0000_1000,
            what: LockKind::Mutex,
            owner: Some(2),
            waiters: Some(3),
        },
        Wait::Lock {
            address: 0x7f00_0000_2000,
            what: LockKind::Futex,
            owner: None,
            waiters: None,
        },
        Wait::Descriptor {
            fd: 12,
            write: false,
            ends: Some(Box::new(Ends {
                local: "127.0.0.1:80".into(),
                peer: "[::1]:4000".into(),
            })),
        },
        Wait::Descriptor {
            fd: 13,
            write: true,
            ends: None,
        },
        Wait::Poll { fds: 3 },
        Wait::Sleep,
        Wait::Park,
        Wait::Join { thread: 4 },
        Wait::Scope { id: 7 },
        Wait::Child { pid: 4711 },
        Wait::Call {
            name: "getaddrinfo".into(),
        },
        Wait::Signal,
        Wait::Other,
    ]
}

/// Of the thread with this number: one has two names, one of which tries to get out.
fn works_for(number: usize) -> Vec<String> {
    let names = ["orders", "shop::Buy\"\x1b[2J\n"].map(str::to_owned);
    names[..2 * usize::from(number == 6)].to_vec()
}

fn groups(threads: &[Thread]) -> Vec<Group> {
    (0..)
        .zip(threads)
        .map(|(number, thread)| Group {
            stack: thread.stack,
            state: thread.state,
            wait: thread.wait.kind(),
            timed: thread.until.is_some(),
            place: thread.place,
            count: 1,
            object: thread.wait.object(),
            oldest: thread.unmoved_since,
            examples: vec![number],
        })
        .collect()
}

/// All of a dump but threads and groups.
fn surroundings() -> Dump {
    let frames = vec![0x1000_0010, 0x1000_0020, 0x2000_0030, 0x10];
    Dump {
        process: process(),
        carriers: carriers(),
        modules: vec![
            module(b"/usr/bin/server", 0x1000_0000),
            module(b"/lib/lib\xff<script>.so", 0x2000_0000),
        ],
        places: vec![Place {
            file: "src/<script>\x1b[31m.rs".into(),
            line: 12,
            column: 5,
        }],
        stacks: vec![
            Stack {
                frames: frames.clone(),
                runtime_frames: 1,
                ..Stack::default()
            },
            Stack {
                frames,
                exact_first: true,
                end: End::Lost,
                runtime_frames: 99,
            },
        ],
        scopes: vec![
            Scope {
                id: 7,
                name: Some("orders/\"x\"\n".into()),
                members: 5,
                ..Scope::default()
            },
            Scope {
                id: 8,
                parent: Some(7),
                owner: Some(2),
                cancelled: true,
                ..Scope::default()
            },
        ],
        findings: vec![Finding {
            kind: "wait-cycle".into(),
            text: "2 waits for 4, which waits for 2".into(),
            threads: vec![2, 4],
        }],
        memory: vec![Memory {
            name: "stacks-reserved".into(),
            bytes: 1 << 30,
        }],
        ..Dump::default()
    }
}

fn process() -> Process {
    Process {
        pid: 4711,
        started: 12_345,
        program: "/usr/bin/a \"server\"".into(),
        version: "pirn 0.1.0".into(),
        begin: 1_000_000_000,
        end: 1_500_000_000,
        parallelism: 2,
    }
}

fn carriers() -> Vec<Carrier> {
    CarrierState::ALL
        .into_iter()
        .zip(0..)
        .map(|(state, number)| Carrier {
            number,
            tid: 4711 + number,
            state,
            thread: (state == CarrierState::Running).then_some(1),
            spare: number == 3,
        })
        .collect()
}

fn module(path: &[u8], start: u64) -> Module {
    Module {
        path: path.to_vec(),
        build_id: vec![1, 2, 0xff],
        bias: start,
        start,
        end: start + 0x1000,
        offset: 0,
    }
}

/// Names that mean something to one format or another.
pub fn hostile_names() -> [&'static [u8]; 8] {
    [
        b"</script><script>alert(1)</script>",
        b"a \"quoted\" \\ name / with, commas; and = signs",
        b"\x1b[2J\x1b]0;title\x07",
        b"two\nlines\r\n# goroutine 1 [running]:",
        b"\xff\xfe not UTF-8 \xc3",
        "right to left \u{202e} and \u{85} and \u{1f600}".as_bytes(),
        b"\0nul\t\x7f",
        b"",
    ]
}

/// Names for the frames of these dumps, with calls in calls and names that try to get out.
pub fn names(dump: &Dump) -> Names {
    let call = |function: &str, file: Option<&str>, line: u32| Frame {
        function: Some(function.to_string()),
        offset: Some(15),
        file: file.map(str::to_string),
        line: file.map(|_| line),
        inlined: true,
        ..Frame::default()
    };
    let last = |mut calls: Vec<Frame>| {
        calls.last_mut().unwrap().inlined = false;
        calls
    };
    Names::by(dump, |_, address| match address {
        0x0f | 0x10 => last(vec![call(
            "pirn::vthread::park",
            Some("/pirn/src/park.rs"),
            7,
        )]),
        0x1f => last(vec![
            call("pirn::blocking::wait", Some("/pirn/src/wait.rs"), 8),
            call("recvfrom", Some("/pirn-libc/src/socket.rs"), 9),
        ]),
        0x2f => last(vec![
            call(
                "<std::net::TcpStream as std::io::Read>::read",
                Some("/rustc/1234/library/std/src/net/tcp.rs"),
                10,
            ),
            call(
                "server::<script>\"\u{1b}[2J",
                Some("/home/\"me\"/src/main\n.rs"),
                11,
            ),
        ]),
        _ => Vec::new(),
    })
}

/// Writes a dump in all formats. Returns the texts, with the formats' names.
pub fn show_everywhere(dump: &Dump) -> Vec<(&'static str, Vec<u8>)> {
    let mut texts = Vec::new();
    for name in Format::names() {
        for runtime_frames in [false, true] {
            let (format, mut text) = (name.parse::<Format>().unwrap(), Vec::new());
            let view = View {
                runtime_frames,
                max: None,
            };
            format.write(dump, &names(dump), &view, &mut text).unwrap();
            texts.push((name, text));
        }
    }
    texts
}

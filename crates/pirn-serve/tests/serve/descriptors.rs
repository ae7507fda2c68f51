//! A server that may have 64 files open, and more clients than that: all get an answer.

use super::between::{PREFACE, frame};
use super::hostile::{behind, until_closed};
use super::{PIRN_SERVE, get, site};
use pirn_testing::Server;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;

/// Starts a server that may have 64 files open.
fn limited(arguments: &[&str]) -> Server {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -n 64; exec \"$0\" --listen 127.0.0.1:0 \"$@\"",
    ]);
    command.arg(PIRN_SERVE).args(arguments);
    Server::start(command.stderr(Stdio::piped()))
}

/// Ends a server, and returns what it has said on standard error before.
fn said(mut server: Server) -> String {
    let mut errors = server.running.process.stderr.take().unwrap();
    server.running.signal("-TERM");
    assert_eq!(server.running.process.wait().unwrap().code(), Some(0));
    let mut text = String::new();
    errors.read_to_string(&mut text).unwrap();
    let farewell = "pirn-serve: waiting for open requests; Ctrl-C ends them\n";
    text.replace(farewell, "")
}

/// Another server: `/wait` gets no answer, and all else gets `large` bytes.
fn other(large: usize) -> String {
    behind(move |_, mut stream| {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        while let Some(Ok(first)) = lines.next() {
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            if first.starts_with("GET /wait ") {
                return until_closed(stream);
            }
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {large}\r\n\r\n");
            let sent = stream.write_all(answer.as_bytes());
            if sent
                .and_then(|()| stream.write_all(&vec![b'x'; large]))
                .is_err()
            {
                return;
            }
        }
    })
}

#[test]
fn more_clients_than_descriptors_get_files_and_answers_of_another_server() {
    const LARGE: usize = 8 << 20; // More than sockets hold of what a client does not read.
    let folder = site("few");
    let file = fs::File::create(folder.path("few.bin")).unwrap();
    file.set_len(LARGE as u64).unwrap();
    for arguments in [
        &[folder.0.to_str().unwrap()][..],
        &["--proxy", &other(LARGE)],
    ] {
        let server = limited(arguments);
        let idle = Vec::from_iter((0..30).map(|_| server.connect()));
        let request = b"GET /few.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let ask = |mut client: TcpStream| {
            client.write_all(request).unwrap();
            client
        };
        let clients = Vec::from_iter((0..60).map(|_| ask(server.connect())));
        for mut client in clients {
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).unwrap();
            let start = String::from_utf8_lossy(&answer[..answer.len().min(100)]);
            assert!(start.starts_with("HTTP/1.1 200 "), "{arguments:?}: {start}");
            assert!(answer.len() > LARGE, "{arguments:?}: {}", answer.len());
        }
        drop(idle);
        assert_eq!(said(server), "");
    }
}

/// A client of HTTP/2 with a hundred requests. It takes a thousand bytes of each answer at once.
struct Streams {
    stream: TcpStream,
    /// The first byte of each answer's head: 0x88 is the status 200.
    heads: BTreeMap<u32, u8>,
    ended: usize,
}

impl Streams {
    fn ask(server: &Server, path: &str) -> Streams {
        let mut stream = server.connect();
        // SETTINGS_INITIAL_WINDOW_SIZE.
        let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0x03, 0xe8]);
        let mut bytes = [PREFACE, &settings].concat();
        for number in 0..100 {
            // Of the static table: GET, "http", values of ":authority" and ":path".
            let length = u8::try_from(path.len()).unwrap();
            let fields = [0x82, 0x86, 0x01, 1, b'a', 0x04, length];
            let fields = [&fields, path.as_bytes()].concat();
            bytes.extend(frame(1, 5, number * 2 + 1, &fields));
        }
        stream.write_all(&bytes).unwrap();
        Streams {
            stream,
            heads: BTreeMap::new(),
            ended: 0,
        }
    }

    /// Waits until this many answers have ended.
    fn until_ended(&mut self, count: usize) {
        while self.ended < count {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).unwrap();
            let number = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            match head[3] {
                0 if length > 0 => {
                    let more = length.to_be_bytes();
                    let windows = [frame(8, 0, 0, &more), frame(8, 0, number, &more)].concat();
                    self.stream.write_all(&windows).unwrap();
                }
                // A change of the size of its table may come first.
                1 => {
                    let first = payload.iter().find(|&&byte| byte & 0xe0 != 0x20);
                    self.heads.insert(number, *first.unwrap());
                }
                3 | 7 => panic!("it is reset: {head:?} {payload:?}"),
                _ => {}
            }
            self.ended += usize::from(head[3] < 2 && head[4] & 1 != 0);
        }
    }

    fn failed(&self) -> usize {
        self.heads.values().filter(|&&first| first != 0x88).count()
    }
}

#[test]
fn more_streams_than_descriptors_get_files_and_answers_of_another_server() {
    let folder = site("streams");
    fs::write(folder.path("some.bin"), [b'x'; 3000]).unwrap();
    for arguments in [
        &[folder.0.to_str().unwrap()][..],
        &["--proxy", &other(3000)],
    ] {
        let server = limited(arguments);
        let mut clients = [(); 3].map(|()| Streams::ask(&server, "/some.bin"));
        thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| client.until_ended(100));
            }
        });
        let failed = clients.each_ref().map(Streams::failed);
        assert_eq!(failed, [0; 3], "{arguments:?}");
        assert!(get(&server, "/some.bin").starts_with("HTTP/1.1 200 "));
        assert_eq!(said(server), "");
    }
}

#[test]
fn a_request_that_finds_no_descriptor_is_told_so_and_so_is_the_operator_once() {
    let server = limited(&["--proxy", &other(5)]);
    let mut holding = Streams::ask(&server, "/wait");
    // All but the twenty that wait for the other server.
    holding.until_ended(80);
    assert_eq!(holding.failed(), 80);
    let answer = get(&server, "/");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    drop(holding);
    let answer = get(&server, "/");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let said = said(server);
    assert!(
        said.contains("ulimit -n") && said.lines().count() == 1,
        "{said}"
    );
}

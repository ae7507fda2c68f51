//! What the server behind `pirn serve --proxy` sees of what a client says about itself and about
//! its connection.

use super::{ask, serve};
use pirn_testing::Server;
use pirn_testing::patient;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// Fields by which a client claims to be another one, or to be before other proxies.
const CLAIMS: [&str; 13] = [
    "Forwarded: for=192.0.2.60;proto=https;by=203.0.113.43",
    "Forwarded: for=127.0.0.1",
    "X-Forwarded-For: 192.0.2.1",
    "X-Forwarded-For: 192.0.2.2, 192.0.2.3",
    "X-Forwarded-Host: bank.example",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Port: 443",
    "X-Forwarded-Prefix: /admin",
    "X-Forwarded-Client-Cert: Subject=admin",
    "X_Forwarded_For: 192.0.2.4",
    "X-Forwarded_Proto: https",
    "X-Real-IP: 192.0.2.5",
    "X_Real_Ip: 192.0.2.6",
];

/// Fields that are about the client's connection.
const HOP_BY_HOP: [&str; 9] = [
    "Connection: x-secret, TE , x-forwarded-for, via",
    "X-Secret: 1",
    "TE: trailers",
    "Keep-Alive: timeout=5",
    "Proxy-Connection: keep-alive",
    "Proxy-Authorization: Basic eA==",
    "Trailer: x-late",
    "Upgrade: shout",
    "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
];

/// What the other server is told in place of that.
const TOLD: [&str; 5] = [
    "host: site.example",
    "forwarded: for=127.0.0.1;host=site.example;proto=http",
    "x-forwarded-for: 127.0.0.1",
    "x-forwarded-host: site.example",
    "x-forwarded-proto: http",
];

/// Another server, which answers each request, and tells the test what it has seen of it.
fn witness() -> (String, Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (say, seen) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, say) = (stream.unwrap(), say.clone());
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while let Some(Ok(first)) = lines.next() {
                    let rest = lines.by_ref().map_while(Result::ok);
                    let rest = rest.take_while(|line| !line.is_empty());
                    say.send([first].into_iter().chain(rest).collect()).unwrap();
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    stream.write_all(answer).unwrap();
                }
            });
        }
    });
    (format!("http://{address}"), seen)
}

/// Returns the next request that the other server has seen, sorted.
fn next(seen: &Receiver<Vec<String>>) -> Vec<String> {
    let mut lines = seen.recv_timeout(patient(Duration::from_secs(60))).unwrap();
    lines.sort();
    lines
}

/// Returns lines, sorted.
fn sorted(lines: &[&[&str]]) -> Vec<String> {
    let mut lines = Vec::from_iter(lines.concat().into_iter().map(str::to_owned));
    lines.sort();
    lines
}

#[test]
fn nothing_that_a_client_claims_is_passed_on() {
    let (url, seen) = witness();
    let proxy = serve(&["--proxy", &url]);
    for (request, via) in [
        ("GET /x HTTP/1.1", "via: 1.1 pirn"),
        ("GET /x HTTP/1.0", "via: 1.0 pirn"),
    ] {
        let lines = [
            &[request, "X-Kept: 1", "Via: 1.0 a"],
            &CLAIMS[..],
            &HOP_BY_HOP,
        ];
        let answer = ask(&proxy, &lines.concat(), "");
        assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
        // `Via` was named as one of the connection's.
        let expected = sorted(&[&["GET /x HTTP/1.1", "x-kept: 1", via], &TOLD]);
        assert_eq!(next(&seen), expected);
    }
    let lines = ["GET /x HTTP/1.1", "Via: 1.0 a", "Via: 1.1 b (c)"];
    ask(&proxy, &lines, "");
    let vias = ["via: 1.0 a", "via: 1.1 b (c)", "via: 1.1 pirn"];
    let expected = sorted(&[&["GET /x HTTP/1.1"], &vias, &TOLD]);
    assert_eq!(next(&seen), expected, "the proxies before this one");
}

#[test]
fn nor_is_it_where_another_protocol_is_asked_for() {
    let (url, seen) = witness();
    let proxy = serve(&["--proxy", &url]);
    let upgrade = ["GET / HTTP/1.1", "Connection: upgrade"];
    let lines = [&upgrade, &CLAIMS[..], &HOP_BY_HOP].concat();
    assert!(ask(&proxy, &lines, "").ends_with("\r\n\r\nok"));
    let plain = ["GET / HTTP/1.1", "via: 1.1 pirn"];
    let changes = ["connection: upgrade", "upgrade: shout"];
    assert_eq!(next(&seen), sorted(&[&plain, &changes, &TOLD]));
}

#[test]
fn a_client_cannot_have_the_host_left_out() {
    let (url, seen) = witness();
    let proxy = serve(&["--proxy", &url]);
    ask(&proxy, &["GET / HTTP/1.1", "Connection: host"], "");
    let plain = ["GET / HTTP/1.1", "via: 1.1 pirn"];
    assert_eq!(next(&seen), sorted(&[&plain, &TOLD]));
    let lines = [
        "GET / HTTP/1.1",
        "Connection: host, upgrade",
        "Upgrade: shout",
    ];
    ask(&proxy, &lines, "");
    let changes = ["connection: upgrade", "upgrade: shout"];
    assert_eq!(next(&seen), sorted(&[&plain, &changes, &TOLD]));
}

#[test]
fn no_tunnel_leads_past_the_proxy_to_http() {
    let (url, seen) = witness();
    let proxy = serve(&["--proxy", &url]);
    for upgrade in [
        "Upgrade: h2c",
        "Upgrade: websocket, H2C",
        "Upgrade: HTTP/2.0",
        "Upgrade: TLS/1.0, HTTP/1.1",
    ] {
        let lines = [
            "GET / HTTP/1.1",
            "Connection: Upgrade, HTTP2-Settings",
            "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
            upgrade,
        ];
        assert!(ask(&proxy, &lines, "").ends_with("\r\n\r\nok"));
        let plain = ["GET / HTTP/1.1", "via: 1.1 pirn"];
        assert_eq!(next(&seen), sorted(&[&plain, &TOLD]), "{upgrade}");
    }
    assert!(seen.try_recv().is_err(), "each was asked for once");
}

/// A frame of HTTP/2 with a whole head, of fields that no table has.
fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0); // A literal that is not to be remembered, with a new name.
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    let length = u32::try_from(block.len()).unwrap().to_be_bytes();
    // HEADERS, the end of the stream and of the head, the first stream.
    let start = [&length[1..], &[1, 1 | 4, 0, 0, 0, 1]].concat();
    [start, block].concat()
}

/// Begins HTTP/2, and asks for something.
fn ask_by_http2(proxy: &Server, fields: &[(&str, &str)]) -> TcpStream {
    let mut client = proxy.connect();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let bytes = [&preface[..], &settings, &head(fields)].concat();
    client.write_all(&bytes).unwrap();
    client
}

#[test]
fn nor_is_what_a_client_of_http_2_claims() {
    let (url, seen) = witness();
    let proxy = serve(&["--proxy", &url]);
    let asked = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "site.example"),
        (":path", "/x"),
    ];
    let claims = CLAIMS.map(|line| line.split_once(": ").unwrap());
    let claims = claims.map(|(name, value)| (name.to_ascii_lowercase(), value));
    let claims = claims.iter().map(|(name, value)| (&**name, *value));
    let more = [("te", "trailers"), ("via", "1.0 a"), ("x-kept", "1")];
    let fields = Vec::from_iter(asked.into_iter().chain(claims).chain(more));
    let client = ask_by_http2(&proxy, &fields);
    let expected = ["GET /x HTTP/1.1", "via: 1.0 a", "via: 2 pirn", "x-kept: 1"];
    assert_eq!(next(&seen), sorted(&[&expected, &TOLD]));
    drop(client);
    // Such fields make a request of HTTP/2 none: RFC 9113, section 8.2.2.
    for wrong in [
        ("connection", "x-secret"),
        ("transfer-encoding", "chunked"),
        ("te", "gzip"),
        ("upgrade", "shout"),
    ] {
        let mut client = ask_by_http2(&proxy, &[&asked[..], &[wrong]].concat());
        // Until RST_STREAM, or the end of the connection.
        let mut frame = [0; 9];
        while client.read_exact(&mut frame).is_ok() && frame[3] != 3 {
            let length = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]);
            client.read_exact(&mut vec![0; length as usize]).unwrap();
        }
        assert!(seen.try_recv().is_err(), "{wrong:?} was passed on");
    }
}

#[test]
fn nothing_above_the_path_of_the_other_server_is_asked_for() {
    let (url, seen) = witness();
    let below = serve(&["--proxy", &format!("{url}/base")]);
    let whole = serve(&["--proxy", &url]);
    for path in [
        "/..",
        "/../x",
        "/a/../../x",
        "/%2e%2E/x",
        "/.%2e/x",
        "/..%2fx",
        "/a%2f..%2f..%2fx",
        "/..%5Cx",
        "/..;a=b/x",
        "/..%3b/x",
    ] {
        let line = format!("GET {path} HTTP/1.1");
        let answer = ask(&below, &[&line], "");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer}");
        assert!(seen.try_recv().is_err(), "{path} was passed on");
        // Where all of the other server is open, it decides itself what a path means.
        ask(&whole, &[&line], "");
        assert!(next(&seen).contains(&line), "{path}");
    }
    for path in ["/...", "/a..b/..c", "/.", "/%252e%252e/x", "/x?/../y"] {
        ask(&below, &[&format!("GET {path} HTTP/1.1")], "");
        let line = format!("GET /base{path} HTTP/1.1");
        assert!(next(&seen).contains(&line), "{path}");
    }
}

#[test]
fn fields_that_the_operator_adds_are_not_shown_to_a_client() {
    let (url, seen) = witness();
    let proxy = serve(&["--proxy", &url, "--header", "X-Api-Key: secret"]);
    let answer = ask(&proxy, &["TRACE / HTTP/1.1"], "");
    assert!(answer.starts_with("HTTP/1.1 501 "), "{answer}");
    assert!(seen.try_recv().is_err(), "it was passed on");
}

#[test]
fn options_go_as_far_as_they_are_to_go() {
    let (url, seen) = witness();
    let proxy = serve(&["--proxy", &url]);
    let options = |most| ask(&proxy, &["OPTIONS / HTTP/1.1", most], "");
    assert!(options("Max-Forwards: 2").ends_with("\r\n\r\nok"));
    assert!(next(&seen).contains(&"max-forwards: 1".to_owned()));
    let answer = options("Max-Forwards: 0");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(seen.try_recv().is_err(), "it was passed on");
    // The proxy passes on the field of other methods, and a field that is no number.
    ask(&proxy, &["GET / HTTP/1.1", "Max-Forwards: 0"], "");
    assert!(next(&seen).contains(&"max-forwards: 0".to_owned()));
    options("Max-Forwards: -1");
    assert!(next(&seen).contains(&"max-forwards: -1".to_owned()));
}

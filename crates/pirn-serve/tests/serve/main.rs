//! `pirn-serve`: files, and what is passed on to another server.

mod between;
mod both_ways;
mod claims;
mod descriptors;
mod hostile;
mod streaming;

use pirn_testing::{Folder, Running, Server};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

const PIRN_SERVE: &str = env!("CARGO_BIN_EXE_pirn-serve");

/// Starts a `pirn-serve` with these arguments.
fn serve(arguments: &[&str]) -> Server {
    let listen = ["--listen", "127.0.0.1:0"];
    Server::start(Command::new(PIRN_SERVE).args(listen).args(arguments))
}

/// Sends a request with these lines, and returns what comes back until the end.
fn ask(server: &Server, lines: &[&str], body: &str) -> String {
    let head = lines.join("\r\n");
    server.ask(&format!(
        "{head}\r\nHost: site.example\r\nConnection: close\r\n\r\n{body}"
    ))
}

fn get(server: &Server, target: &str) -> String {
    ask(server, &[&format!("GET {target} HTTP/1.1")], "")
}

/// A folder with some files.
fn site(name: &str) -> Folder {
    let folder = Folder::new(name);
    fs::create_dir_all(folder.path("sub")).unwrap();
    fs::write(folder.path("a.txt"), "hello").unwrap();
    fs::write(folder.path("sub/index.html"), "<h1>sub</h1>").unwrap();
    fs::write(folder.path("large.bin"), vec![b'x'; 3_000_000]).unwrap();
    folder
}

/// Another server: it answers each connection's first request by what `answer` does, which gets the
/// lines of the head.
fn backend(answer: impl Fn(Vec<String>, &mut TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // One byte at a time: the rest is the answer's.
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read(&mut byte).unwrap() == 0 {
                    break;
                }
                head.push(byte[0]);
            }
            let lines = head.lines().map(Result::unwrap);
            answer(lines.filter(|line| !line.is_empty()).collect(), &mut stream);
        }
    });
    format!("http://{address}")
}

#[test]
fn a_folder_is_served_and_listed_if_asked_for() {
    let folder = site("served");
    let listed = serve(&[folder.0.to_str().unwrap(), "--list"]);
    assert!(get(&listed, "/a.txt").ends_with("\r\n\r\nhello"));
    assert!(get(&listed, "/sub/").ends_with("<h1>sub</h1>"));
    assert!(get(&listed, "/").contains("<a href=\"./a.txt\">a.txt</a>"));
    assert!(get(&listed, "/../Cargo.toml").starts_with("HTTP/1.1 404"));
    let plain = serve(&[folder.0.to_str().unwrap()]);
    assert!(get(&plain, "/").starts_with("HTTP/1.1 404"));
}

#[test]
fn it_ends_when_it_is_told_to_after_open_requests() {
    let folder = site("ended");
    let mut server = serve(&[folder.0.to_str().unwrap()]);
    let idle = server.connect();
    let mut client = server.connect();
    let request = b"GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n";
    client.write_all(request).unwrap();
    let mut first = [0; 100];
    client.read_exact(&mut first).unwrap();
    server.running.signal("-TERM");
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).unwrap();
    assert!(rest.len() > 3_000_000 - 100, "{}", rest.len());
    assert_eq!(server.running.process.wait().unwrap().code(), Some(0));
    drop(idle);
}

#[test]
fn what_is_passed_on_arrives_whole_and_comes_back_whole() {
    let folder = site("behind");
    let behind = serve(&[folder.0.to_str().unwrap()]);
    let proxy = serve(&["--proxy", &format!("http://{}", behind.address)]);
    assert!(get(&proxy, "/a.txt").ends_with("\r\n\r\nhello"));
    let large = get(&proxy, "/large.bin");
    assert!(
        large.contains("content-length: 3000000\r\n"),
        "{}",
        &large[..200]
    );
    assert_eq!(large.split_once("\r\n\r\n").unwrap().1.len(), 3_000_000);
    let head = ask(&proxy, &["HEAD /large.bin HTTP/1.1"], "");
    assert!(head.contains("content-length: 3000000\r\n"), "{head}");
    assert!(head.ends_with("\r\n\r\n"));
    assert!(get(&proxy, "/nothing").starts_with("HTTP/1.1 404"));
    assert!(get(&proxy, "/sub").contains("location: /sub/\r\n"));
    let part = ask(&proxy, &["GET /a.txt HTTP/1.1", "Range: bytes=1-3"], "");
    assert!(part.starts_with("HTTP/1.1 206"), "{part}");
    assert!(part.ends_with("\r\n\r\nell"), "{part}");
}

/// Another server, which answers with the lines of the request, and its body of 11 bytes.
fn mirror() -> String {
    backend(|lines, stream| {
        let mut body = [0; 11];
        let length = match lines.contains(&"content-length: 11".into()) {
            true => stream.read(&mut body).unwrap(),
            false => 0,
        };
        let text = lines.join("\n") + "\n" + std::str::from_utf8(&body[..length]).unwrap();
        let head = "HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\n";
        write!(stream, "{head}Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    })
}

#[test]
fn the_other_server_is_told_who_asks_and_no_fields_of_a_connection() {
    let url = mirror();
    let more = ["--header", "X-Api-Key: 123", "--header", "x-kept:yes"];
    let proxy = serve(&[&["--proxy", &format!("{url}/base/")], &more[..]].concat());
    let answer = ask(
        &proxy,
        &[
            "POST /path?a=b HTTP/1.1",
            "Connection: x-secret",
            "X-Secret: 1",
            "TE: trailers",
            "Keep-Alive: 5",
            "X-Forwarded-For: 192.0.2.1",
            "X-Kept: no",
            "Content-Length: 11",
        ],
        "hello world",
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("x-end: 2"), "{head}");
    assert!(!head.contains("x-hop"), "{head}");
    for line in [
        "POST /base/path?a=b HTTP/1.1\n",
        "\nhost: site.example\n",
        "\nx-forwarded-host: site.example\n",
        "\nx-forwarded-proto: http\n",
        "\nx-forwarded-for: 127.0.0.1\n",
        "\nforwarded: for=127.0.0.1;host=site.example;proto=http\n",
        "\nvia: 1.1 pirn\n",
        "\nx-kept: yes\n",
        "\nx-api-key: 123\n",
    ] {
        assert!(body.contains(line), "{line:?} in {body}");
    }
    assert!(body.ends_with("\nhello world"), "{body}");
    let answer = ask(&proxy, &["GET http://site.example?a HTTP/1.1"], "");
    assert!(answer.contains("GET /base/?a HTTP/1.1\n"), "{answer}");
    for gone in ["x-secret", "keep-alive", "\nte:", "user-agent", "\naccept"] {
        assert!(!body.contains(gone), "{gone} in {body}");
    }
    assert!(!body.contains("192.0.2.1"), "what a client says: {body}");
}

#[test]
fn only_a_trusted_proxy_is_believed() {
    let url = mirror();
    let claims = [
        "GET / HTTP/1.1",
        "X-Forwarded-For: 192.0.2.1",
        "X-Forwarded-Proto: https",
        "Forwarded: for=192.0.2.2",
    ];
    let believed = [
        "\nx-forwarded-for: 192.0.2.1, 127.0.0.1\n",
        "\nx-forwarded-proto: https\n",
        "\nforwarded: for=192.0.2.1;proto=https, for=127.0.0.1;host=site.example;proto=http\n",
    ];
    let said = |arguments: &[&str]| {
        let proxy = serve(&[&["--proxy", &url], arguments].concat());
        ask(&proxy, &claims, "")
    };
    let trusting = said(&["--trust", "10.0.0.0/8", "--trust", "127.0.0.1"]);
    assert!(
        believed.iter().all(|line| trusting.contains(line)),
        "{trusting}"
    );
    for answer in [said(&[]), said(&["--trust", "10.0.0.0/8"])] {
        assert!(
            !answer.contains("192.0.2.") && !answer.contains("https"),
            "{answer}"
        );
        assert!(
            answer.contains("\nx-forwarded-for: 127.0.0.1\n"),
            "{answer}"
        );
    }
}

#[test]
fn an_answer_is_passed_on_as_it_comes() {
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let may_go_on = std::sync::Mutex::new(may_go_on);
    let url = backend(move |_, stream| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        may_go_on.lock().unwrap().recv().unwrap();
        stream.write_all(b"3\r\ntwo\r\n0\r\n\r\n").unwrap();
    });
    let proxy = serve(&["--proxy", &url]);
    let mut client = proxy.connect();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"one\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        seen.push(byte[0]);
    }
    go_on.send(()).unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "3\r\ntwo\r\n0\r\n\r\n");
}

#[test]
fn a_connection_may_change_its_protocol() {
    let url = backend(|lines, stream| {
        assert!(lines.contains(&"upgrade: shout".into()), "{lines:?}");
        let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: shout\r\nConnection: upgrade\r\n";
        write!(stream, "{head}X-Key: 7\r\n\r\nearly ").unwrap();
        let mut bytes = [0; 5];
        while let Ok(()) = stream.read_exact(&mut bytes) {
            stream
                .write_all(&bytes.map(|byte| byte.to_ascii_uppercase()))
                .unwrap();
        }
    });
    let proxy = serve(&["--proxy", &url]);
    let mut client = proxy.connect();
    let head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n";
    client.write_all(format!("{head}hello").as_bytes()).unwrap();
    let mut answer = BufReader::new(client.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        answer.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    assert!(lines[0].starts_with("HTTP/1.1 101"), "{lines:?}");
    assert!(lines.contains(&"x-key: 7".into()), "{lines:?}");
    let mut word = [0; 11];
    answer.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"early HELLO");
    client.write_all(b"again").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = String::new();
    answer.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "AGAIN");
}

#[test]
fn a_server_that_fails_is_reported_to_the_client() {
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let proxy = serve(&["--proxy", &format!("http://{nobody}")]);
    assert!(get(&proxy, "/").starts_with("HTTP/1.1 502"));

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let proxy = serve(&["--proxy", &url, "--timeout", "1"]);
    assert!(get(&proxy, "/").starts_with("HTTP/1.1 504"));

    // Its body has an end, but not the announced one: the client must see that.
    let url = backend(|_, stream| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            .unwrap();
    });
    let proxy = serve(&["--proxy", &url]);
    let answer = get(&proxy, "/");
    assert!(answer.contains("content-length: 10\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
}

#[test]
fn idle_connections_give_way_to_clients_that_wait() {
    let folder = site("room");
    let server = serve(&[folder.0.to_str().unwrap(), "--max-connections", "2"]);
    let mut idle = [server.connect(), server.connect()];
    assert!(get(&server, "/a.txt").ends_with("hello"));
    assert_eq!(idle[0].read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_refused_request_is_in_the_log() {
    let folder = site("refused");
    let mut command = Command::new(PIRN_SERVE);
    let arguments = ["--listen", "127.0.0.1:0", "--log"];
    let command = command.args(arguments).arg(&folder.0);
    let mut process = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let address = first.rsplit('/').next().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client
        .write_all(b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let line = lines.next().unwrap().unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(line.contains("\"GET /a b HTTP/1.1\" 400 "), "{line}");
}

#[test]
fn the_manual_and_the_completions_are_those_of_the_options() {
    for kind in ["man", "bash", "fish", "zsh"] {
        let output = Command::new(PIRN_SERVE)
            .args(["--generate", kind])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        // roff escapes hyphens.
        assert!(text.replace('\\', "").contains("upload-timeout"), "{text}");
    }
}

#[test]
fn addresses_that_cannot_be_listened_on_are_refused() {
    for address in ["nonsense", "127.0.0.1", "127.0.0.1:99999", "192.0.2.1:80"] {
        let arguments = [".", "--listen", address];
        let output = Command::new(PIRN_SERVE).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let says = format!("pirn-serve: cannot listen on '{address}': ");
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with(&says), "{said}");
    }
}

#[test]
fn the_file_of_a_unix_socket_goes_when_the_server_ends() {
    let folder = site("socket");
    let path = folder.path("socket");
    let listen = format!("unix:{path}");
    let mut command = Command::new(PIRN_SERVE);
    let command = command.args(["--listen", &listen]).arg(&folder.0);
    let (mut running, _) = Running::start(command, "listening");
    assert!(fs::exists(&path).unwrap());
    running.signal("-TERM");
    assert_eq!(running.process.wait().unwrap().code(), Some(0));
    assert!(!fs::exists(&path).unwrap());
}

#[test]
fn too_large_a_body_is_refused_before_it_is_passed_on() {
    let url = backend(|_, _| {});
    let proxy = serve(&["--proxy", &url, "--max-body", "4"]);
    let answer = ask(&proxy, &["POST / HTTP/1.1", "Content-Length: 5"], "12345");
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for (arguments, says) in [
        (
            &["--proxy", "ftp://a"][..],
            "--proxy takes an address such as",
        ),
        (&["--proxy", "/path"], "--proxy takes an address such as"),
        (
            &["--proxy", "http://h:99999"],
            "--proxy takes an address such as",
        ),
        (
            &["--proxy", "http://h:"],
            "--proxy takes an address such as",
        ),
        (&["/nonexistent-folder"], "/nonexistent-folder"),
        (
            &[".", "--listen", "unix:/nonexistent/socket"],
            "unix:/nonexistent/socket",
        ),
        (&[".", "--certificate", "a.pem"], "--key"),
        (
            &["--proxy", "http://a", "--header", "x"],
            "there is no colon",
        ),
        (
            &["--proxy", "http://a", "--trust", "everybody"],
            "it is not an address",
        ),
        (&[".", "--trust", "10.0.0.1"], "cannot be used with"),
        (
            &[".", "--certificate", "/none.pem", "--key", "/none.pem"],
            "/none.pem",
        ),
        (&[".", "--proxy", "http://a"], "cannot be used with"),
        (&[], "DIR"),
    ] {
        let output = Command::new(PIRN_SERVE).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && said.contains(says),
            "{arguments:?}: {said}"
        );
    }
}

//! `pirn console`, spoken to over a socket as by a browser, and as by others.

#[path = "../shared/mod.rs"]
mod shared;
mod target;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use shared::{PIRN, Running, own};
use target::Console;

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or("none")
}

#[test]
fn it_serves_the_page_and_what_that_asks_for() {
    let console = Console::start();
    let page = console.ask("GET", &console.root, "Sec-Fetch-Site: none\r\n");
    for part in [
        "HTTP/1.1 200 OK\r\n",
        "Content-Type: text/html",
        "Content-Security-Policy: default-src 'self';",
        "Referrer-Policy: no-referrer\r\n",
        "X-Content-Type-Options: nosniff\r\n",
        "Cache-Control: no-store\r\n",
        "main.js",
    ] {
        assert!(
            page.to_lowercase().contains(&part.to_lowercase()),
            "{part:?} is not in:\n{page}"
        );
    }
    assert!(!page.contains("Access-Control"), "{page}");
    assert!(console.get("main.js").contains("import"));

    let groups = console.json("groups");
    assert_eq!(groups["totals"]["listed"], own(), "{groups}");
    let all = groups["groups"].as_array().unwrap();
    let accepts = |group: &&Value| group["stack"].to_string().contains("accept4");
    let group = all.iter().find(accepts).unwrap();
    assert_eq!(
        (&group["state"], &group["wait"]),
        (&"waiting".into(), &"read".into())
    );
    let waits = group["examples"][0]["waits"].as_str().unwrap();
    assert!(waits.contains(&console.server.address), "{waits}");
    let frames = group["stack"]["frames"].as_array().unwrap();
    assert!(
        frames
            .iter()
            .any(|frame| frame["text"].as_str().unwrap().contains("accept"))
    );
    assert!(
        group["stack"]["inside"]
            .as_str()
            .unwrap()
            .contains("accept"),
        "{group}"
    );

    let id = group["examples"][0]["id"].as_u64().unwrap();
    let thread = &console.json(&format!("thread?id={id}"))["thread"];
    assert!(
        thread["full_waits"]
            .as_str()
            .unwrap()
            .contains(&console.server.address),
        "{thread}"
    );
    assert!(thread["mounts"].as_u64().unwrap() > 0);
    assert_eq!(console.json("thread?id=999999")["thread"], Value::Null);
    assert_eq!(console.json("scopes")["outside"], own());
}

#[test]
fn conditions_choose_threads() {
    let console = Console::start();
    let listed = |conditions: &str| {
        let answer = console.json(&format!("groups?where={conditions}"));
        answer["totals"]["listed"]
            .as_u64()
            .unwrap_or_else(|| panic!("{answer}"))
    };
    assert_eq!(listed("state%3dwaiting%2Cframe=accept"), 1);
    assert_eq!(listed("state=running%2Cframe=accept"), 0);
    assert_eq!(listed("age=0s"), own() as u64);
    assert_eq!(listed("name=none"), 0);
    let wrong = console.json("groups?where=colour=red");
    assert!(
        wrong["error"].as_str().unwrap().contains("colour"),
        "{wrong}"
    );
    let threads = console.json("threads?where=wait=read%2Cframe=accept");
    assert_eq!(
        (&threads["all"], &threads["threads"][0]["state"]),
        (&1.into(), &"waiting".into())
    );
}

#[test]
fn events_tell_what_changes() {
    let console = Console::start();
    let mut events = console.events();
    let hello = events.next("hello");
    assert_eq!(hello["pid"].to_string(), console.server.pid());
    let points = events.next("points");
    let threads = points[0]["threads"].as_object().unwrap();
    let all: u64 = threads.values().filter_map(Value::as_u64).sum();
    assert_eq!(all, own() as u64, "{points}");
    let first = events.next("dump")["number"].as_u64().unwrap();
    let clients: Vec<_> = (0..20)
        .map(|_| TcpStream::connect(&console.server.address).unwrap())
        .collect();
    while events.next("points")[0]["threads"]["waiting"] != 20 + own() {}
    while events.next("dump")["number"].as_u64().unwrap() <= first {}
    while console.json("groups")["totals"]["listed"] != 20 + own() {
        events.next("dump");
    }
    drop(clients);
    // A page that connects later gets what was before, too.
    let later = console.events().next("points");
    assert!(later.as_array().unwrap().len() > 1, "{later}");
}

#[test]
fn when_the_process_ends_the_data_stay() {
    let mut console = Console::start();
    let mut events = console.events();
    events.next("dump");
    assert_eq!(console.json("groups")["totals"]["listed"], own());
    console.server.running.process.kill().unwrap();
    console.server.running.process.wait().unwrap();
    loop {
        if events.next("status")["state"] == "ended" {
            break;
        }
    }
    assert_eq!(console.json("groups")["totals"]["listed"], own());
    assert_eq!(
        console.events().next("hello")["pid"].to_string(),
        console.server.pid()
    );
    let record = console.json("record?seconds=1");
    assert!(
        record["error"].as_str().unwrap().contains("ended"),
        "{record}"
    );
}

#[test]
fn it_records_what_carriers_do() {
    let console = Console::start();
    let served = console.server.address.clone();
    let (stop, stopped) = mpsc::channel::<()>();
    let load = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(&served).unwrap();
        let mut answer = [0; 1024];
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            stream
                .write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                .unwrap();
            assert_ne!(stream.read(&mut answer).unwrap(), 0);
        }
    });
    let record = console.json("record?seconds=1");
    stop.send(()).unwrap();
    load.join().unwrap();
    let carriers = record["carriers"].as_array().unwrap();
    let turns: u64 = carriers
        .iter()
        .map(|it| it["turns"].as_u64().unwrap())
        .sum();
    assert!(turns > 10, "{record}");
    let bars: usize = carriers
        .iter()
        .map(|it| it["bars"].as_array().unwrap().len())
        .sum();
    assert!((1..5_000 * carriers.len()).contains(&bars), "{bars}");
    assert!(console.get("trace.pftrace").len() > 1000);
}

#[test]
fn a_dump_can_be_saved() {
    let console = Console::start();
    for (path, part) in [
        ("dump.txt", "accept4"),
        ("dump.json", "\"pirn-dump\""),
        ("dump.pirndump", "PIRNDUMP"),
    ] {
        let answer = console.ask("GET", &format!("{}{path}", console.root), "");
        assert!(
            answer.contains("content-disposition: attachment"),
            "{answer}"
        );
        assert!(answer.contains(part), "{path}: {answer}");
        assert!(
            answer.ends_with("\r\n0\r\n\r\n"),
            "{path}: its end is missing"
        );
    }
    assert_eq!(
        status(&console.ask("GET", &format!("{}trace.pftrace", console.root), "")),
        "503"
    );
}

#[test]
fn others_get_nothing() {
    let console = Console::start();
    let (root, address) = (&console.root, &console.address);
    let with = |headers: &str| console.ask("GET", &format!("{root}groups"), headers);
    assert_eq!(status(&with("")), "200");
    assert_eq!(
        status(&with(&format!("Origin: http://{address}\r\n"))),
        "200"
    );
    let twice = format!("Origin: http://{address}\r\n").repeat(2);
    assert_eq!(status(&with(&twice)), "400");
    for headers in [
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: navigate\r\n",
    ] {
        let answer = with(headers);
        assert_eq!(status(&answer), "403", "{headers:?}");
        assert!(
            answer.ends_with("\r\n\r\n403 Forbidden\n"),
            "it says more: {answer}"
        );
    }
    let port = address.rsplit(':').next().unwrap();
    for (host, expected) in [
        (format!("localhost:{port}"), "200"),
        ("evil.example".into(), "403"),
        (format!("evil.example:{port}"), "403"),
        ("127.0.0.1".into(), "403"),
    ] {
        let request =
            format!("GET {root}groups HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(
            status(&console.send(request.as_bytes())),
            expected,
            "{host}"
        );
    }
}

#[test]
fn there_is_nothing_besides_the_page() {
    let console = Console::start();
    let root = &console.root;
    let wrong = format!("/{}/", "0".repeat(32));
    for path in [
        "/",
        "/groups",
        &wrong,
        &format!("{wrong}groups"),
        "/../../etc/passwd",
    ] {
        assert_eq!(status(&console.ask("GET", path, "")), "403", "{path}");
    }
    for path in [
        "../../etc/passwd",
        "%2e%2e/main.rs",
        "/etc/passwd",
        "page/main.js",
        "nothing",
    ] {
        assert_eq!(
            status(&console.ask("GET", &format!("{root}{path}"), "")),
            "404",
            "{path}"
        );
    }
    for method in ["POST", "HEAD", "OPTIONS", "DELETE"] {
        assert_eq!(
            status(&console.ask(method, &format!("{root}groups"), "")),
            "405",
            "{method}"
        );
    }
}

#[test]
fn what_is_too_much_is_refused() {
    let console = Console::start();
    let root = &console.root;
    let long = format!("X: {}\r\n", "x".repeat(20_000));
    assert_eq!(status(&console.ask("GET", root, &long)), "431");
    assert_eq!(
        status(&console.ask("GET", root, &"A: b\r\n".repeat(200))),
        "431"
    );
    assert_eq!(
        status(&console.ask("GET", root, "Content-Length: 5\r\n")),
        "400"
    );
    assert_eq!(status(&console.ask("GET", root, "Host: twice\r\n")), "400");
    assert_eq!(
        status(&console.send(b"\x16\x03\x01\x02\x00 hello, in TLS\r\n\r\n")),
        "400"
    );

    // Connections that say nothing do not keep others out for long.
    let silent: Vec<_> = (0..40)
        .map(|_| TcpStream::connect(&console.address).unwrap())
        .collect();
    while status(&console.ask("GET", root, "")) != "200" {
        std::thread::sleep(Duration::from_millis(50));
    }
    for stream in &silent {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

#[test]
fn it_is_for_this_machine_alone() {
    let output = Command::new(PIRN)
        .args(["console", "1", "--listen", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("others could reach it"), "{error}");
    let output = Command::new(PIRN)
        .args(["console", "4194304"])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "pirn: there is no process 4194304\n"
    );
}

/// Command lines can be read by everybody, so the address is not in one.
#[test]
fn the_browser_is_given_a_private_file() {
    let console = Console::start();
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("open-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let said = folder.join("said");
    let program = folder.join("xdg-open");
    let script = "#!/bin/sh\nstat -c %a \"$1\" >\"$0.part\"; echo \"$1\" >>\"$0.part\"\n\
                  cat \"$1\" >>\"$0.part\"; mv \"$0.part\" \"$(dirname \"$0\")/said\"\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(PIRN);
    let command = command.args(["console", &console.server.pid(), "--open"]);
    let command = command.env("PATH", path).env("XDG_RUNTIME_DIR", &folder);
    let (opened, url) = Running::start(command, "http://");
    while !said.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let said = fs::read_to_string(said).unwrap();
    let (mode, rest) = said.split_once('\n').unwrap();
    let (file, contents) = rest.split_once('\n').unwrap();
    assert_eq!(mode, "600");
    assert!(contents.contains(&format!("url={url}")), "{contents}");
    let token = url.trim_end_matches('/').rsplit('/').next().unwrap();
    assert!(!file.contains(token), "{file}");
    drop(opened);
    fs::remove_dir_all(folder).unwrap();
}

/// The process that is watched opens no port.
#[test]
fn only_the_console_listens() {
    let console = Console::start();
    let mut events = console.events();
    events.next("dump");
    let listeners = |pid: &str| {
        let links = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .flatten();
        let links: Vec<_> = links
            .filter_map(|it| std::fs::read_link(it.path()).ok())
            .collect();
        let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap();
        let lines = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let listening = lines.filter(|fields| fields.get(3) == Some(&"0A"));
        let own = |inode: &&str| {
            links
                .iter()
                .any(|link| link.to_str() == Some(&format!("socket:[{inode}]")))
        };
        listening.filter(|fields| own(&fields[9])).count()
    };
    assert_eq!(
        listeners(&console.server.pid()),
        1,
        "its own, for connections"
    );
    assert_eq!(listeners(&console.console.pid()), 1);
}

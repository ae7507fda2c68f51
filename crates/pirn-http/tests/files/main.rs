//! Files: what is served, what is not, conditional requests and ranges.

mod chosen;

use pirn_http::files::{File, Files};
use pirn_http::{Answer, Client, Method, Request, Server};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A folder with files, and a secret beside it.
fn folder() -> (TempDir, std::path::PathBuf) {
    let all = tempfile::tempdir().unwrap();
    let public = all.path().join("public");
    fs::create_dir_all(public.join("docs")).unwrap();
    fs::create_dir_all(public.join("empty")).unwrap();
    fs::create_dir_all(public.join(".git")).unwrap();
    for (name, text) in [
        ("secret", "secret"),
        ("public/digits.txt", "0123456789"),
        ("public/none.bin", ""),
        ("public/a b%.html", "<p>"),
        ("public/docs/index.html", "<h1>"),
        ("public/.hidden", "hidden"),
        ("public/.git/config", "hidden"),
        ("public/app.js", "plain"),
        ("public/app.js.gz", "gzipped"),
        ("public/app.js.br", "br"),
    ] {
        fs::write(all.path().join(name), text).unwrap();
    }
    symlink("../secret", public.join("out")).unwrap();
    symlink("docs", public.join("in")).unwrap();
    (all, public)
}

fn client() -> (TempDir, Client) {
    let (all, public) = folder();
    let files = Files::new(public).unwrap();
    (all, Server::new().files("/static/", files).client())
}

fn get(client: &Client, fields: &[(&str, &str)]) -> Answer {
    client.request(Method::GET, "/static/digits.txt", fields, b"")
}

#[test]
fn a_file_comes_with_its_type_and_validators() {
    let (_all, client) = client();
    let answer = get(&client, &[]);
    assert_eq!(
        (answer.status.as_u16(), &*answer.text()),
        (200, "0123456789")
    );
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(answer.headers["content-length"], "10");
    assert_eq!(answer.headers["accept-ranges"], "bytes");
    assert!(answer.headers["etag"].to_str().unwrap().starts_with("W/\""));
    let head = client.request(
        Method::HEAD,
        "/static/digits.txt",
        &[("range", "bytes=1-2")],
        b"",
    );
    assert_eq!(head.status, 200, "ranges are of GET alone");
    assert_eq!(head.headers["content-length"], "10");
    assert_eq!(head.body, b"");
    assert_eq!(client.get("/static/a%20b%25.html").text(), "<p>");
    let empty = client.get("/static/none.bin");
    assert_eq!((empty.status.as_u16(), empty.body.len()), (200, 0));
    assert_eq!(empty.headers["content-type"], "application/octet-stream");
    assert_eq!(client.post("/static/digits.txt", "x").status, 405);
}

#[test]
fn a_folder_is_served_by_its_index() {
    let (_all, client) = client();
    let answer = client.get("/static/docs/");
    assert_eq!(answer.text(), "<h1>");
    assert_eq!(answer.headers["content-type"], "text/html; charset=utf-8");
    let answer = client.get("/static/docs?a=1");
    assert_eq!(answer.status, 301);
    assert_eq!(answer.headers["location"], "/static/docs/?a=1");
    assert_eq!(client.get("/static").headers["location"], "/static/");
    assert_eq!(
        client.get("/static/in/").text(),
        "<h1>",
        "a link that stays inside"
    );
    for path in [
        "/static/",
        "/static/empty",
        "/static/empty/",
        "/static/digits.txt/",
    ] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}

#[test]
fn no_path_leads_out_of_the_folder_or_to_what_is_hidden() {
    let (_all, client) = client();
    for path in [
        "../secret",
        "%2e%2e/secret",
        ".%2E/secret",
        "docs/../../secret",
        "docs/..",
        "docs/.",
        "/etc/passwd",
        "/../secret",
        "out",
        "out/",
        ".hidden",
        "%2ehidden",
        ".git/config",
        "..",
        "..%5csecret",
        "docs//index.html",
        "./digits.txt",
        "%c3",
        "digits.txt%20",
    ] {
        assert_eq!(client.get(&format!("/static/{path}")).status, 404, "{path}");
    }
    for path in ["..%2fsecret", "docs%2Findex.html", "digits.txt%00", "%00"] {
        assert_eq!(client.get(&format!("/static/{path}")).status, 400, "{path}");
    }
    let long = "x".repeat(300);
    assert_eq!(client.get(&format!("/static/{long}")).status, 404);
}

#[test]
fn a_pipe_is_no_file_and_nobody_waits_for_its_writer() {
    let (_all, public) = folder();
    let made = std::process::Command::new("mkfifo")
        .arg(public.join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let client = Server::new()
        .files("/", Files::new(&public).unwrap())
        .client();
    assert_eq!(client.get("/pipe").status, 404);
    assert_eq!(client.get("/digits.txt").status, 200);
    assert!(File::open(public.join("pipe")).is_err());
    assert!(File::open(public.join("docs")).is_err());
}

#[test]
fn settings_change_what_is_served() {
    let (_all, public) = folder();
    let files = Files::new(&public)
        .unwrap()
        .dot_files()
        .index(Some("digits.txt"));
    let files = files.cache_control("max-age=60");
    let client = Server::new().files("/", files).client();
    assert_eq!(client.get("/.git/config").text(), "hidden");
    assert_eq!(client.get("/.git/../digits.txt").status, 404);
    let index = client.get("/");
    assert_eq!(index.text(), "0123456789");
    assert_eq!(index.headers["cache-control"], "max-age=60");
    let files = Files::new(&public).unwrap().index(None);
    let client = Server::new().files("/", files).client();
    assert_eq!(client.get("/docs/").status, 404);
    assert_eq!(client.get("/docs").status, 404);
    let missing = Files::new(public.join("missing")).unwrap_err().to_string();
    assert!(missing.contains("missing"), "{missing}");
}

#[test]
fn a_folder_without_an_index_is_listed_if_that_is_allowed() {
    let (_all, public) = folder();
    fs::write(public.join("<b>&\"'.txt"), "12345").unwrap();
    symlink("digits.txt", public.join("link.txt")).unwrap();
    fs::create_dir(public.join("docs/more")).unwrap();
    fs::write(public.join("docs/more/javascript:alert(1)"), "").unwrap();
    let files = Files::new(public).unwrap().listings();
    let client = Server::new().files("/static/", files).client();

    let answer = client.get("/static/");
    assert_eq!(answer.headers["content-type"], "text/html; charset=utf-8");
    assert!(answer.headers.contains_key("content-security-policy"));
    let page = answer.text();
    for line in [
        "<a href=\"./docs/\">docs/</a>",
        "<a href=\"./empty/\">empty/</a>",
        "<a href=\"./in/\">in/</a>",
        "<a href=\"./digits.txt\">digits.txt</a></td><td>10</td>",
        "<a href=\"./link.txt\">link.txt</a></td><td>10</td>",
        "<a href=\"./a%20b%25.html\">a b%.html</a>",
        "<a href=\"./%3Cb%3E%26%22%27.txt\">&lt;b&gt;&amp;&quot;&#39;.txt</a></td><td>5</td>",
    ] {
        assert!(page.contains(line), "{line} in {page}");
    }
    // What is not served is not shown; nor is the way out of the folder.
    for hidden in ["secret", "out", ".hidden", ".git", "../"] {
        assert!(!page.contains(hidden), "{hidden} in {page}");
    }
    assert!(page.find("empty").unwrap() < page.find("a b%").unwrap());

    assert_eq!(client.get("/static/docs/").text(), "<h1>");
    assert_eq!(client.get("/static/empty").status, 301);
    let page = client.get("/static/docs/more/").text();
    assert!(page.contains("<h1>/docs/more/</h1>"), "{page}");
    assert!(page.contains("<a href=\"../\">"), "{page}");
    assert!(
        page.contains("<a href=\"./javascript%3Aalert%281%29\">"),
        "{page}"
    );
    assert_eq!(client.get("/static/nothing/").status, 404);
    assert_eq!(client.get("/static/.git/").status, 404);
}

#[test]
fn a_folder_with_the_name_of_the_index_is_no_index() {
    let (_all, public) = folder();
    fs::create_dir(public.join("empty/index.html")).unwrap();
    let files = || Files::new(&public).unwrap();
    let plain = Server::new().files("/", files()).client();
    assert_eq!(plain.get("/empty/").status, 404);
    let listed = Server::new().files("/", files().listings()).client();
    let page = listed.get("/empty/").text();
    assert!(page.contains("<a href=\"./index.html/\">"), "{page}");
}

#[test]
fn a_client_that_has_the_file_is_told_so() {
    let (_all, client) = client();
    let first = get(&client, &[]);
    let field = |name: &str| first.headers[name].to_str().unwrap().to_owned();
    for fields in [
        [("if-none-match", field("etag"))],
        [("if-modified-since", field("last-modified"))],
    ] {
        let answer = get(&client, &[(fields[0].0, &fields[0].1)]);
        assert_eq!((answer.status.as_u16(), answer.body.len()), (304, 0));
        assert_eq!(answer.headers["etag"], first.headers["etag"]);
        assert!(!answer.headers.contains_key("content-type"));
    }
    let old = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(get(&client, &[("if-unmodified-since", old)]).status, 412);
    assert_eq!(
        get(&client, &[("if-match", &field("etag"))]).status,
        412,
        "it is weak"
    );
}

#[test]
fn parts_of_a_file() {
    let (all, client) = client();
    let range = |value: &str| get(&client, &[("range", value)]);
    let one = range("bytes=2-4");
    assert_eq!((one.status.as_u16(), &*one.text()), (206, "234"));
    assert_eq!(one.headers["content-range"], "bytes 2-4/10");
    assert_eq!(one.headers["content-length"], "3");
    assert_eq!(range("bytes=-1").text(), "9");
    let none = range("bytes=10-");
    assert_eq!(none.status, 416);
    assert_eq!(none.headers["content-range"], "bytes */10");
    assert_eq!(range("bytes=4-2").text(), "0123456789");
    // The file has just been written: its date does not tell its versions apart yet.
    let field = |answer: &Answer| answer.headers["last-modified"].to_str().unwrap().to_owned();
    let tag = one.headers["etag"].to_str().unwrap();
    assert_eq!(
        get(&client, &[("range", "bytes=0-0"), ("if-range", tag)]).status,
        200
    );
    let path = all.path().join("public/digits.txt");
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(784_111_777))
        .unwrap();
    let date = field(&get(&client, &[]));
    assert_eq!(date, "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(
        get(&client, &[("range", "bytes=0-0"), ("if-range", &date)]).text(),
        "0"
    );
    (&file).write_all(b"x").unwrap();
    assert_eq!(
        get(&client, &[("range", "bytes=0-0"), ("if-range", &date)]).status,
        200
    );
}

#[test]
fn several_parts_come_as_one_multipart_body() {
    let (_all, client) = client();
    let answer = get(&client, &[("range", "bytes=0-1, 5-5,-2")]);
    assert_eq!(answer.status, 206);
    let media_type = answer.headers["content-type"].to_str().unwrap().to_owned();
    let boundary = media_type
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    assert!(!answer.headers.contains_key("content-range"));
    assert_eq!(
        answer.headers["content-length"],
        answer.body.len().to_string()
    );
    let part = |range: &str, data: &str| {
        format!(
            "\r\n--{boundary}\r\ncontent-type: text/plain; charset=utf-8\r\n\
             content-range: bytes {range}/10\r\n\r\n{data}"
        )
    };
    let expected = [part("0-1", "01"), part("5-5", "5"), part("8-9", "89")].concat();
    assert_eq!(answer.text(), format!("{expected}\r\n--{boundary}--\r\n"));
}

#[test]
fn files_compressed_beforehand_are_served_to_clients_that_accept_them() {
    let (_all, public) = folder();
    let files = Files::new(&public).unwrap().precompressed();
    let client = Server::new().files("/", files).client();
    let get = |accepted: &str| {
        client.request(
            Method::GET,
            "/app.js",
            &[("accept-encoding", accepted)],
            b"",
        )
    };
    let mut tags = Vec::new();
    for (accepted, coding, text) in [
        ("gzip, br", Some("br"), "br"),
        ("gzip, br;q=0.5", Some("gzip"), "gzipped"),
        ("zstd, gzip;q=0.5", Some("gzip"), "gzipped"),
        ("identity", None, "plain"),
        ("zstd", None, "plain"),
    ] {
        let answer = get(accepted);
        assert_eq!(answer.text(), text, "{accepted}");
        let sent = answer
            .headers
            .get("content-encoding")
            .map(|value| value.to_str().unwrap());
        assert_eq!(sent, coding);
        assert_eq!(answer.headers["vary"], "accept-encoding");
        assert!(
            answer.headers["content-type"]
                .to_str()
                .unwrap()
                .contains("javascript")
        );
        tags.push(answer.headers["etag"].clone());
    }
    assert_ne!(tags[0], tags[1]);
    assert_ne!(tags[1], tags[3]);
}

#[test]
fn a_handler_may_serve_one_file_as_it_likes() {
    let (_all, public) = folder();
    let path = public.join("digits.txt");
    let server = Server::new().get("/", move |request: &mut Request| -> std::io::Result<_> {
        let file = File::open(&path)?
            .content_type("text/csv")
            .download_as("Zähler \"1\".csv");
        assert_eq!(file.len(), 10);
        Ok(file.response_to(request))
    });
    let answer = server.client().get("/");
    assert_eq!(answer.headers["content-type"], "text/csv");
    assert_eq!(
        answer.headers["content-disposition"],
        "attachment; filename=\"Z_hler _1_.csv\"; filename*=UTF-8''Z%C3%A4hler%20%221%22.csv"
    );
}

#[test]
fn a_large_file_arrives_whole() {
    let (_all, public) = folder();
    let large = Vec::from_iter((0..1_000_000_u32).flat_map(u32::to_le_bytes));
    fs::write(public.join("large"), &large).unwrap();
    let client = Server::new()
        .files("/", Files::new(&public).unwrap())
        .client();
    assert!(client.get("/large").body == large);
    let fields = [("range", "bytes=1000001-3999999")];
    let part = client.request(Method::GET, "/large", &fields, b"");
    assert!(part.body == large[1_000_001..]);
}

#[test]
fn a_file_that_becomes_shorter_while_it_is_sent_ends_the_connection() {
    // More than sockets hold, so that the server waits for the client in the middle.
    const LENGTH: u64 = 64 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large");
    fs::write(&path, vec![b'x'; LENGTH as usize]).unwrap();
    let server = Server::new().files("/", Files::new(folder.path()).unwrap());
    let server = server.bind("127.0.0.1:0").unwrap().start().unwrap();
    let mut client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    let request = b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n";
    client.write_all(request).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let announced = format!("content-length: {LENGTH}\r\n");
    assert!(String::from_utf8(head).unwrap().contains(&announced));
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(5_000).unwrap();
    let mut body = Vec::new();
    client.read_to_end(&mut body).unwrap();
    assert!((body.len() as u64) < LENGTH, "all of it came");
    assert!(body.iter().all(|&byte| byte == b'x'), "other data came");
}

//! Forms in pieces of every length, what is refused, limits.

use super::*;
use crate::Server;
use http::Method;

/// A reader that returns a few bytes at a time.
struct Pieces<'b> {
    bytes: &'b [u8],
    length: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.length.min(buffer.len());
        self.bytes.read(&mut buffer[..length])
    }
}

type Parts = Vec<(String, Option<String>, Vec<u8>)>;

fn parse(bytes: &[u8], boundary: &str, length: usize) -> io::Result<Parts> {
    let mut form = Multipart::new(Pieces { bytes, length }, boundary)?;
    let mut parts = Vec::new();
    while let Some(mut part) = form.next_part()? {
        let mut data = Vec::new();
        part.read_to_end(&mut data)?;
        parts.push((
            part.name().to_owned(),
            part.file_name().map(str::to_owned),
            data,
        ));
    }
    assert!(form.next_part()?.is_none(), "the end stays the end");
    Ok(parts)
}

fn head(name: &str) -> String {
    format!("content-disposition: form-data; name=\"{name}\"\r\n\r\n")
}

#[test]
fn a_form_is_the_same_in_pieces_of_every_length() {
    let file = "Content-Disposition: form-data; name=\"f%22\"; filename=\"ä\\\\.txt\"\r\n\
                Content-Type: text/plain\r\n\r\n";
    let data = "\r\n--\r\n--bound\r\r\n-\n--boundar\r\n";
    let form = format!(
        "a preamble\r\n--boundary \t\r\n{}1\r\n--boundary\r\n{file}{data}\r\n--boundary\r\n{}\r\n--boundary--\r\nrest",
        head("a"),
        head("")
    );
    let expected: Parts = vec![
        ("a".into(), None, b"1".to_vec()),
        ("f\"".into(), Some("ä\\.txt".into()), data.into()),
        (String::new(), None, Vec::new()),
    ];
    for length in 1..form.len() {
        assert_eq!(
            parse(form.as_bytes(), "boundary", length).unwrap(),
            expected,
            "{length}"
        );
    }
}

/// Returns numbers that look random, the same in each run.
fn numbers(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

#[test]
fn what_is_put_into_a_form_comes_out_of_it() {
    for seed in 0..300 {
        let mut number = numbers(seed);
        let boundary = "-".repeat(number(3)) + "b";
        // The bytes that delimiters are made of, so that data often looks like one.
        let parts = Vec::from_iter((0..number(5)).map(|index| {
            let count = number(40);
            let mut data = Vec::from_iter((0..count).map(|_| b"\r\n-b"[number(4)]));
            let delimiter = format!("\r\n--{boundary}");
            while let Some(at) =
                memchr::memmem::find(&[b"\r\n", &data[..]].concat(), delimiter.as_bytes())
            {
                data.truncate(at.saturating_sub(2));
            }
            (format!("part{index}"), None, data)
        }));
        let mut form = Vec::new();
        for (name, _, data) in &parts {
            form.extend(format!("--{boundary}\r\n{}", head(name)).as_bytes());
            form.extend(data);
            form.extend(b"\r\n");
        }
        form.extend(format!("--{boundary}--").as_bytes());
        let length = 1 + number(30);
        assert_eq!(
            parse(&form, &boundary, length).unwrap(),
            parts,
            "seed {seed}"
        );
        // A form that is cut anywhere is an error.
        let cut = number(form.len());
        let result = parse(&form[..cut], &boundary, length);
        assert!(result.is_err(), "seed {seed}, cut at {cut}: {result:?}");
    }
}

#[test]
fn any_bytes_are_a_form_or_an_error() {
    let alphabet = [
        &b"\r\n"[..],
        b"--b",
        b"--",
        b"x",
        b"content-disposition: form-data; name=a",
        b"\r\n\r\n",
    ];
    for seed in 0..1000 {
        let mut number = numbers(seed);
        let count = number(30);
        let bytes = Vec::from_iter((0..count).map(|_| alphabet[number(alphabet.len())])).concat();
        let whole = parse(&bytes, "b", usize::MAX).ok();
        assert_eq!(parse(&bytes, "b", 1 + number(9)).ok(), whole, "seed {seed}");
    }
}

#[test]
fn what_another_program_might_read_differently_is_refused() {
    let part = |head: &str| format!("--b\r\n{head}\r\n\r\ndata\r\n--b--");
    for form in [
        part("content-type: text/plain"),
        part("content-disposition: attachment; name=a"),
        part("content-disposition: form-data"),
        part("content-disposition: form-data; name=a; name=b"),
        part("content-disposition: form-data; name=a\r\ncontent-disposition: form-data; name=b"),
        part("content-disposition: form-data; name=a\nx: y"),
        part("content-disposition : form-data; name=a"),
        part("content-disposition: form-data; name=a\r\n folded"),
        part("content-disposition: form-data; name=a").replace("--b--", "--bc--"),
        part("content-disposition: form-data; name=a").replace("--b--", "--b"),
        "--b\r\n\r\n\r\n--b--".to_owned(),
        String::new(),
    ] {
        assert!(parse(form.as_bytes(), "b", usize::MAX).is_err(), "{form:?}");
    }
    for boundary in ["", "ä", "b ", "\r\n", &"b".repeat(71)] {
        assert!(
            Multipart::new(io::empty(), boundary).is_err(),
            "{boundary:?}"
        );
    }
}

#[test]
fn limits_are_answered_and_skipped_parts_are_no_trouble() {
    let server = Server::new()
        .post("/", |request: &mut Request| -> io::Result<String> {
            let mut form = request.multipart()?.max_parts(3).max_head(100);
            let mut last = String::new();
            while let Some(part) = form.next_part()? {
                last = part.name().to_owned();
            }
            Ok(last)
        })
        .post("/text", |request: &mut Request| -> io::Result<String> {
            let mut form = request.multipart()?;
            form.next_part()?
                .map_or(Ok(String::new()), |part| part.text(5))
        })
        .post("/any", |request: &mut Request| -> io::Result<String> {
            let mut form = request.multipart()?;
            form.next_part()?
                .map_or(Ok(String::new()), |part| part.text(usize::MAX))
        });
    let client = server.client();
    let post = |path: &str, media_type: &str, body: &str| {
        let fields = [("content-type", media_type)];
        let answer = client.request(Method::POST, path, &fields, body.as_bytes());
        (answer.status.as_u16(), answer.text())
    };
    let media_type = "multipart/form-data; boundary=\"b\"";
    let form = |count: usize, name: &str| {
        let part = format!("--b\r\n{}hello\r\n", head(name));
        part.repeat(count) + "--b--\r\n"
    };
    assert_eq!(post("/", media_type, &form(3, "x")), (200, "x".to_owned()));
    assert_eq!(post("/", media_type, &form(0, "x")).0, 200);
    assert_eq!(post("/", media_type, &form(4, "x")).0, 413);
    assert_eq!(post("/", media_type, &form(1, &"x".repeat(100))).0, 413);
    assert_eq!(post("/", media_type, &form(1, "x")[..20]).0, 400);
    assert_eq!(post("/", "multipart/form-data", &form(1, "x")).0, 400);
    assert_eq!(post("/", "text/plain", &form(1, "x")).0, 415);
    assert_eq!(
        post("/text", media_type, &form(1, "x")),
        (200, "hello".to_owned())
    );
    assert_eq!(
        post("/any", media_type, &form(1, "x")),
        (200, "hello".to_owned())
    );
    assert_eq!(
        post(
            "/text",
            media_type,
            &form(1, "x").replace("hello", "hello!")
        )
        .0,
        413
    );
}

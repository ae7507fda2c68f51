//! Files that a client has already are not read for it.
//!
//! A test of its own, because the kernel counts what the whole process reads.

use pirn_http::files::Files;
use pirn_http::{Answer, Client, Method, Server};
use std::fs;

/// Bytes of the file, much more than all else that is read meanwhile.
const LENGTH: u64 = 8 << 20;

/// Returns how many bytes the process has read, be it from a cache; `None` where the kernel does
/// not count.
fn read_so_far() -> Option<u64> {
    let counters = fs::read_to_string("/proc/self/io").ok()?;
    let line = counters
        .lines()
        .find_map(|line| line.strip_prefix("rchar: "));
    line?.parse().ok()
}

/// Asks for the file, and returns the answer and how many bytes were read for it.
fn get(client: &Client, fields: &[(&str, &str)]) -> (Answer, u64) {
    let before = read_so_far().unwrap();
    let answer = client.request(Method::GET, "/large.bin", fields, b"");
    (answer, read_so_far().unwrap() - before)
}

#[test]
fn a_file_is_not_read_for_a_client_that_has_it_or_a_condition_that_fails() {
    if read_so_far().is_none() {
        return println!("skipped: this kernel does not count what a process reads");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.bin");
    fs::File::create(&path).unwrap().set_len(LENGTH).unwrap();
    let client = Server::new()
        .files("/", Files::new(folder.path()).unwrap())
        .client();

    let (whole, read) = get(&client, &[]);
    assert_eq!(
        (whole.status.as_u16(), whole.body.len() as u64),
        (200, LENGTH)
    );
    assert!(read >= LENGTH, "it is counted: {read}");
    let field = |name: &str| whole.headers[name].to_str().unwrap();
    let (tag, date) = (field("etag"), field("last-modified"));
    let long_ago = "Sun, 06 Nov 1994 08:49:37 GMT";
    let beyond = format!("bytes={LENGTH}-");
    for (fields, status) in [
        (&[("if-none-match", tag)][..], 304),
        (&[("if-none-match", "*")], 304),
        (&[("if-modified-since", date)], 304),
        (&[("if-none-match", tag), ("range", "bytes=0-")], 304),
        (&[("if-match", "\"other\"")], 412),
        (&[("if-unmodified-since", long_ago)], 412),
        (&[("if-match", "\"other\""), ("if-none-match", tag)], 412),
        (&[("range", &beyond)], 416),
    ] {
        let (answer, read) = get(&client, fields);
        assert_eq!(answer.status, status, "{fields:?}");
        assert!(answer.body.len() < 100, "{fields:?}: {}", answer.text());
        assert!(read < LENGTH / 8, "{fields:?}: {read} bytes were read");
        if status == 304 {
            assert_eq!(answer.headers["etag"], tag, "RFC 9110, section 15.4.5");
        }
    }
    // A part is, and no more than that: if the client's part is of this version.
    let part = ("range", "bytes=0-99");
    let (answer, read) = get(&client, &[part]);
    assert_eq!((answer.status.as_u16(), answer.body.len()), (206, 100));
    assert!(read < LENGTH / 8, "{read} bytes were read");
    let (answer, _) = get(&client, &[part, ("if-range", long_ago)]);
    assert_eq!(
        (answer.status.as_u16(), answer.body.len() as u64),
        (200, LENGTH)
    );
}

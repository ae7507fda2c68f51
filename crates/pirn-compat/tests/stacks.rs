//! How much stack unmodified crates use on a virtual thread: no more than one has by default.
//!
//! `cargo test -p pirn-compat --test stacks -- --nocapture` prints the numbers of
//! `docs/limits.md`.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{Read, Write};
use std::ptr;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use pirn::thread::{self, Builder};
use pirn_compat::{self as common, watched};
use regex::Regex;
use rusqlite::Connection;
use serde_json::Value;

/// What a virtual thread has by default: the first thousands of them, in optimised programs.
const DEFAULT: usize = 2 << 20;

fn page_size() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

fn compress() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(b"ten bytes.").unwrap();
    let packed = encoder.finish().unwrap();
    let mut text = String::new();
    GzDecoder::new(&*packed).read_to_string(&mut text).unwrap();
    assert_eq!(text, "ten bytes.");
}

fn match_patterns() {
    let nested = format!("{}a{}", "(".repeat(100), "+)".repeat(100));
    assert!(Regex::new(&nested).unwrap().is_match("aaa"));
    let date = Regex::new(r"(?<year>\p{Nd}{4})-(?<month>\p{Nd}{2})").unwrap();
    assert_eq!(&date.captures("on 2026-11-22").unwrap()["month"], "11");
}

fn parse_json() {
    let deepest = 127;
    let text = "[".repeat(deepest) + &"]".repeat(deepest);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&value).unwrap(), text);
    let map: BTreeMap<String, Vec<f64>> = serde_json::from_str(r#"{"a":[1.5e300,2]}"#).unwrap();
    assert_eq!(map["a"].len(), 2);
}

fn query() {
    let connection = Connection::open_in_memory().unwrap();
    let sum: i64 = connection
        .query_row(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
             SELECT sum(a.i) FROM n a JOIN n b USING (i) WHERE a.i IN (SELECT i FROM n LIMIT 10)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(sum, 55);
}

fn make_a_certificate() {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    black_box(certified.cert.der());
}

fn panic_with_a_backtrace() {
    let trace = std::backtrace::Backtrace::force_capture().to_string();
    assert!(trace.contains("panic_with_a_backtrace"));
    std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new("quiet"))).unwrap_err();
}

const WORKS: [(&str, fn()); 6] = [
    ("flate2", compress),
    ("regex", match_patterns),
    ("serde_json", parse_json),
    ("rusqlite", query),
    ("rcgen", make_a_certificate),
    ("backtrace", panic_with_a_backtrace),
];

/// Returns the bytes of the running thread's stack that have been touched.
fn touched() -> usize {
    let (mut bottom, mut size) = (ptr::null_mut(), 0);
    // SAFETY: attributes that are filled in by the first call, room for results, and one byte per
    // page.
    unsafe {
        let mut attributes = std::mem::zeroed();
        assert_eq!(
            libc::pthread_getattr_np(libc::pthread_self(), &mut attributes),
            0
        );
        libc::pthread_attr_getstack(&attributes, &mut bottom, &mut size);
        libc::pthread_attr_destroy(&mut attributes);
        let mut pages = vec![0_u8; size / page_size()];
        assert_eq!(libc::mincore(bottom, size, pages.as_mut_ptr()), 0);
        let lowest = pages.iter().position(|page| page & 1 != 0).unwrap();
        size - lowest * page_size()
    }
}

#[watched]
fn crates_fit_the_default_stack() {
    for (i, (name, work)) in WORKS.into_iter().enumerate() {
        // A size of its own, so that no other thread has used this stack before.
        let builder = Builder::new().stack_size((8 << 20) + (i + 1) * page_size());
        let used = move || {
            work();
            touched()
        };
        let bytes = builder.spawn(used).unwrap().join().unwrap();
        println!("{name}: {} KiB", bytes >> 10);
        assert!(bytes < DEFAULT - (64 << 10), "{name} uses {bytes} bytes");
    }
}

#[watched]
fn many_threads_with_the_default_stack_compress() {
    let threads = Vec::from_iter((0..1000).map(|_| thread::spawn(compress)));
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

//! Whole connections of HTTP/1.1: nothing crashes or hangs, and where hyper sees requests in the
//! same bytes, they are the same.
//!
//! hyper sees some that pirn-http does not, since it is less strict; the other way round there are
//! none.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pirn_http_fuzz::{Ours, hyper_requests};
use std::sync::LazyLock;

static OURS: LazyLock<Ours> = LazyLock::new(Ours::new);

fuzz_target!(|bytes: &[u8]| {
    let ours = OURS.requests(bytes);
    if ours.is_empty() {
        return;
    }
    let theirs = hyper_requests(bytes);
    assert!(
        theirs.starts_with(&ours),
        "pirn-http sees {ours:#?}\nhyper sees {theirs:#?}"
    );
});

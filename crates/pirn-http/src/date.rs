//! The `Date` of answers, which changes once per second.

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

thread_local! {
    /// The second, and its text. A connection's thread has its own.
    static LAST: Cell<(u64, [u8; 29])> = const { Cell::new((0, [0; 29])) };
}

/// Calls `f` with the present time as a header field has it (RFC 9110, section 5.6.7).
pub(crate) fn with_now<R>(f: impl FnOnce(&[u8]) -> R) -> R {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let (second, text) = LAST.get();
    if second == now {
        return f(&text);
    }
    let text = format(now);
    LAST.set((now, text));
    f(&text)
}

fn format(second: u64) -> [u8; 29] {
    let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
    let mut bytes = [b' '; 29];
    bytes.copy_from_slice(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_29_bytes() {
        assert_eq!(&format(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        with_now(|now| assert!(now.ends_with(b" GMT")));
    }
}

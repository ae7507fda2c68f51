//! The `Date` of answers: RFC 9110, section 5.6.7.
//!
//! It changes once per second, so all threads share the last one. Nobody waits for it: where
//! another thread is at it, the text is made anew.

use httpdate::HttpDate;
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

type Text = [u8; 29];

/// The last second since 1970 that was asked for, and its text.
static LAST: Mutex<(u64, Text)> = Mutex::new((u64::MAX, [0; 29]));

/// Returns the present time.
pub(crate) fn now() -> Text {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    at(now.unwrap_or_default().as_secs())
}

/// Returns the text of a second since 1970.
fn at(second: u64) -> Text {
    let Ok(mut last) = LAST.try_lock() else {
        return format(second);
    };
    if last.0 != second {
        *last = (second, format(second));
    }
    last.1
}

fn format(second: u64) -> Text {
    let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(second));
    let mut text = [b' '; 29];
    write!(&mut text[..], "{date}").expect("a date has 29 bytes");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

    #[test]
    fn each_second_has_its_own_text() {
        for day in 0..146_097 {
            let second = day * SECONDS_PER_DAY + day * 7919 % SECONDS_PER_DAY;
            let expected = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
            assert_eq!(at(second), expected.as_bytes(), "{expected}");
            assert_eq!(
                at(second),
                expected.as_bytes(),
                "{expected}, the same second"
            );
        }
        assert_eq!(&at(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(now().ends_with(b" GMT"));
    }
}

//! The `Date` of answers: RFC 9110, section 5.6.7.
//!
//! It changes once per second, so each connection of HTTP/1.1 keeps [its last text](Last), and all
//! threads share one more. No thread waits for the shared text: a thread that finds it locked makes
//! the text anew.

use httpdate::HttpDate;
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

type Text = [u8; 29];

/// The last second since 1970 that was asked for, and its text.
static LAST: Mutex<(u64, Text)> = Mutex::new((u64::MAX, [0; 29]));

/// Returns the present time.
pub(crate) fn now() -> Text {
    at(present_second())
}

fn present_second() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

/// The last time of one connection: with it, its answers do not touch memory that all processors
/// write.
#[derive(Default, Debug)]
pub(crate) struct Last {
    /// Since 1970; 0: none yet.
    second: u64,
    text: Text,
}

impl Last {
    /// Returns the present time.
    pub(crate) fn now(&mut self) -> &Text {
        self.at(present_second())
    }

    fn at(&mut self, second: u64) -> &Text {
        if self.second != second || second == 0 {
            *self = Last {
                second,
                text: at(second),
            };
        }
        &self.text
    }
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
        let mut last = Last::default();
        for second in [0, 1, 1, 0, 784_111_777] {
            assert_eq!(*last.at(second), format(second));
        }
        assert!(last.now().ends_with(b" GMT"));
    }
}

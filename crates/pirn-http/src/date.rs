//! The `Date` of answers: RFC 9110, section 5.6.7.
//!
//! The date takes some divisions and changes once per day, so all threads share the last one. It is
//! one word, which says of which day it is.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// The first day of 1970 was a Thursday.
const WEEKDAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Returns the present time.
pub(crate) fn now() -> [u8; 29] {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    format(now.unwrap_or_default().as_secs())
}

/// Returns the text of a second since 1970.
fn format(second: u64) -> [u8; 29] {
    let (day, time) = (second / SECONDS_PER_DAY, second % SECONDS_PER_DAY);
    let date = Date::of(day);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(WEEKDAYS[(day % 7) as usize]);
    text[5..7].copy_from_slice(&two_digits(date.day));
    text[8..11].copy_from_slice(MONTHS[date.month as usize % 12]);
    text[12..14].copy_from_slice(&two_digits(date.year / 100));
    text[14..16].copy_from_slice(&two_digits(date.year));
    text[17..19].copy_from_slice(&two_digits(time / 3600));
    text[20..22].copy_from_slice(&two_digits(time / 60 % 60));
    text[23..25].copy_from_slice(&two_digits(time % 60));
    text
}

fn two_digits(number: u64) -> [u8; 2] {
    [number / 10, number].map(|digit| b'0' + (digit % 10) as u8)
}

struct Date {
    year: u64,
    /// From 0.
    month: u64,
    /// From 1.
    day: u64,
}

/// The last date: the number of the day since 1970, the year, the month, the day.
static LAST: AtomicU64 = AtomicU64::new(u64::MAX);

impl Date {
    /// Returns the date of a day since 1970.
    fn of(day: u64) -> Date {
        let last = LAST.load(Relaxed); // Relaxed: a number that stands for itself.
        if last >> 32 == day {
            return Date {
                year: last >> 16 & 0xffff,
                month: last >> 8 & 0xff,
                day: last & 0xff,
            };
        }
        let date = Date::calculated(day);
        let word = day << 32 | date.year << 16 | date.month << 8 | date.day;
        LAST.store(word, Relaxed); // As above.
        date
    }

    /// Years begin in March here, so that a leap day is the last of its year; a cycle of the
    /// calendar has 400 years, and the first one here began in the year 0.
    #[cold]
    fn calculated(day: u64) -> Date {
        const CYCLE: u64 = 146_097;
        let day = day + 719_468;
        let (cycle, day) = (day / CYCLE, day % CYCLE);
        let year = (day - day / 1460 + day / 36_524 - day / (CYCLE - 1)) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        Date {
            year: 400 * cycle + year + u64::from(month >= 10),
            month: (month + 2) % 12,
            day: day - (153 * month + 2) / 5 + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn all_days_of_400_years_are_those_of_another_crate() {
        for day in 0..146_097 {
            let second = day * SECONDS_PER_DAY + day * 7919 % SECONDS_PER_DAY;
            let expected = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
            assert_eq!(format(second), expected.as_bytes(), "{expected}");
            assert_eq!(
                format(second),
                expected.as_bytes(),
                "{expected}, the same day"
            );
        }
        assert!(now().ends_with(b" GMT"));
    }
}

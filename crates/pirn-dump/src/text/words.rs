//! Numbers, times and waits in words.

use super::escape::{Plain, Quoted};
use crate::model::{Dump, LockKind, Thread, Wait, WaitKind};
use crate::names::Names;
use std::collections::HashMap;
use std::fmt::{self, Display};

/// A number with commas: `1,000,000`.
pub(crate) struct Count(pub u64);

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// A number and what it is the number of: `1 thread`, `2 threads`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!(
        "{} {what}{}",
        Count(count),
        if count == 1 { "" } else { "s" }
    )
}

/// A duration in nanoseconds: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 7 min`, `3 d 4 h`.
pub(crate) struct Duration(pub u64);

impl Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1_000_000_000;
        match seconds {
            0..10 => write!(f, "{}.{} s", seconds, self.0 / 100_000_000 % 10),
            10..60 => write!(f, "{seconds} s"),
            60..3600 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            3600..86400 => write!(f, "{} h {} min", seconds / 3600, seconds / 60 % 60),
            _ => write!(f, "{} d {} h", seconds / 86400, seconds / 3600 % 24),
        }
    }
}

/// A number of bytes: `512 B`, `1.5 MiB`.
pub(crate) struct Bytes(pub u64);

impl Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let unit = (u64::BITS - self.0.leading_zeros()).saturating_sub(1) / 10;
        let (whole, tenth) = if unit == 0 {
            (self.0, 0)
        } else {
            (
                self.0 >> (10 * unit),
                (self.0 >> (10 * (unit - 1))) % 1024 * 10 / 1024,
            )
        };
        match (unit, whole) {
            (1.., 0..10) => write!(f, "{whole}.{tenth} {}", units[unit as usize]),
            _ => write!(f, "{whole} {}", units[unit as usize]),
        }
    }
}

/// A time in nanoseconds since 1970: `2026-11-22T14:00:00.123456789Z`.
pub(crate) struct Time(pub u64);

impl Time {
    /// Returns year, month and day, in the calendar that computers use for all times.
    fn date(&self) -> (u64, u64, u64) {
        // Days since the first of March of the year 0; years begin in March, so that the day that
        // some years lack is the last.
        let days = self.0 / 86_400_000_000_000 + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 {
            (month + 3, 0)
        } else {
            (month - 9, 1)
        };
        (era * 400 + year + next, month, day_of_month)
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let (seconds, nanos) = (self.0 / 1_000_000_000 % 86_400, self.0 % 1_000_000_000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z"
        )
    }
}

/// Names of threads by id.
pub(crate) struct People<'a>(HashMap<u64, &'a Thread>);

impl<'a> People<'a> {
    pub fn of(dump: &'a Dump) -> People<'a> {
        People(
            dump.threads
                .iter()
                .map(|thread| (thread.id, thread))
                .collect(),
        )
    }

    /// `#12 "name"`, or `#12` if it has no name.
    pub fn called(&self, id: u64) -> String {
        match self.0.get(&id).and_then(|thread| thread.name.as_deref()) {
            Some(name) => format!("#{id} {}", Quoted(name)),
            None => format!("#{id}"),
        }
    }
}

/// What a group waits for, or an empty text: `to read from a descriptor`.
pub(crate) fn kind(wait: WaitKind) -> &'static str {
    match wait {
        WaitKind::None => "",
        WaitKind::Lock(LockKind::Futex) => "for a futex",
        WaitKind::Lock(LockKind::Mutex) => "for a mutex",
        WaitKind::Lock(LockKind::RwLock) => "for a rwlock",
        WaitKind::Lock(LockKind::Condvar) => "for a condition variable",
        WaitKind::Lock(LockKind::Semaphore) => "for a semaphore",
        WaitKind::Lock(LockKind::Barrier) => "for a barrier",
        WaitKind::Lock(LockKind::Once) => "for an initialization",
        WaitKind::Lock(LockKind::File) => "for a lock on a file",
        WaitKind::Read => "to read from a descriptor",
        WaitKind::Write => "to write to a descriptor",
        WaitKind::Poll => "for one of several descriptors",
        WaitKind::Sleep => "for a point in time",
        WaitKind::Park => "for an unpark",
        WaitKind::Join => "for a thread to end",
        WaitKind::Scope => "for a scope's subtasks",
        WaitKind::Child => "for a child process",
        WaitKind::Call => "for a call made by another thread",
        WaitKind::Signal => "for a signal",
        WaitKind::Other => "for something else",
    }
}

/// What one thread waits for, or an empty text: `fd 12, 127.0.0.1:80 - 10.0.0.1:4000`. `called`
/// says how to call other threads.
pub(crate) fn wait(wait: &Wait, called: &dyn Fn(u64) -> String, names: &Names) -> String {
    match wait {
        Wait::None => String::new(),
        Wait::Lock {
            address,
            what,
            owner,
            waiters,
        } => {
            let mut text = format!("{} {}", what.word(), place(*address, names));
            if let Some(owner) = owner {
                text += &format!(" held by {}", called(*owner));
            }
            if let Some(waiters) = waiters {
                text += &format!(", {} waiting", Count(u64::from(*waiters)));
            }
            text
        }
        Wait::Descriptor { fd, write, ends } => {
            let mut text = format!("{} fd {fd}", if *write { "write" } else { "read" });
            if let Some(ends) = ends {
                text += &format!(", {}", Plain(ends.local.as_bytes()));
                if !ends.peer.is_empty() {
                    text += &format!(" - {}", Plain(ends.peer.as_bytes()));
                }
            }
            text
        }
        Wait::Poll { fds } => format!("poll of {}", counted(u64::from(*fds), "descriptor")),
        Wait::Sleep => "sleep".to_string(),
        Wait::Park => "park".to_string(),
        Wait::Join { thread } => format!("join {}", called(*thread)),
        Wait::Scope { id } => format!("join scope {id}"),
        Wait::Child { pid } => format!("child process {pid}"),
        Wait::Call { name } => format!("call {}", Plain(name.as_bytes())),
        Wait::Signal => "signal".to_string(),
        Wait::Other => "other".to_string(),
    }
}

/// What a thread works for, the outermost first: `"orders" > "Buy"`.
pub(crate) fn works_for(thread: &Thread) -> String {
    let names = thread.works_for.iter();
    let quoted: Vec<String> = names
        .map(|name| Quoted(name.as_bytes()).to_string())
        .collect();
    quoted.join(" > ")
}

/// An address, and the variable there if it is known: `0x5010 (server::CACHE)`.
pub(crate) fn place(address: u64, names: &Names) -> String {
    match names.variable(address) {
        Some(name) => format!("{address:#x} ({})", Plain(name.as_bytes())),
        None => format!("{address:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        let shown = [0, 999, 1_000, 12_345, 1_000_000].map(|count| Count(count).to_string());
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,000,000"]);
        assert_eq!(
            counted(1, "thread") + &counted(2, "thread"),
            "1 thread2 threads"
        );
    }

    #[test]
    fn durations_have_two_units_at_most() {
        let second = 1_000_000_000;
        let shown = [
            second / 2,
            12 * second,
            185 * second,
            7620 * second,
            300_000 * second,
        ];
        let shown = shown.map(|nanos| Duration(nanos).to_string());
        assert_eq!(
            shown,
            ["0.5 s", "12 s", "3 min 5 s", "2 h 7 min", "3 d 11 h"]
        );
    }

    #[test]
    fn sizes_have_units() {
        let shown =
            [0, 1023, 1536, 10 << 20, 3 << 30, u64::MAX].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(
            shown,
            ["0 B", "1023 B", "1.5 KiB", "10 MiB", "3.0 GiB", "15 EiB"]
        );
    }

    #[test]
    fn times_are_those_of_date() {
        // date -u -d @SECONDS +%FT%TZ
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_798_761_599, "2026-12-31T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            let time = Time(seconds * 1_000_000_000 + 1).to_string();
            assert_eq!(time, format!("{date}.000000001Z"));
        }
        assert!(Time(u64::MAX).to_string().starts_with("2554-07-21T"));
    }
}

//! What a parked thread waits for.

use std::fmt;

/// The names of the kinds: `crates/pirn-rt/src/vthread/wait_reason.rs` has their numbers.
const KINDS: [&str; 20] = [
    "park",
    "futex",
    "mutex",
    "rwlock to read",
    "rwlock to write",
    "condvar",
    "semaphore",
    "barrier",
    "once",
    "file lock",
    "read",
    "write",
    "poll",
    "sleep",
    "park",
    "join",
    "scope",
    "child",
    "call",
    "signal",
];

/// What a parked thread waits for, as its record has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited(pub u64);

impl Awaited {
    /// Returns the kind of wait in words, without the object.
    pub fn kind(self) -> &'static str {
        KINDS.get(usize::from(self.0 as u8)).unwrap_or(&"something")
    }

    /// Returns the object's address, descriptor or number.
    pub fn argument(self) -> u64 {
        self.0 >> 16
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let argument = self.argument();
        match self.kind() {
            kind @ ("sleep" | "park" | "signal" | "call" | "something") => f.write_str(kind),
            kind @ ("read" | "write" | "file lock") => write!(f, "{kind}: descriptor {argument}"),
            "poll" => write!(f, "poll: {argument} descriptors"),
            kind @ ("join" | "scope" | "child") => write!(f, "{kind} {}", argument as u32 as i32),
            kind => write!(f, "{kind} {argument:#x}"),
        }
    }
}

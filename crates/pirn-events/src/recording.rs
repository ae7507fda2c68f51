//! What is in a recording.

use std::collections::BTreeMap;

/// What a process has written: the contents of its rings, and what explains them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The process's number, as it sees it.
    pub pid: u32,
    /// The path of its program.
    pub program: Vec<u8>,
    /// Why it has written the recording, in words.
    pub reason: String,
    /// Whether stamps are ticks of the processor's counter; otherwise they are nanoseconds.
    pub counter: bool,
    /// What the clocks showed at several moments.
    pub clocks: Vec<Clocks>,
    /// The carriers that have run, by number.
    pub carriers: BTreeMap<u32, Carrier>,
    /// The events from outside of carriers: first word, payload, detail, mounted thread, and the
    /// platform thread.
    pub outside: Vec<[u64; 5]>,
    /// The places at which threads were spawned, by address.
    pub places: BTreeMap<u64, Place>,
    /// The scopes that were open at the end.
    pub scopes: Vec<Scope>,
    /// The names of threads that were alive at the end.
    pub names: BTreeMap<u64, String>,
    /// The threads that were mounted at the end, by the numbers of their carriers.
    pub mounted: BTreeMap<u32, u64>,
    /// The number of slots and events that had been overwritten.
    pub lost: u64,
    /// Whether its end was there.
    pub complete: bool,
}

/// What the clocks showed at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// The clock of stamps.
    pub stamp: u64,
    /// The monotonic clock, in nanoseconds.
    pub monotonic: u64,
    /// Nanoseconds since 1970.
    pub real: u64,
}

/// What one carrier has written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carrier {
    /// The kernel's number of its platform thread.
    pub tid: u32,
    /// Its slots, in order.
    pub segments: Vec<Segment>,
}

/// Slots without a gap between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The index of the first slot.
    pub first: u64,
    /// The number of slots before it that had been overwritten.
    pub lost: u64,
    /// The slots.
    pub slots: Vec<[u64; 2]>,
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, as the compiler knows it.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
}

/// A scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Its number.
    pub id: u64,
    /// The scope around it; 0: none.
    pub parent: u64,
    /// The thread that opened it.
    pub owner: u64,
    /// Its name, or an empty one.
    pub name: String,
}

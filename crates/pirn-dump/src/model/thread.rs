//! Threads, their stacks, groups and scopes.

use super::wait::{Wait, WaitKind};

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its id, which no other thread of the process ever has.
    pub id: u64,
    /// Its name, which need not be UTF-8.
    pub name: Option<Vec<u8>>,
    /// Its state.
    pub state: State,
    /// What it waits for.
    pub wait: Wait,
    /// When it stops waiting, whatever happens.
    pub until: Option<u64>,
    /// Its stack: an index into [`Dump::stacks`](super::Dump::stacks). None if it has none yet, or
    /// could not be looked at.
    pub stack: Option<u32>,
    /// Where it was spawned: an index into [`Dump::places`](super::Dump::places).
    pub place: Option<u32>,
    /// The id of the scope that it is a subtask of.
    pub scope: Option<u64>,
    /// The number of the carrier that it is mounted on.
    pub carrier: Option<u32>,
    /// How often it has been mounted: wraps around after 2^32.
    pub mounts: u64,
    /// When a dump first saw it with this number of mounts: it has waited at least since then.
    pub unmoved_since: Option<u64>,
    /// Whether it has been interrupted, and has not heard of it.
    pub interrupted: bool,
    /// Whether it is virtual, and not a platform thread.
    pub is_virtual: bool,
    /// How much of its stack it used when looked at, in bytes.
    pub stack_bytes: Option<u32>,
    /// What it works for, by the names that the program has given, outermost first.
    pub works_for: Vec<String>,
}

/// The state of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// Spawned, and not run yet.
    #[default]
    New = 0,
    /// In a queue.
    Runnable = 1,
    /// On a carrier.
    Running = 2,
    /// Waiting for something.
    Waiting = 3,
    /// Ended, and still there.
    Ended = 4,
}

impl State {
    /// All states, in the order of their numbers.
    pub const ALL: [State; 5] = [
        State::New,
        State::Runnable,
        State::Running,
        State::Waiting,
        State::Ended,
    ];

    /// Returns the state in a word: `new`, `runnable`, `running`, `waiting` or `ended`.
    pub fn word(self) -> &'static str {
        ["new", "runnable", "running", "waiting", "ended"][self as usize]
    }

    /// Returns the state that [`word`](State::word) names.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(pirn_dump::State::named("waiting"), Some(pirn_dump::State::Waiting));
    /// ```
    pub fn named(word: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// The place in the source where a thread was spawned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The path of the file, as the compiler was given it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// The calls that threads were in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stack {
    /// Program counters in the process, innermost first: addresses that calls return to.
    pub frames: Vec<u64>,
    /// Whether the first is the address of an instruction that runs next, of a thread that was
    /// stopped, and not one that a call returns to.
    pub exact_first: bool,
    /// How it ends.
    pub end: End,
    /// How many frames, from the first on, are the runtime's own. They are hidden unless asked for.
    pub runtime_frames: u32,
}

/// How a stack ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum End {
    /// With the function that threads begin in.
    #[default]
    Complete = 0,
    /// There are more frames than a dump takes.
    TooDeep = 1,
    /// A frame has no unwind information, or a wrong one.
    Lost = 2,
    /// The thread ran while it was read: frames may be wrong.
    Unsure = 3,
    /// The thread was in the middle of a switch, and its stack could not be read.
    Switching = 4,
}

impl End {
    /// All kinds of ends, in the order of their numbers.
    pub const ALL: [End; 5] = [
        End::Complete,
        End::TooDeep,
        End::Lost,
        End::Unsure,
        End::Switching,
    ];

    /// Returns the end in a word: `complete`, `too-deep`, `lost`, `unsure` or `switching`.
    pub fn word(self) -> &'static str {
        ["complete", "too-deep", "lost", "unsure", "switching"][self as usize]
    }
}

/// Threads with the same stack, state, kind of wait, and place that they were spawned at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The stack: an index into [`Dump::stacks`](super::Dump::stacks). None if it could not be
    /// looked at.
    pub stack: Option<u32>,
    /// The state.
    pub state: State,
    /// The kind of thing that they wait for.
    pub wait: WaitKind,
    /// Whether they stop waiting at some time, whatever happens.
    pub timed: bool,
    /// Where they were spawned: an index into [`Dump::places`](super::Dump::places).
    pub place: Option<u32>,
    /// How many.
    pub count: u64,
    /// What all of them wait for, if it is the same: see [`Wait::object`].
    pub object: Option<u64>,
    /// The earliest [`Thread::unmoved_since`] of them.
    pub oldest: Option<u64>,
    /// At most three of them: indices into [`Dump::threads`](super::Dump::threads).
    pub examples: Vec<u32>,
}

/// An open scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Its id, which no other scope of the process ever has.
    pub id: u64,
    /// Its name.
    pub name: Option<String>,
    /// The id of the scope in which it was opened.
    pub parent: Option<u64>,
    /// The id of the thread that opened it.
    pub owner: Option<u64>,
    /// Whether it has been cancelled.
    pub cancelled: bool,
    /// How many subtasks have not ended. Those that are listed have its id in [`Thread::scope`].
    pub members: u64,
}

/// Something that the process noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// The kind, in words with hyphens: `wait-cycle`, `nothing-can-wake`.
    pub kind: String,
    /// One line for people.
    pub text: String,
    /// The threads that it is about, by id.
    pub threads: Vec<u64>,
}

//! The process: identity, numbers, carriers, modules, memory.

/// The process that a dump is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The process id as the process itself sees it: in a container, its id in the inner namespace.
    pub pid: u32,
    /// When it was started, in clock ticks since boot: field 22 of `/proc/self/stat`. Together with
    /// the pid it identifies the process.
    pub started: u64,
    /// The path of the program's file: what `/proc/self/exe` leads to.
    pub program: String,
    /// The version of pirn, such as `pirn 0.1.0`.
    pub version: String,
    /// When the dump was begun.
    pub begin: u64,
    /// When the last thread had been looked at.
    pub end: u64,
    /// How many virtual threads may run at once.
    pub parallelism: u32,
}

/// Numbers of virtual threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Threads started since the process began.
    pub started: u64,
    /// Threads ended since the process began.
    pub ended: u64,
    /// Threads that were looked at: the sum of the groups' counts.
    pub listed: u64,
    /// Of these, how many in each [`State`](super::State), by its number.
    pub by_state: [u64; 5],
    /// Threads without a stack yet, which are not in any group: spawned, but not run.
    pub unlisted_new: u64,
    /// Threads in the groups whose stack could not be read, because they ran or were about to each
    /// time they were looked at.
    pub unclaimed: u64,
    /// Threads that were left out because of a maximum.
    pub cut: u64,
}

impl Totals {
    /// Returns the number of threads that have been started and have not ended.
    pub fn alive(&self) -> u64 {
        self.started.saturating_sub(self.ended)
    }
}

/// A platform thread that runs virtual threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Its number, by which threads refer to it.
    pub number: u32,
    /// The operating system's id of the platform thread, as the process sees it; 0 if none holds
    /// the processor.
    pub tid: u32,
    /// What it is doing.
    pub state: CarrierState,
    /// The id of the virtual thread that it runs.
    pub thread: Option<u64>,
    /// Whether it was added because others were stuck.
    pub spare: bool,
}

/// What a carrier is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CarrierState {
    /// It runs a virtual thread, or is about to.
    Running = 0,
    /// It looks for work.
    Searching = 1,
    /// It waits for work.
    Sleeping = 2,
    /// The virtual thread that it runs has been in one call, or computing, for long.
    Stuck = 3,
}

impl CarrierState {
    /// All states, in the order of their numbers.
    pub const ALL: [CarrierState; 4] = [
        CarrierState::Running,
        CarrierState::Searching,
        CarrierState::Sleeping,
        CarrierState::Stuck,
    ];

    /// Returns the state in a word: `running`, `searching`, `sleeping` or `stuck`.
    pub fn word(self) -> &'static str {
        ["running", "searching", "sleeping", "stuck"][self as usize]
    }
}

/// One executable mapping of a file into the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// The file's path as the process sees it, byte for byte; without a `/` if it is no file, such
    /// as `linux-vdso.so.1`.
    pub path: Vec<u8>,
    /// The GNU build id; empty if it has none.
    pub build_id: Vec<u8>,
    /// What to subtract from an address in the process to get one in the file's symbol table.
    pub bias: u64,
    /// The first address of the module's code in the process.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// Where `start` is in the file, in bytes.
    pub offset: u64,
}

/// What the runtime uses memory for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The use, in words with hyphens: `stacks-reserved`.
    pub name: String,
    /// How much.
    pub bytes: u64,
}

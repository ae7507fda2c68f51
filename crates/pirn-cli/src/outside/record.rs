//! A thread's record.

use std::error::Error;
use std::rc::Rc;

use pirn_dump::{LockKind, State, Wait};

use super::arch;
use super::table::Table;

/// Where a record has what.
pub struct Fields {
    pub bytes: usize,
    pub id: usize,
    pub name: usize,
    pub mounted_on: usize,
    pub handshake: usize,
    pub sp: usize,
    pub tp: usize,
    pub mounts: Option<usize>,
    pub awaits: Option<usize>,
    pub until: Option<usize>,
    pub place: Option<usize>,
    pub scope: Option<usize>,
    pub saved_pc: u64,
    pub saved_bp: u64,
    pub saved_bytes: u64,
}

/// A record, as it was at one moment.
pub struct Record {
    pub bytes: Vec<u8>,
    pub fields: Rc<Fields>,
}

impl Fields {
    pub fn of(table: &Table) -> Result<Fields, Box<dyn Error>> {
        let get = |name: &str| {
            table
                .get(&format!("thread.{name}"))
                .map(|value| value as usize)
        };
        let maybe = |name: &str| {
            table
                .maybe(&format!("thread.{name}"))
                .map(|value| value as usize)
        };
        Ok(Fields {
            bytes: get("bytes")?.min(1 << 16),
            id: get("id")?,
            name: get("name")?,
            mounted_on: get("mounted_on")?,
            handshake: get("handshake")?,
            sp: get("sp")?,
            tp: get("tp")?,
            mounts: maybe("mounts"),
            awaits: maybe("awaits"),
            until: maybe("until"),
            place: maybe("place"),
            scope: maybe("scope"),
            saved_pc: table.get("saved.pc")?,
            saved_bp: table.get(arch::SAVED_BP)?,
            saved_bytes: table.get("saved.bytes")?,
        })
    }
}

impl Record {
    pub fn word(&self, at: usize) -> u64 {
        let bytes = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    pub fn number(&self, at: usize) -> u32 {
        self.word(at) as u32
    }

    pub fn id(&self) -> u64 {
        self.word(self.fields.id)
    }

    pub fn mounts(&self) -> u32 {
        self.fields.mounts.map_or(0, |at| self.number(at))
    }

    /// Returns what changes when the thread runs.
    pub fn moment(&self) -> (u64, u32, u64) {
        (self.id(), self.mounts(), self.word(self.fields.sp))
    }

    /// Returns whether the thread is not mounted.
    pub fn is_off_its_stack(&self) -> bool {
        self.number(self.fields.mounted_on) == 0
    }

    pub fn state(&self) -> State {
        const PARKED: [u32; 2] = [1, 3];
        match self.number(self.fields.handshake) {
            _ if !self.is_off_its_stack() => State::Running,
            parked if PARKED.contains(&parked) => State::Waiting,
            _ => State::Runnable,
        }
    }

    fn awaits(&self) -> u64 {
        self.fields.awaits.map_or(0, |at| self.word(at))
    }

    /// Returns the argument of the wait: an address, a number.
    pub fn argument(&self) -> u64 {
        self.awaits() >> 16
    }

    /// Returns when the wait ends at the latest, by the monotonic clock, if the program says so.
    pub fn until(&self) -> Option<u64> {
        const TIMED: u64 = 1 << 8;
        const LOOKS: u64 = 1 << 9; // The deadline is the runtime's own.
        let is_set = self.awaits() & (TIMED | LOOKS) == TIMED;
        self.fields.until.filter(|_| is_set).map(|at| self.word(at))
    }

    /// Returns what the thread waits for, without what is elsewhere.
    pub fn wait(&self) -> Wait {
        let argument = self.argument();
        let lock = |what| Wait::Lock {
            address: argument,
            what,
            owner: None,
            waiters: None,
        };
        let descriptor = |write| Wait::Descriptor {
            fd: argument as i32,
            write,
            ends: None,
        };
        match self.awaits() as u8 {
            1 => lock(LockKind::Futex),
            2 => lock(LockKind::Mutex),
            3 | 4 => lock(LockKind::RwLock),
            5 => lock(LockKind::Condvar),
            6 => lock(LockKind::Semaphore),
            7 => lock(LockKind::Barrier),
            8 => lock(LockKind::Once),
            9 => lock(LockKind::File),
            10 => descriptor(false),
            11 => descriptor(true),
            12 => Wait::Poll {
                fds: argument as u32,
            },
            13 => Wait::Sleep,
            14 => Wait::Park,
            15 => Wait::Join { thread: argument },
            16 => Wait::Scope { id: argument },
            17 => Wait::Child {
                pid: argument as i32,
            },
            18 => Wait::Call { name: "?".into() },
            _ => Wait::None,
        }
    }
}

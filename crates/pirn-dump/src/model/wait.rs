//! What a thread waits for.

use std::borrow::Cow;

/// What a thread waits for. When it gives up waiting is in [`Thread::until`](super::Thread::until).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Nothing, or it is not known.
    #[default]
    None,
    /// A lock, or something else in memory that threads wait at.
    Lock {
        /// Where it is in memory.
        address: u64,
        /// What it is.
        what: LockKind,
        /// The id of the thread that holds it, for locks that keep it.
        owner: Option<u64>,
        /// How many threads wait for it, with this one.
        waiters: Option<u32>,
    },
    /// That a descriptor becomes ready.
    Descriptor {
        /// Its number in the process.
        fd: i32,
        /// Whether the thread wants to write; otherwise to read, accept, and the like.
        write: bool,
        /// What is at its ends.
        ends: Option<Box<Ends>>,
    },
    /// That one of several descriptors becomes ready.
    Poll {
        /// How many.
        fds: u32,
    },
    /// A point in time, and nothing else.
    Sleep,
    /// Another thread's unpark.
    Park,
    /// The end of another thread.
    Join {
        /// Its id.
        thread: u64,
    },
    /// The end of a scope's subtasks.
    Scope {
        /// The scope's id.
        id: u64,
    },
    /// The end of a child process.
    Child {
        /// Its process id, or what `waitpid` takes in its place.
        pid: i32,
    },
    /// A call that a platform thread makes for it.
    Call {
        /// The function's name.
        name: Cow<'static, str>,
    },
    /// A signal.
    Signal,
    /// Something else.
    Other,
}

/// What is at the ends of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The socket's own address, or a file's path.
    pub local: String,
    /// The address of the other side, or an empty text.
    pub peer: String,
}

/// What a thread waits at, in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LockKind {
    /// A word that a futex call names: `std`'s locks and channels, `parking_lot`, and others.
    Futex = 0,
    /// A `pthread_mutex_t`.
    Mutex = 1,
    /// A `pthread_rwlock_t`.
    RwLock = 2,
    /// A `pthread_cond_t`.
    Condvar = 3,
    /// A `sem_t`.
    Semaphore = 4,
    /// A `pthread_barrier_t`.
    Barrier = 5,
    /// A `pthread_once_t`.
    Once = 6,
    /// A lock on a file or a part of it.
    File = 7,
}

impl LockKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [LockKind; 8] = [
        LockKind::Futex,
        LockKind::Mutex,
        LockKind::RwLock,
        LockKind::Condvar,
        LockKind::Semaphore,
        LockKind::Barrier,
        LockKind::Once,
        LockKind::File,
    ];

    /// Returns the kind in a word, such as `mutex`.
    pub fn word(self) -> &'static str {
        WaitKind::Lock(self).word()
    }
}

/// What threads of one group have in common in what they wait for: the kind, and not which one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// [`Wait::None`].
    #[default]
    None,
    /// [`Wait::Lock`].
    Lock(LockKind),
    /// [`Wait::Descriptor`], to read.
    Read,
    /// [`Wait::Descriptor`], to write.
    Write,
    /// [`Wait::Poll`].
    Poll,
    /// [`Wait::Sleep`].
    Sleep,
    /// [`Wait::Park`].
    Park,
    /// [`Wait::Join`].
    Join,
    /// [`Wait::Scope`].
    Scope,
    /// [`Wait::Child`].
    Child,
    /// [`Wait::Call`].
    Call,
    /// [`Wait::Signal`].
    Signal,
    /// [`Wait::Other`].
    Other,
}

impl WaitKind {
    /// All kinds.
    pub const ALL: [WaitKind; 20] = [
        WaitKind::None,
        WaitKind::Lock(LockKind::Futex),
        WaitKind::Lock(LockKind::Mutex),
        WaitKind::Lock(LockKind::RwLock),
        WaitKind::Lock(LockKind::Condvar),
        WaitKind::Lock(LockKind::Semaphore),
        WaitKind::Lock(LockKind::Barrier),
        WaitKind::Lock(LockKind::Once),
        WaitKind::Lock(LockKind::File),
        WaitKind::Read,
        WaitKind::Write,
        WaitKind::Poll,
        WaitKind::Sleep,
        WaitKind::Park,
        WaitKind::Join,
        WaitKind::Scope,
        WaitKind::Child,
        WaitKind::Call,
        WaitKind::Signal,
        WaitKind::Other,
    ];

    /// Returns the kind in a word, for people and for filters: `futex`, `read`, `sleep`.
    pub fn word(self) -> &'static str {
        match self {
            WaitKind::None => "none",
            WaitKind::Lock(LockKind::Futex) => "futex",
            WaitKind::Lock(LockKind::Mutex) => "mutex",
            WaitKind::Lock(LockKind::RwLock) => "rwlock",
            WaitKind::Lock(LockKind::Condvar) => "condvar",
            WaitKind::Lock(LockKind::Semaphore) => "semaphore",
            WaitKind::Lock(LockKind::Barrier) => "barrier",
            WaitKind::Lock(LockKind::Once) => "once",
            WaitKind::Lock(LockKind::File) => "file-lock",
            WaitKind::Read => "read",
            WaitKind::Write => "write",
            WaitKind::Poll => "poll",
            WaitKind::Sleep => "sleep",
            WaitKind::Park => "park",
            WaitKind::Join => "join",
            WaitKind::Scope => "scope",
            WaitKind::Child => "child",
            WaitKind::Call => "call",
            WaitKind::Signal => "signal",
            WaitKind::Other => "other",
        }
    }

    /// Returns the kind that [`word`](WaitKind::word) names.
    ///
    /// # Examples
    /// ```
    /// use pirn_dump::WaitKind;
    /// assert!(WaitKind::ALL.iter().all(|kind| WaitKind::named(kind.word()) == Some(*kind)));
    /// ```
    pub fn named(word: &str) -> Option<WaitKind> {
        WaitKind::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl Wait {
    /// Returns the kind of wait, by which threads are grouped.
    pub fn kind(&self) -> WaitKind {
        match self {
            Wait::None => WaitKind::None,
            Wait::Lock { what, .. } => WaitKind::Lock(*what),
            Wait::Descriptor { write: false, .. } => WaitKind::Read,
            Wait::Descriptor { write: true, .. } => WaitKind::Write,
            Wait::Poll { .. } => WaitKind::Poll,
            Wait::Sleep => WaitKind::Sleep,
            Wait::Park => WaitKind::Park,
            Wait::Join { .. } => WaitKind::Join,
            Wait::Scope { .. } => WaitKind::Scope,
            Wait::Child { .. } => WaitKind::Child,
            Wait::Call { .. } => WaitKind::Call,
            Wait::Signal => WaitKind::Signal,
            Wait::Other => WaitKind::Other,
        }
    }

    /// Returns a number that says which lock, descriptor, thread, scope or child it is.
    ///
    /// Threads that wait for the same have the same kind and the same number.
    pub fn object(&self) -> Option<u64> {
        match self {
            Wait::Lock { address, .. } => Some(*address),
            Wait::Descriptor { fd, .. } => Some(u64::from(fd.unsigned_abs())),
            Wait::Join { thread } => Some(*thread),
            Wait::Scope { id } => Some(*id),
            Wait::Child { pid } => Some(u64::from(pid.unsigned_abs())),
            _ => None,
        }
    }

    /// Returns the id of the thread that has to do something for the wait to end, if known: the
    /// lock's owner, or the thread that is joined.
    pub fn owner(&self) -> Option<u64> {
        match self {
            Wait::Lock { owner, .. } => *owner,
            Wait::Join { thread } => Some(*thread),
            _ => None,
        }
    }
}

//! What a thread waits for, in a word that others may read.
//!
//! ```text
//!   63                                  16 15         8 7          0
//!   +-------------------------------------+------------+------------+
//!   | argument: an address, a descriptor, | TIMED,     | kind       |
//!   | an id, a number                     | LOOKS      | ([`Kind`]) |
//!   +-------------------------------------+------------+------------+
//! ```
//!
//! A thread stores the word at the beginning of each wait, and leaves it there: it says something
//! as long as the thread is parked, so to a reader that has claimed the thread, or has found it
//! parked. One word, so that also a reader without a claim (a debugger, another process) sees kind
//! and argument of the same wait. 48 bits are enough: addresses of user space have 47, descriptors
//! and pids 31, and ids count up from 1.
//!
//! The deadline has a word of its own, which only waits with a deadline store.

use crate::time::{self, Deadline};
use core::cell::Cell;
use core::ffi::{CStr, c_char};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

/// What a thread can wait for, and the argument of each kind. Debuggers know the numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Nothing yet. No argument.
    Nothing = 0,
    /// A futex word: its address.
    Futex = 1,
    /// A `pthread_mutex_t`: its address.
    Mutex = 2,
    /// A `pthread_rwlock_t`, to read: its address.
    RwLockToRead = 3,
    /// A `pthread_rwlock_t`, to write: its address.
    RwLockToWrite = 4,
    /// A `pthread_cond_t`: its address.
    Condvar = 5,
    /// A `sem_t`: its address.
    Semaphore = 6,
    /// A `pthread_barrier_t`: its address.
    Barrier = 7,
    /// A `pthread_once_t`: its address.
    Once = 8,
    /// A lock on a file: the descriptor.
    FileLock = 9,
    /// To read from a descriptor, to accept a connection, and the like: the descriptor.
    Read = 10,
    /// To write to a descriptor, to connect: the descriptor.
    Write = 11,
    /// One of several descriptors: their number.
    Poll = 12,
    /// A point in time.
    Sleep = 13,
    /// The park permit, or a waker.
    Park = 14,
    /// The end of a virtual thread: its id.
    Join = 15,
    /// The end of all members of a scope: its id.
    Scope = 16,
    /// The end of a child process: its pid, or -1 for any.
    Child = 17,
    /// A call that another thread makes: the address of its name, which ends with a zero.
    Call = 18,
    /// Something of a scope that comes before the end of all its members, or need not wait for it:
    /// its id.
    ScopeEvent = 19,
}

impl Kind {
    const ALL: [Kind; 20] = [
        Kind::Nothing,
        Kind::Futex,
        Kind::Mutex,
        Kind::RwLockToRead,
        Kind::RwLockToWrite,
        Kind::Condvar,
        Kind::Semaphore,
        Kind::Barrier,
        Kind::Once,
        Kind::FileLock,
        Kind::Read,
        Kind::Write,
        Kind::Poll,
        Kind::Sleep,
        Kind::Park,
        Kind::Join,
        Kind::Scope,
        Kind::Child,
        Kind::Call,
        Kind::ScopeEvent,
    ];
}

/// What a thread waits for; see the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WaitReason(u64);

impl WaitReason {
    /// The number of bits below the argument.
    const SHIFT: u32 = 16;
    /// The wait has a deadline.
    const TIMED: u64 = 1 << 8;
    /// The deadlines of the wait are the runtime's: it looks again from time to time.
    const LOOKS: u64 = 1 << 9;

    /// Returns a wait of this kind.
    #[inline(always)]
    pub const fn new(kind: Kind, argument: u64) -> WaitReason {
        WaitReason(argument << WaitReason::SHIFT | kind as u64)
    }

    /// Returns the wait for an object in memory.
    #[inline(always)]
    pub fn at(kind: Kind, address: usize) -> WaitReason {
        WaitReason::new(kind, address as u64)
    }

    /// Returns the wait of this kind for a descriptor.
    #[inline(always)]
    pub fn descriptor(kind: Kind, fd: i32) -> WaitReason {
        WaitReason::new(kind, u64::from(fd as u32))
    }

    /// Returns the wait for a child process, by what `waitpid` takes.
    #[inline]
    pub fn child(pid: i32) -> WaitReason {
        WaitReason::new(Kind::Child, u64::from(pid as u32))
    }

    /// Returns the wait for a call that another thread makes.
    #[inline(always)]
    pub fn call(name: &'static CStr) -> WaitReason {
        WaitReason::at(Kind::Call, name.as_ptr().addr())
    }

    /// Returns the same wait, as one in which the runtime looks again from time to time.
    #[inline]
    pub const fn looking(self) -> WaitReason {
        WaitReason(self.0 | WaitReason::LOOKS)
    }

    /// Returns the number of the kind.
    #[inline(always)]
    pub(crate) fn index(self) -> u8 {
        self.0 as u8
    }

    /// Returns whether the runtime looks again from time to time, because the wait may end unseen.
    #[inline]
    pub fn looks_again(self) -> bool {
        self.0 & WaitReason::LOOKS != 0
    }

    /// Returns the kind.
    #[inline]
    pub fn kind(self) -> Kind {
        // Written by `new` only.
        Kind::ALL[usize::from(self.0 as u8) % Kind::ALL.len()]
    }

    /// Returns the word, for readers that know its layout.
    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// Returns the argument.
    #[inline]
    pub fn argument(self) -> u64 {
        self.0 >> WaitReason::SHIFT
    }

    /// Returns the argument of a kind that has a descriptor or a pid.
    #[inline]
    pub fn number(self) -> i32 {
        self.argument() as i32
    }

    /// Returns the name of the awaited call.
    #[inline]
    pub fn name(self) -> Option<&'static CStr> {
        let name = self.argument() as *const c_char;
        // SAFETY: from `call`, as the kind says.
        (self.kind() == Kind::Call).then(|| unsafe { CStr::from_ptr(name) })
    }
}

/// The two words of a thread, and its patience.
pub struct WaitInfo {
    what: AtomicU64,
    /// The deadline, in nanoseconds of the runtime's clock, if the wait has one.
    until: AtomicU64,
    /// When a thread that is overtaken again and again gets its turn at last, in [`coarse`] time;
    /// or one of the values below. Under the lock of the queue that the thread is in, or joins; or
    /// by its waker, which has claimed it.
    due: Cell<u64>,
    /// What the thread waited for before it queued up last. The thread's own.
    before: Cell<u64>,
}

impl WaitInfo {
    /// Where readers outside of the process find the two words.
    pub(crate) const OFFSETS: [usize; 2] =
        [offset_of!(WaitInfo, what), offset_of!(WaitInfo, until)];

    /// The thread has not been overtaken: its last wait was for another object.
    const NOT_OVERTAKEN: u64 = u64::MAX;
    /// The waker has given the thread its turn, and the thread has not waited since.
    const HANDED_OVER: u64 = u64::MAX - 1;
    /// A thread gets its turn when it has been overtaken for this many units of coarse time: two,
    /// since the first one has partly passed, so that it is at least one whole unit.
    const PATIENCE: u64 = 2;

    /// Returns the words of a thread that has not waited.
    #[inline]
    pub(crate) const fn new() -> WaitInfo {
        WaitInfo {
            what: AtomicU64::new(WaitReason::new(Kind::Nothing, 0).0),
            until: AtomicU64::new(0),
            due: Cell::new(WaitInfo::NOT_OVERTAKEN),
            before: Cell::new(0),
        }
    }

    /// Notes that the thread is about to queue up for an object; [`begin`](Self::begin) follows.
    /// Called by the thread.
    ///
    /// The thread has been overtaken if its last wait was for the same object, or the wait before
    /// that, as where a condition variable and its mutex take turns. If it got its turn in the last
    /// wait and now waits for another object, that object may be the mutex of a condition variable,
    /// which the signaller still holds: so the thread is due at once.
    #[inline(always)]
    pub(crate) fn queue_up(&self, reason: WaitReason) {
        let due = self.due.get();
        // Relaxed: the thread's own.
        let last = self.what.load(Ordering::Relaxed) & !WaitReason::TIMED;
        let again = last == reason.0 || self.before.replace(last) == reason.0;
        if last != reason.0 && due == WaitInfo::HANDED_OVER {
            self.due.set(0);
        } else if !again {
            self.due.set(WaitInfo::NOT_OVERTAKEN);
        } else if due >= WaitInfo::HANDED_OVER {
            self.due.set(time::coarse() + WaitInfo::PATIENCE);
        }
    }

    /// Returns whether the thread, which waits, has been overtaken for so long that it gets its
    /// turn now.
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        self.due.get() <= time::coarse()
    }

    /// Notes that the thread, which waits, has got its turn.
    #[inline]
    pub(crate) fn hand_over(&self) {
        self.due.set(WaitInfo::HANDED_OVER);
    }

    /// Notes that the thread, which waits, counts as overtaken from its next wait on. Its waker has
    /// just refused to give way: to ask again at each wake made a round trip through a channel a
    /// tenth longer.
    #[inline]
    pub(crate) fn begin_anew(&self) {
        self.due.set(WaitInfo::NOT_OVERTAKEN);
    }

    /// Notes what the thread is about to wait for, without a deadline. Called by the thread.
    #[inline(always)]
    pub fn begin(&self, reason: WaitReason) {
        // Relaxed: a reader that claims the thread does so after the thread has parked. Other
        // readers may see the word of an earlier wait.
        self.what.store(reason.0, Ordering::Relaxed);
    }

    /// Notes the deadline of the wait that has been begun. Called by the thread.
    #[inline]
    pub fn until(&self, deadline: Deadline) {
        // Relaxed: as in `begin`.
        self.until.store(deadline.nanos(), Ordering::Relaxed);
        let what = self.what.load(Ordering::Relaxed) | WaitReason::TIMED;
        self.what.store(what, Ordering::Relaxed);
    }

    /// Notes that the thread, which is parked, waits at another address from now on.
    #[inline]
    pub(crate) fn moved(&self, address: usize) {
        // Relaxed: as in `begin`; the caller holds the locks of both lists.
        let before = self.what.load(Ordering::Relaxed) & ((1 << WaitReason::SHIFT) - 1);
        let what = (address as u64) << WaitReason::SHIFT | before;
        self.what.store(what, Ordering::Relaxed);
    }

    /// Returns what the thread waits for, or waited for last.
    #[inline]
    pub fn what(&self) -> WaitReason {
        WaitReason(self.what.load(Ordering::Relaxed)) // Relaxed: as in `begin`.
    }

    /// Returns when the wait ends at the latest, by the runtime's clock, if it has a deadline that
    /// the program has set.
    #[inline]
    pub fn deadline(&self) -> Option<Deadline> {
        // Relaxed: as in `begin`.
        let what = self.what.load(Ordering::Relaxed);
        (what & (WaitReason::TIMED | WaitReason::LOOKS) == WaitReason::TIMED)
            .then(|| Deadline::from_nanos(self.until.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests;

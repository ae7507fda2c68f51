//! What threads wait for, in the words of a dump.
//!
//! A walker notes it under its claim of the thread ([`Noted::of`]): two words, and the owner of a
//! lock, which is read from the lock, because the thread keeps that there as long as it waits. The
//! rest comes later, when the thread may run again: a descriptor's addresses are asked for by its
//! number, so they may belong to another that has the number by then.
//!
//! * [`ends`]: what is at the ends of a descriptor.
//! * [`deadlocks`]: circles of waiting threads, and which thread probably holds a lock.
//!   [`standstill`]: whether anything can go on at all.

pub mod deadlocks;
pub(crate) mod ends;
pub mod standstill;

use crate::hooks::hooks;
use core::ffi::CStr;
use pirn_dump::{LockKind, Thread, Wait};
use pirn_rt::arch;
use pirn_rt::stack::Slot;
use pirn_rt::time::{self, Deadline};
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use pirn_rt::vthread::{Core, table};
use std::borrow::Cow;
use std::collections::HashMap;

/// What a thread waits for, as a walker has noted it.
#[derive(Clone, Copy)]
pub struct Noted {
    reason: WaitReason,
    deadline: Option<Deadline>,
    /// The id of the virtual thread that has the lock; 0: none has it, or it is not known.
    owner: u64,
    /// The thread waits for a lock of `std`, which keeps no owner.
    std_lock: bool,
}

/// Calls by which threads wait for signals.
const SIGNALS: [&CStr; 8] = [
    c"sigwait",
    c"sigwaitinfo",
    c"sigtimedwait",
    c"sigsuspend",
    c"__sigsuspend",
    c"sigpause",
    c"__sigpause",
    c"pause",
];

impl Noted {
    /// Notes what a parked thread waits for, which the caller has claimed. Does not allocate.
    pub fn of(core: &Core) -> Noted {
        let reason = core.wait_info.what();
        let lock = match reason.kind() {
            Kind::Mutex | Kind::RwLockToRead | Kind::RwLockToWrite => Some(reason),
            _ => None,
        };
        let owner = lock.and_then(|lock| owner(core, lock));
        Noted {
            reason,
            deadline: core.wait_info.deadline(),
            owner: owner.unwrap_or(0),
            std_lock: reason.kind() == Kind::Futex && is_std_lock(reason.argument() as usize),
        }
    }

    /// Returns the address of the word, if this is a wait for a lock of `std`.
    fn std_lock(&self) -> Option<u64> {
        self.std_lock.then(|| self.reason.argument())
    }

    /// Returns whether the program has set a deadline for the wait.
    pub fn is_timed(&self) -> bool {
        self.deadline.is_some()
    }

    /// Returns the deadline, if there is one, in nanoseconds since 1970.
    pub fn until(&self, clock: &WallClock) -> Option<u64> {
        self.deadline.map(|deadline| clock.at(deadline))
    }

    /// Returns the wait; with [what is at the ends](ends) of a descriptor, which takes some system
    /// calls. To be called when the thread is not claimed any more.
    pub fn wait(&self) -> Wait {
        let mut wait = self.plain();
        if let Wait::Descriptor { fd, ends, .. } = &mut wait {
            *ends = ends::of(*fd).map(Box::new);
        }
        wait
    }

    /// Returns the wait without asking the kernel for anything, and without allocating if the name
    /// of a call is valid.
    pub fn plain(&self) -> Wait {
        let reason = self.reason;
        match reason.kind() {
            kind @ (Kind::Read | Kind::Write) => Wait::Descriptor {
                fd: reason.number(),
                write: kind == Kind::Write,
                ends: None,
            },
            Kind::Poll => Wait::Poll {
                fds: reason.argument() as u32,
            },
            Kind::Sleep => Wait::Sleep,
            Kind::Park => Wait::Park,
            Kind::Join => Wait::Join {
                thread: reason.argument(),
            },
            Kind::Scope | Kind::ScopeEvent => Wait::Scope {
                id: reason.argument(),
            },
            Kind::Child => Wait::Child {
                pid: reason.number(),
            },
            Kind::Call if self.is_for_signal() => Wait::Signal,
            Kind::Call => Wait::Call {
                name: reason
                    .name()
                    .map_or(Cow::Borrowed(""), CStr::to_string_lossy),
            },
            Kind::Nothing => Wait::Other,
            kind => lock_kind(kind).map_or(Wait::Other, |what| Wait::Lock {
                address: reason.argument(), // or the descriptor
                what,
                owner: (self.owner != 0).then_some(self.owner),
                waiters: None,
            }),
        }
    }

    fn is_for_signal(&self) -> bool {
        self.reason.name().is_some_and(|n| SIGNALS.contains(&n))
    }
}

/// Returns the kind of an object in memory, or of a lock on a file.
fn lock_kind(kind: Kind) -> Option<LockKind> {
    Some(match kind {
        Kind::Futex => LockKind::Futex,
        Kind::Mutex => LockKind::Mutex,
        Kind::RwLockToRead | Kind::RwLockToWrite => LockKind::RwLock,
        Kind::Condvar => LockKind::Condvar,
        Kind::Semaphore => LockKind::Semaphore,
        Kind::Barrier => LockKind::Barrier,
        Kind::Once => LockKind::Once,
        Kind::FileLock => LockKind::File,
        _ => return None,
    })
}

/// Returns the id of the virtual thread that has the lock for which `waiter` waits.
///
/// The lock holds the number of the owner's slot. It is read again when the thread in that slot is
/// known: as long as the owner has the lock, the slot is its own.
fn owner(waiter: &Core, lock: WaitReason) -> Option<u64> {
    let address = lock.argument() as usize;
    let read = || (hooks().lock_owner)(lock.kind(), address).and_then(Slot::of_tid);
    let slot = read()?;
    let owner = match waiter.slot() == Some(slot) {
        true => Some(waiter.id()), // It is claimed, so no other thread can look at it.
        false => table::look(slot, Core::id),
    };
    owner.filter(|_| read() == Some(slot))
}

/// Returns whether a thread that waits at a word waits for a lock of `std` that is held: by the
/// word, or the one before it. Without the readers' bits: a thread that parks, as in a channel, has
/// all ones.
fn is_std_lock(word: usize) -> bool {
    /// A mutex that is held, and for which others wait.
    const MUTEX: u32 = 2;
    /// The holders of a read-write lock: all ones for a writer.
    const HOLDERS: u32 = (1 << 30) - 1;
    const READERS_WAIT: u32 = 1 << 30;
    /// Writers wait for the second word of a lock, and the first says so.
    const WRITERS_WAIT: u32 = 1 << 31;
    const WRITTEN: u32 = HOLDERS | READERS_WAIT;
    // SAFETY: there are threads, so the handler of faults is in place.
    let read = |address| unsafe { arch::fetch_u32(address) }.value as u32;
    match read(word) {
        MUTEX | WRITTEN => true,
        u32::MAX => false,
        _ => {
            let state = read(word - 4);
            state != u32::MAX && state & WRITERS_WAIT != 0 && state & HOLDERS != 0
        }
    }
}

/// The relation between the runtime's clock and the calendar.
pub struct WallClock {
    /// Nanoseconds since 1970 when the runtime's clock was at 0.
    zero: u64,
}

impl WallClock {
    /// Returns the relation at this moment.
    pub fn now() -> WallClock {
        WallClock {
            zero: time::clock(libc::CLOCK_REALTIME).saturating_sub(time::now()),
        }
    }

    pub fn at(&self, deadline: Deadline) -> u64 {
        self.zero.saturating_add(deadline.nanos())
    }
}

/// The most locks that are counted for: each thread may park on a futex of its own.
const MOST_LOCKS: usize = 1 << 16;

/// The numbers of threads that wait for locks.
#[derive(Default)]
pub(crate) struct Crowds {
    counts: HashMap<(LockKind, u64), u32>,
}

impl Crowds {
    /// Counts a thread.
    pub(crate) fn add(&mut self, noted: &Noted) {
        let Wait::Lock { address, what, .. } = noted.plain() else {
            return;
        };
        let room = self.counts.len() < MOST_LOCKS;
        match self.counts.get_mut(&(what, address)) {
            Some(count) => *count += 1,
            None if room => {
                self.counts.insert((what, address), 1);
            }
            None => {}
        }
    }

    /// Tells threads how many wait for the lock that they wait for, when all have been counted.
    pub(crate) fn count(&self, threads: &mut [Thread]) {
        for thread in threads {
            if let Wait::Lock {
                address,
                what,
                waiters,
                ..
            } = &mut thread.wait
            {
                *waiters = self.counts.get(&(*what, *address)).copied();
            }
        }
    }
}

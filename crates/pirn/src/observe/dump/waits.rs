//! What a thread waits for, in the words of a dump.

use crate::arch;
use crate::stack::Slot;
use crate::vthread::awaited::{Awaited, Kind};
use crate::vthread::residents;
use pirn_dump::{LockKind, Wait};

/// Returns what a thread waits for. Neither allocates, nor asks about other threads.
pub(super) fn of(awaited: Awaited) -> Wait {
    let lock = |what| Wait::Lock {
        address: awaited.argument(),
        what,
        owner: None,
        waiters: None,
    };
    let descriptor = |write| Wait::Descriptor {
        fd: awaited.number(),
        write,
        ends: None,
    };
    match awaited.kind() {
        Kind::Nothing => Wait::None,
        Kind::Futex => lock(LockKind::Futex),
        Kind::Mutex => lock(LockKind::Mutex),
        Kind::RwLockToRead | Kind::RwLockToWrite => lock(LockKind::RwLock),
        Kind::Condvar => lock(LockKind::Condvar),
        Kind::Semaphore => lock(LockKind::Semaphore),
        Kind::Barrier => lock(LockKind::Barrier),
        Kind::Once => lock(LockKind::Once),
        Kind::FileLock => lock(LockKind::File),
        Kind::Read => descriptor(false),
        Kind::Write => descriptor(true),
        Kind::Poll => Wait::Poll {
            fds: awaited.argument() as u32,
        },
        Kind::Sleep => Wait::Sleep,
        Kind::Park => Wait::Park,
        Kind::Join => Wait::Join {
            thread: awaited.argument(),
        },
        Kind::Scope => Wait::Scope {
            id: awaited.argument(),
        },
        Kind::Child => Wait::Child {
            pid: awaited.number(),
        },
        Kind::Call => Wait::Call {
            name: awaited
                .name()
                .and_then(|name| name.to_str().ok())
                .unwrap_or("?")
                .into(),
        },
    }
}

/// Finds out who holds a lock, if that is a virtual thread and the lock says so. The lock may be
/// gone by now, and then the answer is a guess of its memory's next owner.
pub(super) fn find_owner(wait: &mut Wait) {
    let Wait::Lock {
        address,
        what,
        owner,
        ..
    } = wait
    else {
        return;
    };
    // glibc's `__owner` and `__cur_writer`, a part of its ABI.
    let place = match what {
        LockKind::Mutex => *address + 8,
        LockKind::RwLock => *address + 24,
        _ => return,
    };
    // SAFETY: there is a thread, so the handler of faults is in place.
    let holder = unsafe { arch::fetch_u32(place as usize) };
    let slot = (holder.failed == 0).then(|| Slot::of_tid(holder.value as u32));
    *owner = slot
        .flatten()
        .and_then(|slot| residents::look(slot, |core| core.id()));
}

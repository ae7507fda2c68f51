//! What a thread waits for, in words.

use pirn_rt::vthread::awaited::{Awaited, Kind};

/// Returns what a thread waits for, to be read after "waits for".
pub(super) fn describe(awaited: Awaited) -> String {
    let address = awaited.argument();
    let number = awaited.number();
    match awaited.kind() {
        Kind::Nothing => "nothing that is known".into(),
        Kind::Futex => format!("a futex at {address:#x}"),
        Kind::Mutex => format!("a pthread mutex at {address:#x}"),
        Kind::RwLockToRead => format!("a pthread rwlock at {address:#x}, to read"),
        Kind::RwLockToWrite => format!("a pthread rwlock at {address:#x}, to write"),
        Kind::Condvar => format!("a pthread condition variable at {address:#x}"),
        Kind::Semaphore => format!("a semaphore at {address:#x}"),
        Kind::Barrier => format!("a pthread barrier at {address:#x}"),
        Kind::Once => format!("a pthread_once at {address:#x}"),
        Kind::FileLock => format!("a lock on the file of descriptor {number}"),
        Kind::Read => format!("descriptor {number}, to read"),
        Kind::Write => format!("descriptor {number}, to write"),
        Kind::Poll => format!("one of {number} descriptors"),
        Kind::Sleep => "a point in time".into(),
        Kind::Park => "its park permit".into(),
        Kind::Join => format!("the end of thread #{address}"),
        Kind::Scope => format!("the members of scope #{address}"),
        Kind::ScopeEvent => format!("something of scope #{address}"),
        Kind::Child if number < 0 => "any child process".into(),
        Kind::Child => format!("the child process {number}"),
        Kind::Call => match awaited.name() {
            Some(name) => format!("a call of {}", name.to_string_lossy()),
            None => "a call".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_put_in_words() {
        let calls = Awaited::call(c"fsync");
        assert_eq!(describe(calls), "a call of fsync");
        let child = Awaited::child(-1);
        assert_eq!(describe(child), "any child process");
        let mutex = Awaited::at(Kind::Mutex, 0x7f00);
        assert_eq!(describe(mutex), "a pthread mutex at 0x7f00");
    }
}

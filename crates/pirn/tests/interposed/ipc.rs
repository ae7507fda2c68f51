//! POSIX and System V message queues and semaphores.

use std::ffi::CString;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use libc::{c_int, c_long, mqd_t, timespec};

use super::{checked, nowhere, on_more_than_carriers};
use crate::common::{on_virtual, skip, watched};

/// Returns a queue for one message of eight bytes, or `None` if the kernel has no queues.
fn queue() -> Option<mqd_t> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    let name = CString::new(format!("/pirn-{}-{number}", std::process::id())).unwrap();
    // SAFETY: all zeros are valid attributes; a name and what its flags ask for.
    let queue = unsafe {
        let mut attributes: libc::mq_attr = std::mem::zeroed();
        attributes.mq_maxmsg = 1;
        attributes.mq_msgsize = 8;
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
        let queue = libc::mq_open(name.as_ptr(), flags, 0o600, &attributes);
        libc::mq_unlink(name.as_ptr());
        queue
    };
    if queue == -1 {
        skip("no POSIX message queues here");
        return None;
    }
    Some(queue)
}

fn in_future(time: Duration) -> timespec {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        + time;
    timespec {
        tv_sec: now.as_secs() as i64,
        tv_nsec: now.subsec_nanos().into(),
    }
}

fn receive(queue: mqd_t, time: *const timespec) -> Result<isize, i32> {
    let (mut message, mut priority) = ([0u8; 8], 0);
    // SAFETY: room for a message and its priority; a time or null.
    let result = unsafe {
        let message = message.as_mut_ptr().cast();
        if time.is_null() {
            libc::mq_receive(queue, message, 8, &mut priority)
        } else {
            libc::mq_timedreceive(queue, message, 8, &mut priority, time)
        }
    };
    if result == 3 {
        assert_eq!((&message[..3], priority), (b"abc".as_slice(), 5));
    }
    checked(result as i64).map(|n| n as isize)
}

fn send(queue: mqd_t, time: *const timespec) -> Result<c_int, i32> {
    let message = c"abc".as_ptr();
    // SAFETY: a message of three bytes; a time or null.
    checked(unsafe {
        if time.is_null() {
            libc::mq_send(queue, message, 3, 5)
        } else {
            libc::mq_timedsend(queue, message, 3, 5, time)
        }
    })
}

#[watched]
fn receiving_from_an_empty_queue() {
    let Some(queue) = queue() else { return };
    let late = in_future(Duration::from_secs(100));
    for time in [ptr::null(), &raw const late] {
        let time = time as usize;
        on_more_than_carriers(
            || assert_eq!(receive(queue, time as *const timespec), Ok(3)),
            || assert_eq!(send(queue, ptr::null()), Ok(0)),
        );
    }
    // SAFETY: ours.
    assert_eq!(unsafe { libc::mq_close(queue) }, 0);
}

#[watched]
fn sending_to_a_full_queue() {
    let Some(queue) = queue() else { return };
    let late = in_future(Duration::from_secs(100));
    for time in [ptr::null(), &raw const late] {
        let time = time as usize;
        assert_eq!(send(queue, ptr::null()), Ok(0));
        on_more_than_carriers(
            || assert_eq!(send(queue, time as *const timespec), Ok(0)),
            || assert_eq!(receive(queue, ptr::null()), Ok(3)),
        );
        assert_eq!(receive(queue, ptr::null()), Ok(3));
    }
    // SAFETY: ours.
    assert_eq!(unsafe { libc::mq_close(queue) }, 0);
}

#[watched]
fn queues_give_the_errors_of_the_kernel() {
    let Some(queue) = queue() else { return };
    let f = move || {
        let (past, soon) = (
            in_future(Duration::ZERO),
            in_future(Duration::from_millis(10)),
        );
        assert_eq!(receive(queue, &past), Err(libc::ETIMEDOUT));
        assert_eq!(receive(queue, &soon), Err(libc::ETIMEDOUT));
        let (tv_sec, tv_nsec) = (0, 1_000_000_000);
        let bad = timespec { tv_sec, tv_nsec };
        assert_eq!(receive(queue, &bad), Err(libc::EINVAL));
        assert_eq!(receive(queue, nowhere()), Err(libc::EFAULT));
        assert_eq!(receive(-1, ptr::null()), Err(libc::EBADF));
        assert_eq!(send(queue, ptr::null()), Ok(0));
        assert_eq!(send(queue, &soon), Err(libc::ETIMEDOUT));
        let set = |flags: c_long| {
            // SAFETY: all zeros are valid attributes.
            unsafe {
                let mut attributes: libc::mq_attr = std::mem::zeroed();
                attributes.mq_flags = flags;
                assert_eq!(libc::mq_setattr(queue, &attributes, ptr::null_mut()), 0);
            }
        };
        set(libc::O_NONBLOCK.into());
        assert_eq!(send(queue, ptr::null()), Err(libc::EAGAIN));
        assert_eq!(receive(queue, ptr::null()), Ok(3));
        assert_eq!(receive(queue, ptr::null()), Err(libc::EAGAIN));
        set(0);
    };
    f();
    on_virtual(f);
    // SAFETY: ours.
    assert_eq!(unsafe { libc::mq_close(queue) }, 0);
}

/// A System V object, removed at the end.
struct Object(c_int, fn(c_int));

impl Drop for Object {
    fn drop(&mut self) {
        self.1(self.0);
    }
}

/// A message in the format of `msgsnd`.
#[repr(C)]
struct Message {
    kind: c_long,
    text: [u8; 4096],
}

#[watched]
fn system_v_queues() {
    // SAFETY: no pointers.
    let queue = checked(unsafe { libc::msgget(libc::IPC_PRIVATE, 0o600) }).unwrap();
    let _queue = Object(queue, |queue| {
        // SAFETY: the command needs no buffer.
        unsafe { libc::msgctl(queue, libc::IPC_RMID, ptr::null_mut()) };
    });
    let send = |flags: c_int| {
        let (kind, text) = (7, [3; 4096]);
        let message = Message { kind, text };
        // SAFETY: a message of that length.
        checked(unsafe { libc::msgsnd(queue, (&raw const message).cast(), 4096, flags) })
    };
    let receive = |flags: c_int| {
        let (kind, text) = (0, [0; 4096]);
        let mut message = Message { kind, text };
        // SAFETY: room for a message of that length.
        let result = unsafe { libc::msgrcv(queue, (&raw mut message).cast(), 4096, 7, flags) };
        assert!(result != 4096 || message.kind == 7 && message.text == [3; 4096]);
        checked(result as i64)
    };
    let one_sent = || assert_eq!(send(0), Ok(0));
    let one_received = || assert_eq!(receive(0), Ok(4096));
    on_more_than_carriers(one_received, one_sent);
    let fill = || while send(libc::IPC_NOWAIT) == Ok(0) {};
    fill();
    on_more_than_carriers(one_sent, one_received);
    pirn::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(send(libc::IPC_NOWAIT), Err(libc::EAGAIN));
            while receive(libc::IPC_NOWAIT).is_ok() {}
            assert_eq!(receive(libc::IPC_NOWAIT), Err(libc::ENOMSG));
            // SAFETY: the kernel copes with any address.
            let bad = unsafe { libc::msgsnd(queue, nowhere(), 8, 0) };
            assert_eq!(checked(bad), Err(libc::EFAULT));
        });
    });
}

#[watched]
fn system_v_semaphores() {
    unsafe extern "C" {
        fn semtimedop(
            semaphores: c_int,
            operations: *mut libc::sembuf,
            count: usize,
            timeout: *const timespec,
        ) -> c_int;
    }
    // SAFETY: no pointers.
    let semaphore = checked(unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) }).unwrap();
    let _semaphore = Object(semaphore, |semaphore| {
        // SAFETY: the command needs no argument.
        unsafe { libc::semctl(semaphore, 0, libc::IPC_RMID) };
    });
    let change = |by: i16, timeout: Option<Duration>| {
        let (sem_num, sem_op, sem_flg) = (0, by, 0);
        let mut operation = libc::sembuf {
            sem_num,
            sem_op,
            sem_flg,
        };
        // SAFETY: one operation; a time.
        checked(unsafe {
            match timeout {
                None => libc::semop(semaphore, &mut operation, 1),
                Some(time) => {
                    let time = timespec {
                        tv_sec: time.as_secs() as i64,
                        tv_nsec: time.subsec_nanos().into(),
                    };
                    semtimedop(semaphore, &mut operation, 1, &time)
                }
            }
        })
    };
    for timeout in [None, Some(Duration::from_secs(100))] {
        on_more_than_carriers(
            || assert_eq!(change(-1, timeout), Ok(0)),
            || assert_eq!(change(1, None), Ok(0)),
        );
    }
    let soon = Some(Duration::from_millis(10));
    assert_eq!(change(-1, soon), Err(libc::EAGAIN));
    pirn::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(change(-1, soon), Err(libc::EAGAIN)));
    });
}

//! glibc's own names (`__read`, `__pthread_mutex_unlock`): their callers wait for, and wake, the
//! callers of the common names.

use std::cell::UnsafeCell;
use std::ffi::CString;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{io, mem, ptr};

use libc::{
    c_char, c_int, c_void, fd_set, nfds_t, pollfd, pthread_key_t, pthread_mutex_t, pthread_once_t,
    pthread_rwlock_t, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval,
};

use super::{checked, on_more_than_carriers};
use crate::common::{TempDir, block_then, migrate, most_carriers, on_virtual, watched};
use pirn::thread;

unsafe extern "C" {
    fn __read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t;
    fn __write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t;
    fn __close(fd: c_int) -> c_int;
    fn __pipe(fds: *mut c_int) -> c_int;
    fn __dup2(fd: c_int, new: c_int) -> c_int;
    fn __poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    fn __select(
        count: c_int,
        read: *mut fd_set,
        write: *mut fd_set,
        except: *mut fd_set,
        timeout: *mut timeval,
    ) -> c_int;
    fn __connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    fn __send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t;
    fn __open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn __open64(path: *const c_char, flags: c_int, ...) -> c_int;
    fn __fcntl(fd: c_int, command: c_int, ...) -> c_int;
    fn __nanosleep(request: *const timespec, remaining: *mut timespec) -> c_int;
    fn __sched_yield() -> c_int;
    fn pthread_yield() -> c_int;
    fn __waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn __pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int;
    fn __pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int;
    fn __pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int;
    fn pthread_mutex_consistent_np(mutex: *mut pthread_mutex_t) -> c_int;
    fn __pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int;
    fn __pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int;
    fn __pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int;
    fn __pthread_once(control: *mut pthread_once_t, routine: extern "C" fn()) -> c_int;
    fn __pthread_key_create(
        key: *mut pthread_key_t,
        destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> c_int;
    fn __pthread_setspecific(key: pthread_key_t, value: *const c_void) -> c_int;
    fn __pthread_getspecific(key: pthread_key_t) -> *mut c_void;
}

/// A C object that threads share.
struct Shared<T>(UnsafeCell<T>);
// SAFETY: C's locks are made to be shared.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn new(value: T) -> Shared<T> {
        Shared(UnsafeCell::new(value))
    }

    fn get(&self) -> *mut T {
        self.0.get()
    }
}

/// Returns the two ends of a pipe, made by `__pipe`.
fn pipe() -> [c_int; 2] {
    let mut ends = [0; 2];
    // SAFETY: room for two.
    assert_eq!(unsafe { __pipe(ends.as_mut_ptr()) }, 0);
    ends
}

fn close(ends: [c_int; 2]) {
    // SAFETY: the callers use them no more.
    let _ = ends.map(|fd| assert_eq!(unsafe { __close(fd) }, 0));
}

fn read_one(fd: c_int) {
    let mut byte = 0u8;
    // SAFETY: room for one.
    assert_eq!(unsafe { __read(fd, (&raw mut byte).cast(), 1) }, 1);
}

fn write_one(fd: c_int) {
    // SAFETY: one byte.
    assert_eq!(unsafe { __write(fd, b"x".as_ptr().cast(), 1) }, 1);
}

#[watched]
fn reading() {
    let [reader, writer] = pipe();
    on_more_than_carriers(|| read_one(reader), || write_one(writer));
    close([reader, writer]);
}

#[watched]
fn polling() {
    let [reader, writer] = pipe();
    let wait = || {
        let (fd, events, revents) = (reader, libc::POLLIN, 0);
        let mut poll = pollfd {
            fd,
            events,
            revents,
        };
        // SAFETY: one pollfd.
        assert_eq!(checked(unsafe { __poll(&mut poll, 1, -1) }), Ok(1));
        read_one(reader);
    };
    on_more_than_carriers(wait, || write_one(writer));
    close([reader, writer]);
}

#[watched]
fn selecting() {
    let [reader, writer] = pipe();
    let wait = || {
        // SAFETY: all zeros is an empty set, for descriptors below 1024.
        let count = unsafe {
            let mut set: fd_set = mem::zeroed();
            libc::FD_SET(reader, &mut set);
            let none = ptr::null_mut();
            __select(reader + 1, &mut set, none, none, ptr::null_mut())
        };
        assert_eq!(checked(count), Ok(1));
        read_one(reader);
    };
    on_more_than_carriers(wait, || write_one(writer));
    close([reader, writer]);
}

#[watched]
fn sleeping_and_yielding() {
    let wait = || {
        let time = timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        // SAFETY: a valid timespec.
        assert_eq!(unsafe { __nanosleep(&time, ptr::null_mut()) }, 0);
        // SAFETY: no arguments.
        let results = unsafe { (__sched_yield(), pthread_yield(), libc::sched_yield()) };
        assert_eq!(results, (0, 0, 0));
    };
    on_more_than_carriers(wait, || ());
}

#[watched]
fn closing_wakes_who_reads() {
    let [reader, writer] = pipe();
    let read = || {
        let mut byte = 0u8;
        // SAFETY: room for one. No other file takes the number: `/dev/null` gets it, below.
        let result = unsafe { __read(reader, (&raw mut byte).cast(), 1) };
        // A thread that is too late to wait reads the end of that file.
        assert!(matches!(checked(result as i64), Err(libc::EBADF) | Ok(0)));
    };
    block_then(
        most_carriers() + 4,
        |_| read(),
        || {
            thread::sleep(std::time::Duration::from_millis(50));
            let null = std::fs::File::open("/dev/null").unwrap();
            // SAFETY: this test's own descriptor.
            assert_eq!(unsafe { __dup2(null.as_raw_fd(), reader) }, reader);
        },
    );
    close([reader, writer]);
}

#[watched]
fn sending() {
    const LENGTH: usize = 1 << 20; // more than the socket holds
    let pairs: Vec<_> = (0..=most_carriers() + 4)
        .map(|_| UnixStream::pair().unwrap())
        .collect();
    let (sending, receiving) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let send = || {
        let (socket, _) = &pairs[sending.fetch_add(1, Ordering::SeqCst)];
        let data = vec![7u8; LENGTH];
        // SAFETY: a buffer of that length.
        let sent = unsafe { __send(socket.as_raw_fd(), data.as_ptr().cast(), LENGTH, 0) };
        assert_eq!(checked(sent as i64), Ok(LENGTH as i64));
    };
    let receive = || {
        let (_, socket) = &pairs[receiving.fetch_add(1, Ordering::SeqCst)];
        io::Read::read_exact(&mut &*socket, &mut vec![0; LENGTH]).unwrap();
    };
    on_more_than_carriers(send, receive);
}

#[watched]
fn connecting() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    for connect in [__connect, libc::connect] {
        on_more_than_carriers(
            || connect_by(connect, &listener),
            || drop(listener.accept().unwrap()),
        );
    }
}

type Connect = unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int;

fn connect_by(connect: Connect, listener: &TcpListener) {
    let port = listener.local_addr().unwrap().port();
    // SAFETY: no pointers, then an address and its length, then a descriptor of ours.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        let mut address: libc::sockaddr_in = mem::zeroed();
        address.sin_family = libc::AF_INET as u16;
        address.sin_port = port.to_be();
        address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        let length = size_of_val(&address) as socklen_t;
        assert_eq!(
            checked(connect(fd, (&raw const address).cast(), length)),
            Ok(0)
        );
        assert_eq!(__close(fd), 0);
    }
}

#[watched]
fn opening_what_waits_for_the_other_side() {
    let folder = TempDir::new("aliases");
    for open in [__open, __open64] {
        let path = folder.join("fifo");
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: a path.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let wait = || {
            // SAFETY: a path, and flags that need no mode.
            let fd = unsafe { open(name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
            assert!(checked(fd).is_ok());
            // SAFETY: just opened.
            assert_eq!(unsafe { __close(fd) }, 0);
        };
        let writers = Mutex::new(Vec::new());
        let release = || {
            let mut writers = writers.lock().unwrap();
            if writers.is_empty() {
                let writer = std::fs::File::options().read(true).write(true).open(&path);
                writers.push(writer.unwrap()); // one lets all readers in, and is there for the last
            }
        };
        on_more_than_carriers(wait, release);
        std::fs::remove_file(&path).unwrap();
    }
}

#[watched]
fn locking_files() {
    let folder = TempDir::new("aliases");
    let path = folder.join("locked");
    let file = std::fs::File::create(&path).unwrap();
    let lock = |fd: c_int, kind: c_int| {
        // SAFETY: all zeros is a valid `flock`: the whole file.
        let mut lock: libc::flock = unsafe { mem::zeroed() };
        lock.l_type = kind as i16;
        // SAFETY: the command takes this structure.
        let result = unsafe { __fcntl(fd, libc::F_OFD_SETLKW, &lock) };
        assert_eq!(checked(result), Ok(0));
    };
    lock(file.as_raw_fd(), libc::F_WRLCK);
    let wait = |_| {
        let own = std::fs::File::options().write(true).open(&path).unwrap();
        lock(own.as_raw_fd(), libc::F_WRLCK);
    };
    let release = || lock(file.as_raw_fd(), libc::F_UNLCK);
    block_then(most_carriers() + 4, wait, release);
    wait(0);
}

#[watched]
fn waiting_for_children() {
    let children: Vec<_> = (0..=most_carriers() + 4)
        .map(|_| Command::new("cat").stdin(Stdio::piped()).spawn().unwrap())
        .collect();
    let pids: Vec<_> = children.iter().map(|child| child.id() as c_int).collect();
    let children = Mutex::new(children);
    let next = AtomicUsize::new(0);
    let wait = || {
        let (pid, mut status) = (pids[next.fetch_add(1, Ordering::SeqCst)], 1);
        // SAFETY: room for the status. The child is ours, and waited for only here.
        assert_eq!(checked(unsafe { __waitpid(pid, &mut status, 0) }), Ok(pid));
        assert_eq!(status, 0);
    };
    // The end of its input ends it. (`drop` does not wait for it.)
    on_more_than_carriers(wait, || drop(children.lock().unwrap().remove(0).stdin));
}

#[watched]
fn unlocking_a_mutex_wakes_virtual_threads() {
    let mutex = Shared::new(libc::PTHREAD_MUTEX_INITIALIZER);
    let count = Shared::new(0);
    // SAFETY: initialised; locked when it is unlocked, and when the count is touched.
    unsafe {
        assert_eq!(__pthread_mutex_lock(mutex.get()), 0);
        assert_eq!(__pthread_mutex_trylock(mutex.get()), libc::EBUSY);
        // It is not a robust one.
        assert_eq!(pthread_mutex_consistent_np(mutex.get()), libc::EINVAL);
        let wait = |_| {
            assert_eq!(__pthread_mutex_lock(mutex.get()), 0);
            *count.get() += 1;
            assert_eq!(__pthread_mutex_unlock(mutex.get()), 0);
        };
        // The thread that has locked it unlocks it: a platform thread.
        let (here, arrived) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..most_carriers() + 4 {
                let (here, wait) = (here.clone(), &wait);
                scope.spawn(move || {
                    here.send(()).unwrap();
                    wait(());
                });
            }
            (0..most_carriers() + 4).for_each(|_| arrived.recv().unwrap());
            thread::sleep(std::time::Duration::from_millis(20)); // so that most of them park
            assert_eq!(__pthread_mutex_unlock(mutex.get()), 0);
        });
        wait(());
        assert_eq!(*count.get(), most_carriers() + 5);
    }
}

#[watched]
fn unlocking_a_rwlock_wakes_virtual_threads() {
    let lock = Shared::new(libc::PTHREAD_RWLOCK_INITIALIZER);
    for take in [__pthread_rwlock_rdlock, __pthread_rwlock_wrlock] {
        // SAFETY: initialised; locked when it is unlocked.
        unsafe {
            assert_eq!(__pthread_rwlock_wrlock(lock.get()), 0);
            let (here, arrived) = std::sync::mpsc::channel();
            thread::scope(|scope| {
                for _ in 0..most_carriers() + 4 {
                    let (here, lock) = (here.clone(), &lock);
                    scope.spawn(move || {
                        here.send(()).unwrap();
                        assert_eq!(take(lock.get()), 0);
                        assert_eq!(__pthread_rwlock_unlock(lock.get()), 0);
                    });
                }
                (0..most_carriers() + 4).for_each(|_| arrived.recv().unwrap());
                thread::sleep(std::time::Duration::from_millis(20)); // so that most of them park
                assert_eq!(__pthread_rwlock_unlock(lock.get()), 0);
            });
        }
    }
}

#[watched]
fn once_is_once_under_both_names() {
    static ONCE: Mutex<pthread_once_t> = Mutex::new(libc::PTHREAD_ONCE_INIT);
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn run() {
        thread::sleep(std::time::Duration::from_millis(20));
        RUNS.fetch_add(1, Ordering::SeqCst);
    }
    unsafe extern "C" {
        fn pthread_once(control: *mut pthread_once_t, routine: extern "C" fn()) -> c_int;
    }
    let control = Shared::new(&raw mut *ONCE.lock().unwrap());
    let wait = || {
        for once in [__pthread_once, pthread_once] {
            // SAFETY: a static.
            assert_eq!(unsafe { once(*control.get(), run) }, 0);
            assert_eq!(RUNS.load(Ordering::SeqCst), 1);
        }
    };
    on_more_than_carriers(wait, || ());
}

#[watched]
fn thread_specific_data_are_the_same_under_both_names() {
    static DESTROYED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn destroy(value: *mut c_void) {
        DESTROYED.fetch_add(value as usize, Ordering::SeqCst);
    }
    let mut key = 0;
    // SAFETY: room for the key.
    assert_eq!(unsafe { __pthread_key_create(&mut key, Some(destroy)) }, 0);
    let f = move || {
        // SAFETY: a valid key, and values that are only compared.
        unsafe {
            assert!(__pthread_getspecific(key).is_null());
            assert_eq!(__pthread_setspecific(key, 3 as *const c_void), 0);
            migrate();
            assert_eq!(libc::pthread_getspecific(key) as usize, 3);
            assert_eq!(libc::pthread_setspecific(key, 4 as *const c_void), 0);
            assert_eq!(__pthread_getspecific(key) as usize, 4);
        }
    };
    std::thread::spawn(f).join().unwrap();
    on_virtual(f);
    assert_eq!(DESTROYED.load(Ordering::SeqCst), 8);
}

/// `sigsuspend` and `sigpause` by all their names return when a handler has run on the thread.
#[watched]
fn waiting_for_a_handler() {
    unsafe extern "C" {
        fn __sigsuspend(mask: *const libc::sigset_t) -> c_int;
        fn sigpause(mask: c_int) -> c_int;
        fn __sigpause(mask_or_signal: c_int, is_signal: c_int) -> c_int;
        fn __xpg_sigpause(signal: c_int) -> c_int;
    }
    extern "C" fn handle(_: c_int) {}
    const SIGNAL: c_int = libc::SIGURG;
    crate::common::child::isolated(&[], || {
        // SAFETY: a handler that does nothing.
        unsafe { libc::signal(SIGNAL, handle as *const () as usize) };
        let f = |wait: fn() -> c_int| {
            assert_eq!(checked(wait()), Err(libc::EINTR));
        };
        let waits: [fn() -> c_int; 5] = [
            // SAFETY: an empty set of signals.
            || unsafe {
                let mut none: libc::sigset_t = mem::zeroed();
                libc::sigemptyset(&mut none);
                libc::sigsuspend(&none)
            },
            // SAFETY: an empty set of signals.
            || unsafe {
                let mut none: libc::sigset_t = mem::zeroed();
                libc::sigemptyset(&mut none);
                __sigsuspend(&none)
            },
            // SAFETY: no pointers.
            || unsafe { sigpause(0) },
            // SAFETY: no pointers.
            || unsafe { __sigpause(0, 0) },
            // SAFETY: no pointers.
            || unsafe { __xpg_sigpause(SIGNAL) },
        ];
        for wait in waits {
            let (sender, receiver) = std::sync::mpsc::channel();
            let waiting = thread::spawn(move || {
                // SAFETY: no arguments.
                sender.send(unsafe { libc::pthread_self() }).unwrap();
                f(wait);
            });
            let target = receiver.recv().unwrap();
            while !waiting.is_finished() {
                // SAFETY: a thread that has not been joined; the handler is in place.
                unsafe { libc::pthread_kill(target, SIGNAL) };
                thread::sleep(std::time::Duration::from_millis(1));
            }
            waiting.join().unwrap();
        }
    });
}

//! Waits for descriptors, points in time, threads, scopes, processes, calls, signals.

use super::{waits, when};
use crate::{scope, thread};
use pirn_dump::{LockKind, Wait};
use pirn_observe::waits::WallClock;
use pirn_rt::time::Deadline;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// Accepts a wait for this descriptor.
fn descriptor(fd: i32, write: bool) -> impl Fn(&Wait) -> bool {
    move |wait| matches!(wait, Wait::Descriptor { fd: f, write: w, .. } if (*f, *w) == (fd, write))
}

#[test]
fn reading_writing_and_accepting() {
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let fd = here.as_raw_fd();
    let reader = thread::spawn(move || here.read(&mut [0]).unwrap());
    let noted = waits(&reader, descriptor(fd, false));
    let Wait::Descriptor {
        ends: Some(ends), ..
    } = noted.wait()
    else {
        panic!("no ends");
    };
    assert!(ends.local.starts_with("socket:["), "{ends:?}");
    there.write_all(b"x").unwrap();
    reader.join().unwrap();

    let (mut here, mut there) = UnixStream::pair().unwrap();
    let fd = here.as_raw_fd();
    let writer = thread::spawn(move || here.write_all(&vec![0; 4 << 20]).unwrap());
    waits(&writer, descriptor(fd, true));
    let mut all = Vec::new();
    there.read_to_end(&mut all).unwrap();
    writer.join().unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (fd, address) = (listener.as_raw_fd(), listener.local_addr().unwrap());
    let acceptor = thread::spawn(move || drop(listener.accept().unwrap()));
    let noted = waits(&acceptor, descriptor(fd, false));
    assert!(!noted.is_timed());
    match noted.wait() {
        Wait::Descriptor {
            ends: Some(ends), ..
        } => {
            assert_eq!(
                (ends.local, ends.peer),
                (address.to_string(), String::new())
            );
        }
        other => panic!("{other:?}"),
    }
    drop(std::net::TcpStream::connect(address).unwrap());
    acceptor.join().unwrap();
}

#[test]
fn a_read_with_a_timeout_has_a_deadline() {
    let (mut here, mut there) = UnixStream::pair().unwrap();
    here.set_read_timeout(Some(HOUR)).unwrap();
    let fd = here.as_raw_fd();
    let reader = thread::spawn(move || here.read(&mut [0]).unwrap());
    assert!(waits(&reader, descriptor(fd, false)).is_timed());
    there.write_all(b"x").unwrap();
    reader.join().unwrap();
}

#[test]
fn polling() {
    let poll = |fds: Vec<i32>| {
        thread::spawn(move || {
            let wanted = |&fd: &i32| libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            };
            let mut polled: Vec<_> = fds.iter().map(wanted).collect();
            // SAFETY: as many as there are.
            unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 3_600_000) }
        })
    };
    let (one, mut other) = UnixStream::pair().unwrap();
    let fd = one.as_raw_fd();
    let two = poll(vec![fd, other.as_raw_fd()]);
    let noted = waits(&two, |wait| *wait == Wait::Poll { fds: 2 });
    assert!(noted.is_timed());
    let single = poll(vec![fd]);
    waits(&single, descriptor(fd, false));
    let none = poll(Vec::new());
    waits(&none, |wait| *wait == Wait::Sleep);
    other.write_all(b"x").unwrap();
    two.join().unwrap();
    single.join().unwrap();
    none.thread().interrupt();
    none.join().unwrap();

    // SAFETY: no pointers.
    let epoll = unsafe { libc::epoll_create1(0) };
    let waiter = thread::spawn(move || {
        // SAFETY: room for one event.
        unsafe {
            let mut event = std::mem::zeroed();
            libc::epoll_wait(epoll, &mut event, 1, -1)
        }
    });
    waits(&waiter, descriptor(epoll, false));
    waiter.thread().interrupt();
    waiter.join().unwrap();
    // SAFETY: our own.
    unsafe { libc::close(epoll) };
}

#[test]
fn sleeping_and_parking() {
    let clock = WallClock::now();
    let hour = || clock.at(Deadline::after(HOUR));
    let before = hour();
    let sleeper = thread::spawn(|| thread::sleep(HOUR));
    let noted = waits(&sleeper, |wait| *wait == Wait::Sleep);
    assert!((before..=hour()).contains(&noted.until(&clock).unwrap()));
    sleeper.thread().interrupt();
    sleeper.join().unwrap();

    let parked = thread::spawn(thread::park);
    let noted = waits(&parked, |wait| *wait == Wait::Park);
    assert_eq!(noted.until(&clock), None);
    parked.thread().unpark();
    parked.join().unwrap();

    let before = hour();
    let parked = thread::spawn(|| thread::park_timeout(HOUR));
    let noted = waits(&parked, |wait| *wait == Wait::Park);
    assert!((before..=hour()).contains(&noted.until(&clock).unwrap()));
    parked.thread().unpark();
    parked.join().unwrap();

    let driver = thread::spawn(|| crate::block_on_interruptible(std::future::pending::<()>()));
    waits(&driver, |wait| *wait == Wait::Park);
    driver.thread().interrupt();
    assert!(driver.join().unwrap().is_err());
}

#[test]
fn joining_threads() {
    let ends = thread::spawn(thread::park);
    let (thread, id) = (ends.thread().clone(), ends.thread().id().number());
    let joins = |wait: &Wait| *wait == Wait::Join { thread: id };
    let joiner = thread::spawn(|| ends.join().unwrap());
    assert!(!waits(&joiner, joins).is_timed());
    thread.unpark();
    joiner.join().unwrap();

    let ends = thread::spawn(thread::park);
    let (thread, id) = (ends.thread().clone(), ends.thread().id().number());
    let joins = |wait: &Wait| *wait == Wait::Join { thread: id };
    let joiner = thread::spawn(|| ends.join_timeout(HOUR).unwrap().unwrap());
    assert!(waits(&joiner, joins).is_timed());
    thread.unpark();
    joiner.join().unwrap();

    let (give, given) = mpsc::channel::<()>();
    let platform = std::thread::spawn(move || given.recv().is_err());
    let joiner = thread::spawn(|| platform.join().unwrap());
    let call = Wait::Call {
        name: "pthread_join".into(),
    };
    waits(&joiner, |wait| *wait == call);
    drop(give);
    assert!(joiner.join().unwrap());
}

#[test]
fn joining_scopes() {
    let (give, given) = mpsc::channel();
    let owner = thread::spawn(move || {
        scope::open_with(scope::await_all(), |s| {
            let parked = s.fork(thread::park_interruptible);
            give.send(parked.thread().unwrap()).unwrap();
            s.join()?;
            Ok(())
        })
        .unwrap();
    });
    let parked = given.recv().unwrap();
    let noted = waits(&owner, |wait| matches!(wait, Wait::Scope { .. }));
    let scope = noted.plain().object().unwrap();
    let open = scope::outlines();
    let (found, members) = open
        .iter()
        .find(|open| open.0.id.number() == scope)
        .unwrap();
    assert_eq!(found.owner.id(), owner.thread().id());
    assert_eq!((*members, found.cancelled), (1, false));
    assert_eq!(parked.as_virtual().unwrap().scope(), scope);
    parked.unpark();
    owner.join().unwrap();

    let (give, given) = mpsc::channel();
    let owner = thread::spawn(move || {
        thread::scope(|s| {
            let inner = s.spawn(thread::park);
            give.send(inner.thread().clone()).unwrap();
        });
    });
    let parked = given.recv().unwrap();
    let noted = waits(&owner, |wait| matches!(wait, Wait::Scope { .. }));
    assert_eq!(
        parked.as_virtual().unwrap().scope(),
        noted.plain().object().unwrap()
    );
    parked.unpark();
    owner.join().unwrap();
}

#[test]
fn child_processes() {
    let mut child = std::process::Command::new("sleep")
        .arg("3600")
        .spawn()
        .unwrap();
    let pid = child.id() as i32;
    let waiter = thread::spawn(move || child.wait().unwrap());
    waits(&waiter, |wait| *wait == Wait::Child { pid });
    // SAFETY: our own child, which has not been waited for.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    waiter.join().unwrap();
}

#[test]
fn calls_of_other_threads_and_signals() {
    let path = std::env::temp_dir().join(format!("pirn-waits-fifo-{}", std::process::id()));
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a path.
    unsafe { libc::mkfifo(name.as_ptr(), 0o600) };
    let fifo = path.clone();
    let opener = thread::spawn(move || drop(File::open(fifo).unwrap()));
    let open = Wait::Call {
        name: "open".into(),
    };
    let noted = waits(&opener, |wait| *wait == open);
    assert!(
        !noted.is_timed(),
        "the runtime looks again, and the program has set no deadline"
    );
    drop(File::options().write(true).open(&path).unwrap());
    opener.join().unwrap();
    std::fs::remove_file(path).unwrap();

    let waiter = thread::spawn(|| {
        // SAFETY: sets and times of our own.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGWINCH);
            let second = libc::timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            libc::sigtimedwait(&set, std::ptr::null_mut(), &second)
        }
    });
    waits(&waiter, |wait| *wait == Wait::Signal);
    waiter.join().unwrap();
}

#[test]
fn locks_on_files() {
    let path = std::env::temp_dir().join(format!("pirn-waits-lock-{}", std::process::id()));
    let (holds, wants) = (File::create(&path).unwrap(), File::open(&path).unwrap());
    holds.lock().unwrap();
    let fd = wants.as_raw_fd();
    let waiter = thread::spawn(move || wants.lock().unwrap());
    let noted = when(
        waiter.thread(),
        |wait| matches!(wait, Wait::Lock { address, what: LockKind::File, .. } if *address == fd as u64),
    );
    assert!(!noted.is_timed());
    holds.unlock().unwrap();
    waiter.join().unwrap();
    std::fs::remove_file(path).unwrap();
}

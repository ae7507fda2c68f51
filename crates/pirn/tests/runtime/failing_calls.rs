//! The runtime's own system calls fail, from the start or from some moment on: the program goes on,
//! or gets an error, or ends with one. It never hangs, and no byte is wrong.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, mpsc};
use std::time::Duration;
use std::{env, fs, io};

use crate::common::sys::{self, check};
use crate::common::{child, watched};
use crate::seccomp::{answer, install, load, unless_equal};
use libc::{EAGAIN, EINVAL, ENOMEM, ENOSPC, ENOSYS, EOPNOTSUPP, EPERM, c_long};
use pirn::thread::{self, Builder};

/// Calls that the runtime makes, and errors of theirs: what the kernel documents, and what seccomp
/// profiles answer.
const CALLS: [(c_long, &[i32]); 22] = [
    (libc::SYS_ppoll, &[EINVAL, ENOMEM, EPERM]),
    (libc::SYS_epoll_ctl, &[ENOMEM, ENOSPC, EPERM]),
    (libc::SYS_epoll_pwait2, &[ENOSYS, EPERM, EINVAL]),
    (libc::SYS_epoll_create1, &[ENOMEM, libc::EMFILE]),
    (libc::SYS_eventfd2, &[ENOMEM, libc::EMFILE]),
    (libc::SYS_fcntl, &[EPERM]),
    (libc::SYS_getsockopt, &[EPERM, libc::ENOBUFS]),
    (libc::SYS_preadv2, &[ENOSYS, EPERM, EOPNOTSUPP]),
    (libc::SYS_pwritev2, &[ENOSYS, EPERM, EOPNOTSUPP]),
    (libc::SYS_madvise, &[EINVAL, ENOMEM, EAGAIN]),
    (libc::SYS_mprotect, &[ENOMEM]),
    (libc::SYS_munmap, &[ENOMEM]),
    (libc::SYS_membarrier, &[ENOSYS, EPERM]),
    (libc::SYS_sched_getattr, &[ENOSYS, EPERM]),
    (libc::SYS_tgkill, &[EAGAIN, EPERM]),
    (libc::SYS_statx, &[ENOSYS, EPERM, ENOMEM]),
    (libc::SYS_openat2, &[ENOSYS, EPERM, EAGAIN]),
    (libc::SYS_pidfd_open, &[ENOSYS, EPERM]),
    (libc::SYS_prctl, &[EPERM]),
    (libc::SYS_nanosleep, &[EPERM]),
    (libc::SYS_sched_yield, &[ENOSYS]),
    (libc::SYS_sigaltstack, &[ENOMEM]),
];

/// The number with which the child ends if a thread could not be started.
const REFUSED: i32 = 3;

/// Answers a call with an error, in all threads.
fn fail(call: c_long, error: i32) {
    let filter = vec![load(0), unless_equal(call as u32, 1), answer(error)];
    install(filter, libc::SECCOMP_FILTER_FLAG_TSYNC);
}

/// Ends the process if a thread cannot be started.
fn start<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    Builder::new().spawn(f).unwrap_or_else(|error| {
        eprintln!("spawn: {error}");
        std::process::exit(REFUSED);
    })
}

fn echo(address: SocketAddr, byte: u8) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let sent = [byte; 300];
    stream.write_all(&sent)?;
    let mut received = [0; 300];
    stream.read_exact(&mut received)?;
    assert_eq!(received, sent);
    Ok(())
}

fn through_a_pipe() -> io::Result<()> {
    let (mut reader, mut writer) = io::pipe()?;
    let write = start(move || {
        thread::sleep(Duration::from_millis(1));
        writer.write_all(b"through a pipe")
    });
    let mut text = String::new();
    let read = reader.read_to_string(&mut text);
    write.join().unwrap()?;
    read?;
    assert_eq!(text, "through a pipe");
    Ok(())
}

/// Does one of several things that a thread may wait for.
fn wait_for_something(i: usize, address: SocketAddr) -> io::Result<()> {
    match i % 7 {
        0 => return echo(address, i as u8),
        1 => return through_a_pipe(),
        2 => thread::sleep(Duration::from_micros(300 * i as u64)),
        3 => {
            let (sender, receiver) = mpsc::channel();
            start(move || sender.send(i).unwrap());
            assert_eq!(receiver.recv(), Ok(i));
        }
        4 => assert!(fs::read("/proc/self/stat")?.len() > 10),
        5 => {
            let end = std::time::Instant::now() + Duration::from_millis(3);
            while std::time::Instant::now() < end {}
        }
        _ => {
            let (flag, changed) = (Mutex::new(()), Condvar::new());
            let limit = Duration::from_millis(2);
            let (_guard, over) = changed.wait_timeout(flag.lock().unwrap(), limit).unwrap();
            assert!(over.timed_out());
        }
    }
    Ok(())
}

fn serve(listener: &TcpListener) {
    // If it fails, the clients end as well, since their connections do.
    while let Ok((mut stream, _)) = listener.accept() {
        start(move || {
            let mut buffer = [0; 256];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                if stream.write_all(&buffer[..count]).is_err() {
                    return;
                }
            }
        });
    }
}

fn work(call: c_long, error: i32, later: bool) {
    let fail = || fail(call, error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    if later {
        start(move || wait_for_something(0, address).err());
        start(|| thread::sleep(Duration::from_millis(1)))
            .join()
            .unwrap();
    }
    let server = if later {
        let server = start(move || serve(&listener));
        fail();
        server
    } else {
        fail();
        start(move || serve(&listener))
    };
    static FAILED: AtomicUsize = AtomicUsize::new(0);
    let threads: Vec<_> = (0..28)
        .map(|i| {
            start(move || {
                if let Err(error) = wait_for_something(i, address) {
                    FAILED.fetch_add(1, SeqCst);
                    eprintln!("{i}: {error}");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    drop(server); // It waits for more.
    std::process::exit(0);
}

#[watched]
fn the_program_goes_on_or_gets_an_error() {
    if child::is_here() {
        let number = |name| env::var(name).unwrap().parse::<i64>().unwrap();
        work(number("CALL"), number("ERROR") as i32, number("LATER") == 1);
    }
    let each = CALLS
        .iter()
        .flat_map(|(call, errors)| errors.iter().map(move |e| (*call, *e)));
    let each = Vec::from_iter(each.flat_map(|(call, e)| [(call, e, 0), (call, e, 1)]));
    for (call, error, later) in each {
        let [call, error, later] = [call, error.into(), later].map(|it: i64| it.to_string());
        let output = child::run(&[("CALL", &call), ("ERROR", &error), ("LATER", &later)]);
        let text = String::from_utf8_lossy(&output.stderr);
        let ended = match output.status.code() {
            Some(0) => true,
            Some(REFUSED) => text.contains("spawn: "),
            _ => text.contains("pirn: fatal: "),
        };
        assert!(
            ended,
            "call {call}, error {error}, {later}: {}",
            child::report(&output)
        );
    }
}

/// With no descriptors to poll, the kernel refuses to poll any.
#[watched]
fn descriptors_are_waited_for_where_the_process_may_open_none() {
    child::isolated(&[], || {
        thread::spawn(|| ()).join().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (mut reader, mut writer) = io::pipe().unwrap();
        let address = listener.local_addr().unwrap();
        // SAFETY: no pointers.
        let socket = sys::own(unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) });
        let socket = socket.unwrap();
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: reads one `rlimit`.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &none) }).unwrap();
        let read = thread::spawn(move || reader.read(&mut [0]));
        let connect = thread::spawn(move || {
            let SocketAddr::V4(address) = address else {
                unreachable!()
            };
            let name = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from(*address.ip()).to_be(),
                },
                sin_zero: [0; 8],
            };
            let length = size_of_val(&name) as u32;
            let name = (&raw const name).cast();
            // SAFETY: an address of this length.
            check(unsafe { libc::connect(socket.as_raw_fd(), name, length) })
        });
        connect.join().unwrap().unwrap();
        let accepted = thread::spawn(move || listener.accept()).join().unwrap();
        assert_eq!(accepted.unwrap_err().raw_os_error(), Some(libc::EMFILE));
        thread::sleep(Duration::from_millis(1));
        writer.write_all(b"x").unwrap();
        assert_eq!(read.join().unwrap().unwrap(), 1);
    });
}

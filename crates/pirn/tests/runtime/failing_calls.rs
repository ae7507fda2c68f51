//! The runtime's own system calls fail, from the start or from some moment on: the program goes on,
//! or gets an error, or ends with one. It never hangs, and no byte is wrong.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, mpsc};
use std::time::Duration;
use std::{env, fs, io};

use crate::common::kernel::has_seccomp;
use crate::common::sys::{self, check};
use crate::common::{child, watched};
use crate::seccomp::{answer, install, load, unless_equal};
use libc::{
    EAGAIN, EINVAL, EIO, EMFILE, ENOBUFS, ENOMEM, ENOSPC, ENOSYS, EOPNOTSUPP, EPERM, c_int, c_long,
};
use pirn::thread::{self, Builder};
use pirn_rt::arch::legacy;

/// Calls that the runtime makes, each with the ones that take its place if it fails, and errors of
/// theirs: what the kernel documents, and what seccomp profiles answer.
///
/// `crates/pirn-api/tests/failing_calls.rs` looks whether a call is missing here.
const CALLS: &[(&[c_long], &[i32])] = &[
    (&[libc::SYS_ppoll], &[EINVAL, ENOMEM, EPERM]),
    (&[libc::SYS_ppoll, libc::SYS_pselect6], &[ENOMEM, EPERM]),
    (&[libc::SYS_epoll_ctl], &[ENOMEM, ENOSPC, EPERM]),
    (&[libc::SYS_epoll_pwait2], &[ENOSYS, EPERM, EINVAL]),
    (&[libc::SYS_epoll_pwait2, libc::SYS_epoll_pwait], &[EPERM]),
    (&[libc::SYS_epoll_create1], &[ENOMEM, EMFILE]),
    (&[libc::SYS_eventfd2], &[ENOMEM, EMFILE]),
    (&[libc::SYS_signalfd4], &[ENOMEM, EMFILE, EPERM]),
    (&[libc::SYS_rt_sigpending], &[ENOSYS, EPERM]),
    (&[libc::SYS_rt_sigtimedwait], &[ENOSYS, EPERM]),
    (&[libc::SYS_rt_sigqueueinfo], &[EAGAIN, EPERM]),
    (&[libc::SYS_rt_tgsigqueueinfo], &[EAGAIN, EPERM]),
    (&[libc::SYS_tgkill], &[EAGAIN, EPERM]),
    (&[libc::SYS_sigaltstack], &[ENOMEM]),
    (&[libc::SYS_fcntl], &[EPERM]),
    (&[libc::SYS_fstat], &[ENOSYS, EPERM]),
    (&[libc::SYS_fstatfs], &[ENOSYS, EPERM]),
    (&[libc::SYS_statx], &[ENOSYS, EPERM, ENOMEM]),
    (&[libc::SYS_openat], &[EMFILE, EPERM]),
    (&[libc::SYS_openat2], &[ENOSYS, EPERM, EAGAIN]),
    (&[libc::SYS_pidfd_open], &[ENOSYS, EPERM]),
    (&[libc::SYS_pread64], &[EIO, EPERM]),
    (&[libc::SYS_preadv2], &[ENOSYS, EPERM, EOPNOTSUPP]),
    (&[libc::SYS_pwritev2], &[ENOSYS, EPERM, EOPNOTSUPP]),
    (&[libc::SYS_close_range], &[ENOSYS, EPERM, ENOMEM]),
    (&[libc::SYS_getsockopt], &[EPERM, ENOBUFS]),
    (&[libc::SYS_mmap], &[ENOMEM, EPERM]),
    (&[libc::SYS_munmap], &[ENOMEM]),
    (&[libc::SYS_mprotect], &[ENOMEM]),
    (&[libc::SYS_madvise], &[EINVAL, ENOMEM, EAGAIN]),
    (&[libc::SYS_process_madvise], &[ENOSYS, EPERM, EINVAL]),
    (&[libc::SYS_mincore], &[ENOSYS, EPERM, EAGAIN]),
    (&[libc::SYS_membarrier], &[ENOSYS, EPERM]),
    (&[libc::SYS_sched_getattr], &[ENOSYS, EPERM]),
    (&[libc::SYS_sched_setattr], &[ENOSYS, EPERM]),
    (&[libc::SYS_sched_getaffinity], &[ENOSYS, EPERM]),
    (&[libc::SYS_sched_yield], &[ENOSYS]),
    (&[libc::SYS_nanosleep], &[EPERM]),
    (&[libc::SYS_clock_gettime], &[EPERM]),
    (&[libc::SYS_prctl], &[EPERM]),
    (&[legacy::ARCH_PRCTL], &[EINVAL, EPERM]),
    (&[libc::SYS_get_robust_list], &[ENOSYS, EPERM]),
    (&[libc::SYS_waitid], &[ENOSYS, EPERM]),
];

/// The number with which the child ends if a thread could not be started.
const REFUSED: i32 = 3;

/// Answers these calls with an error, in all threads.
fn fail(calls: &[c_long], error: i32) {
    let mut filter = vec![load(0)];
    for &call in calls {
        filter.extend([unless_equal(call as u32, 1), answer(error)]);
    }
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

/// The signal that all platform threads block.
const SIGNAL: c_int = libc::SIGUSR1;

/// Takes a signal to the process of which the runtime does not see that it is sent. One thread at a
/// time: the signal has no other taker, and no other call has the runtime look for it.
fn take_a_signal() {
    static TURN: Mutex<()> = Mutex::new(());
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn take(_: c_int) {
        TAKEN.fetch_add(1, SeqCst);
    }
    let _turn = TURN.lock().unwrap();
    sys::on_signal(SIGNAL, libc::SA_RESTART, take);
    sys::mask(libc::SIG_UNBLOCK, SIGNAL).unwrap();
    let before = TAKEN.load(SeqCst);
    let (process, signal) = (std::process::id() as usize, SIGNAL as usize);
    assert_eq!(sys::inline(libc::SYS_kill, process, signal, 0, 0, 0), 0);
    while TAKEN.load(SeqCst) == before {
        thread::sleep(Duration::from_millis(1));
    }
    sys::mask(libc::SIG_BLOCK, SIGNAL).unwrap();
}

/// Does one of several things that a thread may wait for.
fn wait_for_something(i: usize, address: SocketAddr) -> io::Result<()> {
    match i % 8 {
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
        6 => take_a_signal(),
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

fn work(calls: &[c_long], error: i32, later: bool) {
    // The standard library looks this up at its first message, and allocates for it: that an
    // allocation has failed would end the process without the message.
    let _ = std::panic::catch_unwind(|| panic!("the first message"));
    let fail = || fail(calls, error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    if later {
        start(move || {
            take_a_signal(); // Without memory, the runtime could not make the thread for this.
            wait_for_something(0, address).err()
        });
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
    let threads: Vec<_> = (0..32)
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

/// Does [`work`] in a child. Returns what the child was told.
fn start_work(row: usize, error: i32, later: bool) -> (String, Child) {
    let [row, error, later] = [row as i32, error, later.into()].map(|it| it.to_string());
    let mut child = child::command();
    child.envs([("ROW", &row), ("ERROR", &error), ("LATER", &later)]);
    child.stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: one system call. The threads of the child inherit the mask.
    let child = unsafe { child.pre_exec(|| sys::mask(libc::SIG_BLOCK, SIGNAL).map(drop)) }.spawn();
    (
        format!("ROW={row} ERROR={error} LATER={later}"),
        child.unwrap(),
    )
}

/// Asserts that the child has ended, well or with an error that says what it is.
fn end_of_work((told, child): (String, Child)) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let ended = match output.status.code() {
        Some(0) => true,
        Some(REFUSED) => text.contains("spawn: "),
        _ => text.contains("pirn: fatal: ") || text.contains("memory allocation of"),
    };
    assert!(ended, "{told}: {}", child::report(&output));
}

#[watched]
fn the_program_goes_on_or_gets_an_error() {
    if !has_seccomp() {
        return;
    }
    if child::is_here() {
        let number = |name| env::var(name).unwrap().parse::<usize>().unwrap();
        let (calls, _) = CALLS[number("ROW")];
        work(calls, number("ERROR") as i32, number("LATER") == 1);
    }
    const AT_ONCE: usize = 4;
    let mut running = VecDeque::new();
    for (row, (_, errors)) in CALLS.iter().enumerate() {
        for (error, later) in errors.iter().flat_map(|e| [(*e, false), (*e, true)]) {
            running.push_back(start_work(row, error, later));
            if running.len() == AT_ONCE
                && let Some(first) = running.pop_front()
            {
                end_of_work(first);
            }
        }
    }
    running.into_iter().for_each(end_of_work);
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

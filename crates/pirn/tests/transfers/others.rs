//! What takes more than one descriptor and one call: connecting again, terminals that wait for each
//! other, time limits over many pieces, a process in the background.

use std::io::{Read, Write, pipe};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use std::{env, fs, ptr};

use crate::common::sys::{self, check, own};
use crate::common::{block_then, child, most_carriers, on_virtual, watched};
use crate::kinds::{Kind, Pair};
use crate::script;
use pirn::thread;

/// Returns how several `connect`s of one socket end, to an address where a listener is, or none.
fn connects(listens: bool) -> Vec<i32> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else {
        unreachable!()
    };
    let _listener = listens.then_some(listener); // Or it is closed.
    let name = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(*address.ip()).to_be(),
        },
        sin_zero: [0; 8],
    };
    // SAFETY: no pointers.
    let socket = own(unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) }).unwrap();
    let (name, length) = ((&raw const name).cast(), size_of_val(&name) as u32);
    let connect = |_| {
        // SAFETY: an address of this length.
        let connected = check(unsafe { libc::connect(socket.as_raw_fd(), name, length) });
        connected.map_or_else(|error| error.raw_os_error().unwrap(), |_| 0)
    };
    (0..3).map(connect).collect()
}

#[watched]
fn connecting_again_is_the_kernels() {
    for listens in [false, true] {
        assert_eq!(on_virtual(move || connects(listens)), connects(listens));
    }
}

#[watched]
fn a_time_limit_is_for_all_pieces() {
    for kind in [Kind::Tcp, Kind::Unix] {
        let pair = Pair::new(kind, true);
        let limit = libc::timeval {
            tv_sec: 0,
            tv_usec: 100_000,
        };
        sys::set_socket_option(&pair.own, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &limit);
        let (fd, ended) = (pair.fd(), &AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut buffer = [0; 4096];
                let place = buffer.as_mut_ptr().cast();
                // SAFETY: room for all of it.
                let count = unsafe { libc::recv(fd, place, buffer.len(), libc::MSG_WAITALL) };
                ended.store(true, SeqCst);
                assert!((1..4096).contains(&count), "{count}");
            });
            while !ended.load(SeqCst) && sys::write(pair.peer_fd(), b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    }
}

/// More writers than there can be carriers, none of which has room before its reader begins.
#[watched]
fn writers_of_terminals_leave_the_carriers_free() {
    const LENGTH: usize = 100_000;
    let pairs: Vec<Pair> = (0..most_carriers() + 4)
        .map(|_| Pair::new(Kind::Raw(1, 0), false))
        .collect();
    let write = |i: usize| {
        let bytes = vec![b'x'; LENGTH];
        let mut sent = 0;
        while sent < LENGTH {
            sent += sys::write(pairs[i].fd(), &bytes[sent..]).unwrap();
        }
    };
    block_then(pairs.len(), write, || {
        for pair in &pairs {
            let (mut received, mut buffer) = (0, [0; 4096]);
            while received < LENGTH {
                received += sys::read(pair.peer_fd(), &mut buffer).unwrap();
            }
        }
    });
}

/// The kernel's own wait may last for ever then, and would keep a carrier.
#[watched]
fn writers_end_when_the_other_side_of_a_full_terminal_is_closed() {
    for _ in 0..20 {
        let mut pairs: Vec<Pair> = (0..most_carriers() + 4)
            .map(|_| Pair::new(Kind::Master, false))
            .collect();
        for pair in &pairs {
            script::fill(pair, Kind::Master);
        }
        let fds: Vec<_> = pairs.iter().map(Pair::fd).collect();
        let write = |i: usize| {
            let ended = std::iter::repeat_with(|| sys::write(fds[i], b"x")).find_map(Result::err);
            assert_eq!(ended.unwrap().raw_os_error(), Some(libc::EIO));
        };
        block_then(fds.len(), write, || {
            for pair in &mut pairs {
                pair.peer = None;
            }
        });
    }
}

#[watched]
fn sleeping_by_a_clock_of_cpu_time() {
    let sleep = |clock| {
        let time = sys::timespec(Duration::from_millis(5));
        // SAFETY: a valid time.
        unsafe { libc::clock_nanosleep(clock, 0, &time, ptr::null_mut()) }
    };
    let ended = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| while !ended.load(SeqCst) {});
        let clocks = [
            libc::CLOCK_PROCESS_CPUTIME_ID,
            libc::CLOCK_THREAD_CPUTIME_ID,
            99,
        ];
        let slept = on_virtual(move || clocks.map(sleep));
        ended.store(true, SeqCst);
        assert_eq!(slept, [0, libc::EINVAL, libc::EINVAL]);
    });
}

/// Calls that the kernel refuses, or ends at once, whatever they are made on.
fn at_once() -> Vec<i64> {
    let (reader, writer) = pipe().unwrap();
    let (empty, full) = (reader.as_raw_fd(), writer.as_raw_fd());
    let unix = Pair::new(Kind::Unix, true);
    let event = Pair::new(Kind::Event, true);
    let [folder, file, device] = ["/", "/proc/self/exe", "/dev/full"].map(|path| {
        let options = &mut fs::OpenOptions::new();
        options
            .read(true)
            .write(path == "/dev/full")
            .open(path)
            .unwrap()
    });
    let (no_offset, place) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: no bytes, and no pointers.
    let results = unsafe {
        let result = |result: isize| match result {
            -1 => -i64::from(sys::errno()),
            result => result as i64,
        };
        [
            result(libc::splice(empty, no_offset, full, no_offset, 0, 0)),
            result(libc::splice(
                unix.fd(),
                no_offset,
                unix.fd(),
                no_offset,
                1,
                0,
            )),
            result(libc::tee(empty, unix.fd(), 1, 0)),
            result(libc::read(folder.as_raw_fd(), place, 0)),
            result(libc::read(event.fd(), place, 0)),
            result(libc::read(empty, place, 0)),
            result(libc::sendfile(
                device.as_raw_fd(),
                file.as_raw_fd(),
                no_offset,
                5,
            )),
        ]
    };
    results.to_vec()
}

#[watched]
fn what_the_kernel_refuses_is_refused() {
    assert_eq!(on_virtual(at_once), at_once());
}

/// A session of its own on a terminal: its leader starts a process in the background, which reads.
#[watched]
fn a_read_in_the_background_stops_the_process() {
    match env::var("ROLE").as_deref() {
        Err(_) => {
            let pair = Pair::new(Kind::Cooked, true);
            let mut leader = child::command();
            leader
                .env("ROLE", "leader")
                .stdin(Stdio::from(pair.own.try_clone().unwrap()));
            // SAFETY: both calls may be made there.
            unsafe {
                leader.pre_exec(|| {
                    check(libc::setsid())?;
                    check(libc::ioctl(0, libc::TIOCSCTTY, 0)).map(drop)
                });
            }
            let output = leader.output().unwrap();
            assert!(output.status.success(), "{}", child::report(&output));
        }
        Ok("leader") => {
            let mut reader = child::command();
            reader
                .env("ROLE", "reader")
                .stdin(Stdio::inherit())
                .process_group(0);
            let mut reader = reader.spawn().unwrap();
            let mut status = 0;
            // SAFETY: room for a status.
            check(unsafe { libc::waitpid(reader.id() as i32, &mut status, libc::WUNTRACED) })
                .unwrap();
            let stopped = libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGTTIN;
            let _ = reader.kill();
            let _ = reader.wait();
            assert!(stopped, "{status}");
        }
        Ok(_) => {
            let read = on_virtual(|| std::io::stdin().read(&mut [0]));
            let _ = writeln!(std::io::stderr(), "{read:?}");
        }
    }
}

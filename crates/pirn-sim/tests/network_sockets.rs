//! What TCP's sockets do beside carrying bytes, on a simulated network.

use pirn_sim::net::{self, node};
use pirn_sim::{Outcome, Sim};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};
use std::{mem, ptr};

const SECOND: Duration = Duration::from_secs(1);

fn passes(test: impl Fn() + Send + Sync + 'static) -> pirn_sim::Report {
    let report = Sim::new().run(1, test);
    assert_eq!(report.outcome, Outcome::Passed, "{report:?}");
    report
}

/// Returns both ends of a connection.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn option(fd: RawFd, level: i32, option: i32) -> i32 {
    let (mut value, mut size) = (0_i32, 4);
    // SAFETY: room for an int.
    let result =
        unsafe { libc::getsockopt(fd, level, option, (&raw mut value).cast(), &raw mut size) };
    assert_eq!((result, size), (0, 4));
    value
}

fn set(fd: RawFd, level: i32, option: i32, value: &[i32]) {
    let size = size_of_val(value) as u32;
    // SAFETY: ints.
    let result = unsafe { libc::setsockopt(fd, level, option, value.as_ptr().cast(), size) };
    assert_eq!(result, 0);
}

fn poll(fd: RawFd, events: i16) -> i16 {
    let mut entry = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    // SAFETY: one entry.
    unsafe { libc::poll(&mut entry, 1, 10_000) };
    entry.revents
}

#[test]
fn a_socket_says_what_it_is() {
    passes(|| {
        let listener = TcpListener::bind("[::]:80").unwrap();
        let datagrams = UdpSocket::bind("0.0.0.0:0").unwrap();
        let of = |fd: RawFd| {
            [
                libc::SO_TYPE,
                libc::SO_DOMAIN,
                libc::SO_PROTOCOL,
                libc::SO_ACCEPTCONN,
            ]
            .map(|it| option(fd, libc::SOL_SOCKET, it))
        };
        let tcp = [libc::SOCK_STREAM, libc::AF_INET6, libc::IPPROTO_TCP, 1];
        assert_eq!(of(listener.as_raw_fd()), tcp);
        let udp = [libc::SOCK_DGRAM, libc::AF_INET, libc::IPPROTO_UDP, 0];
        assert_eq!(of(datagrams.as_raw_fd()), udp);
        assert_eq!(listener.local_addr().unwrap(), "[::]:80".parse().unwrap());
        let (client, _server) = pair();
        assert!(!client.nodelay().unwrap());
        client.set_nodelay(true).unwrap();
        assert!(client.nodelay().unwrap());
        client.set_ttl(7).unwrap();
        assert_eq!(client.ttl().unwrap(), 7);
        // SAFETY: no pointers.
        let bare = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
        // SAFETY: it has just been made.
        let bare = unsafe { TcpStream::from_raw_fd(bare) };
        assert_eq!(bare.local_addr().unwrap(), "0.0.0.0:0".parse().unwrap());
        assert_eq!(
            bare.peer_addr().unwrap_err().kind(),
            ErrorKind::NotConnected
        );
        let error = (&bare).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotConnected);
        let error = (&bare).write(&[0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn ipv6_reaches_nodes_and_listeners_for_both_families() {
    passes(|| {
        let server = node("server", || {
            let listener = TcpListener::bind("[::]:7").unwrap();
            for expected in ["[fd00::1]", "[::ffff:10.0.0.1]"] {
                let (mut stream, from) = listener.accept().unwrap();
                let from = format!("[{}]", from.ip());
                assert_eq!(from, expected);
                assert!(stream.local_addr().unwrap().is_ipv6());
                stream.write_all(b"x").unwrap();
            }
        });
        thread::sleep(SECOND);
        let v6 = server.address_v6();
        assert_eq!(v6, "fd00::2".parse::<Ipv6Addr>().unwrap());
        for to in [SocketAddr::from((v6, 7)), (server.address(), 7).into()] {
            let mut stream = TcpStream::connect(to).unwrap();
            assert_eq!(stream.peer_addr().unwrap(), to);
            stream.read_exact(&mut [0]).unwrap();
        }
        let refused = TcpStream::connect((v6, 8)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

        let v4 = TcpListener::bind("127.0.0.1:9").unwrap();
        let refused = TcpStream::connect("[::1]:9").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let v6 = TcpListener::bind("[::1]:9").unwrap();
        TcpStream::connect("[::1]:9").unwrap();
        assert!(v6.accept().unwrap().1.ip().is_loopback());
        TcpStream::connect("127.0.0.1:9").unwrap();
        v4.accept().unwrap();

        let [one, two] = ["[::]:1", "[::1]:2"].map(|it| UdpSocket::bind(it).unwrap());
        two.send_to(b"x", "[::1]:1").unwrap();
        assert_eq!(
            one.recv_from(&mut [0]).unwrap().1,
            "[::1]:2".parse().unwrap()
        );
        let own = UdpSocket::bind("0.0.0.0:3").unwrap();
        own.send_to(b"x", "127.0.0.1:1").unwrap();
        let from = one.recv_from(&mut [0]).unwrap().1;
        assert_eq!(from, "[::ffff:127.0.0.1]:3".parse().unwrap());
    });
}

#[test]
fn a_full_queue_delays_clients_and_an_accept_times_out() {
    passes(|| {
        let listener = TcpListener::bind("127.0.0.1:9").unwrap();
        // SAFETY: no pointers.
        unsafe { libc::listen(listener.as_raw_fd(), 0) };
        let begin = Instant::now();
        set(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            &[5, 0, 0, 0],
        );
        let error = listener.accept().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(begin.elapsed() >= 5 * SECOND);
        let _first = TcpStream::connect("127.0.0.1:9").unwrap();
        let second = thread::spawn(|| TcpStream::connect("127.0.0.1:9").unwrap());
        thread::sleep(10 * SECOND);
        assert!(!second.is_finished(), "the queue is full");
        let begin = Instant::now();
        for _ in 0..2 {
            set(
                listener.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                &[0; 4],
            );
            listener.accept().unwrap();
        }
        assert!(begin.elapsed() < 30 * SECOND, "the client tries again");
        second.join().unwrap();
    });
}

#[test]
fn ports_are_shared_as_their_options_say() {
    passes(|| {
        // SAFETY: no pointers; it has just been made.
        let new = || unsafe {
            TcpListener::from_raw_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0))
        };
        let bind = |socket: &TcpListener| {
            // SAFETY: zeros are an address; it is complete.
            unsafe {
                let mut it: libc::sockaddr_in = mem::zeroed();
                (it.sin_family, it.sin_port) = (libc::AF_INET as u16, 80_u16.to_be());
                let size = size_of::<libc::sockaddr_in>() as u32;
                libc::bind(socket.as_raw_fd(), (&raw const it).cast(), size)
            }
        };
        // SAFETY: no pointers.
        let listen = |socket: &TcpListener| unsafe { libc::listen(socket.as_raw_fd(), 9) };
        let [one, two, three] = [new(), new(), new()];
        for socket in [&one, &two] {
            set(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_REUSEADDR,
                &[1],
            );
            assert_eq!(bind(socket), 0, "neither listens");
        }
        assert_eq!(bind(&three), -1);
        assert_eq!((listen(&one), listen(&two)), (0, -1));
        drop((one, two));
        let [one, two] = [new(), new()];
        for socket in [&one, &two] {
            set(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_REUSEPORT,
                &[1],
            );
            assert_eq!((bind(socket), listen(socket)), (0, 0));
            socket.set_nonblocking(true).unwrap();
        }
        let _clients: Vec<_> = (0..20)
            .map(|_| TcpStream::connect("127.0.0.1:80").unwrap())
            .collect();
        let [one, two] = [one, two].map(|it| std::iter::from_fn(|| it.accept().ok()).count());
        assert!(one > 3 && two > 3 && one + two == 20, "{one} {two}");
    });
}

#[test]
fn each_direction_is_shut_alone() {
    passes(|| {
        let (mut client, mut server) = pair();
        client.write_all(b"question").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        server.read_to_string(&mut text).unwrap();
        server.write_all(b"answer").unwrap();
        drop(server);
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "questionanswer");
        let (mut client, mut server) = pair();
        server.shutdown(Shutdown::Read).unwrap();
        client.write_all(b"lost").unwrap();
        thread::sleep(SECOND);
        client.write_all(b"lost").unwrap(); // The client is not told.
        server.write_all(b"x").unwrap();
        client.read_exact(&mut [0]).unwrap();
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn a_close_is_a_reset_if_something_is_unread_or_the_program_wants_it() {
    passes(|| {
        let (mut client, mut server) = pair();
        server.write_all(b"unread").unwrap();
        client.write_all(b"x").unwrap();
        thread::sleep(SECOND);
        drop(client);
        let mut byte = [0];
        assert_eq!(
            server.read(&mut byte).unwrap(),
            1,
            "what is there can be read"
        );
        let error = server.read(&mut byte).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);

        let (client, mut server) = pair();
        set(
            client.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            &[1, 0],
        );
        drop(client);
        let error = server.read(&mut byte).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);

        // The first write to a peer that has gone is sent; the answer is a reset.
        let (client, mut server) = pair();
        drop(client);
        thread::sleep(SECOND);
        server.write_all(b"x").unwrap();
        thread::sleep(SECOND);
        let error = server.write(b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        let error = server.write(b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn an_event_loop_connects_reads_and_is_told_of_errors() {
    passes(|| {
        let listener = TcpListener::bind("127.0.0.1:9").unwrap();
        // SAFETY: no pointers; room for what is written; complete addresses.
        unsafe {
            let epoll = OwnedFd::from_raw_fd(libc::epoll_create1(0));
            let begin = |port: u16| {
                let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
                let fd = libc::socket(libc::AF_INET, kind, 0);
                let mut event = libc::epoll_event {
                    events: (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET) as u32,
                    u64: u64::from(port),
                };
                let epoll = epoll.as_raw_fd();
                assert_eq!(
                    libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event),
                    0
                );
                let mut to: libc::sockaddr_in = mem::zeroed();
                (to.sin_family, to.sin_port) = (libc::AF_INET as u16, port.to_be());
                to.sin_addr.s_addr = u32::from(std::net::Ipv4Addr::LOCALHOST).to_be();
                let size = size_of::<libc::sockaddr_in>() as u32;
                assert_eq!(libc::connect(fd, (&raw const to).cast(), size), -1);
                let error = std::io::Error::last_os_error();
                assert_eq!(error.raw_os_error(), Some(libc::EINPROGRESS));
                TcpStream::from_raw_fd(fd)
            };
            let wait = |port: u16, wanted: i32| loop {
                let mut event: libc::epoll_event = mem::zeroed();
                assert_eq!(
                    libc::epoll_wait(epoll.as_raw_fd(), &mut event, 1, 10_000),
                    1
                );
                let (key, events) = (event.u64, event.events as i32);
                if key == u64::from(port) && events & wanted != 0 {
                    return events;
                }
            };
            let stream = begin(9);
            assert_eq!(poll(stream.as_raw_fd(), 0), 0, "not yet");
            wait(9, libc::EPOLLOUT);
            assert!(stream.take_error().unwrap().is_none());
            let (mut server, _) = listener.accept().unwrap();
            server.write_all(b"x").unwrap();
            wait(9, libc::EPOLLIN);
            assert_eq!((&stream).read(&mut [0; 9]).unwrap(), 1);
            let empty = (&stream).read(&mut [0]).unwrap_err();
            assert_eq!(empty.kind(), ErrorKind::WouldBlock);
            let refused = begin(10);
            assert!(wait(10, libc::EPOLLOUT) & (libc::EPOLLERR | libc::EPOLLHUP) != 0);
            let error = refused.take_error().unwrap().unwrap();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        }
    });
}

#[test]
fn duplicates_are_one_socket_and_a_descriptor_may_be_passed_on() {
    passes(|| {
        let listener = TcpListener::bind("127.0.0.1:9").unwrap();
        let other = listener.try_clone().unwrap();
        drop(listener);
        let mut client = TcpStream::connect("127.0.0.1:9").unwrap();
        let (mut server, _) = other.accept().unwrap();
        let mut second = client.try_clone().unwrap();
        drop(client);
        second.write_all(b"x").unwrap();
        server.read_exact(&mut [0]).unwrap();

        let (from, to) = UnixStream::pair().unwrap();
        let (sent, peer) = (second.as_raw_fd(), second.peer_addr().unwrap());
        // SAFETY: complete messages with room for one descriptor.
        let received = unsafe {
            let (mut byte, mut control) = ([0_u8], [0_u64; 4]);
            let mut buffer = libc::iovec {
                iov_base: byte.as_mut_ptr().cast(),
                iov_len: 1,
            };
            let mut message: libc::msghdr = mem::zeroed();
            (message.msg_iov, message.msg_iovlen) = (&mut buffer, 1);
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(4) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(header)
                .cast::<RawFd>()
                .write_unaligned(sent);
            assert_eq!(libc::sendmsg(from.as_raw_fd(), &message, 0), 1);
            drop(second);
            thread::sleep(SECOND);
            assert_eq!(libc::recvmsg(to.as_raw_fd(), &mut message, 0), 1);
            let header = libc::CMSG_FIRSTHDR(&message);
            libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()
        };
        // SAFETY: it came with the message.
        client = unsafe { TcpStream::from_raw_fd(received) };
        assert_eq!(client.peer_addr().unwrap(), peer);
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0]).unwrap();
        drop(client);
        assert_eq!(server.read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn files_and_pipes_go_through_sockets_in_the_kernel() {
    passes(|| {
        let (client, mut server) = pair();
        let (end, mut pipe) = std::io::pipe().unwrap();
        let file = std::fs::File::open("Cargo.toml").unwrap();
        let (out, none) = (client.as_raw_fd(), ptr::null_mut());
        // SAFETY: no pointers.
        assert_eq!(unsafe { libc::sendfile(out, file.as_raw_fd(), none, 9) }, 9);
        pipe.write_all(b"by splice").unwrap();
        let from = end.as_raw_fd();
        let none = ptr::null_mut();
        // SAFETY: no pointers.
        assert_eq!(unsafe { libc::splice(from, none, out, none, 9, 0) }, 9);
        let mut text = [0; 18];
        server.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"[package]by splice");
        let parts = [
            std::io::IoSlice::new(b"in "),
            std::io::IoSlice::new(b"parts"),
        ];
        assert_eq!((&client).write_vectored(&parts).unwrap(), 8);
        server.read_exact(&mut text[..8]).unwrap();
        assert_eq!(&text[..8], b"in parts");
    });
}

#[test]
fn what_would_reach_the_machine_is_refused_and_reported() {
    let report = passes(|| {
        for (domain, kind) in [
            (libc::AF_NETLINK, libc::SOCK_RAW),
            (libc::AF_INET, libc::SOCK_RAW),
            (libc::AF_PACKET, libc::SOCK_DGRAM),
        ] {
            // SAFETY: no pointers.
            assert_eq!(unsafe { libc::socket(domain, kind, 0) }, -1);
            let error = std::io::Error::last_os_error();
            assert_eq!(error.raw_os_error(), Some(libc::EAFNOSUPPORT));
        }
        let error = TcpStream::connect("93.184.216.34:80").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
        // SAFETY: the kernel does not see it.
        let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 8, ptr::null_mut::<u8>()) };
        assert_eq!(ring, -1);
    });
    let refused = report.refused.join("\n");
    for call in [
        "AF_NETLINK",
        "SOCK_RAW",
        "AF_PACKET",
        "connect",
        "io_uring_setup",
    ] {
        assert!(refused.contains(call), "{refused}");
    }
}

#[test]
fn a_run_leaves_no_descriptor_behind() {
    let run = || {
        Sim::new().run(1, || {
            let listener = TcpListener::bind("127.0.0.1:9").unwrap();
            let keep = TcpStream::connect("127.0.0.1:9").unwrap();
            let datagrams = UdpSocket::bind("127.0.0.1:9").unwrap();
            // Threads that are left at the end own them.
            thread::spawn(move || (listener.accept(), listener.accept()));
            thread::spawn(move || (datagrams.recv(&mut [0]), keep));
            thread::sleep(SECOND);
            net::latency(SECOND..SECOND);
        })
    };
    let count = || {
        let report = run();
        assert_eq!(report.outcome, Outcome::Passed);
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    };
    let first = (0..3).map(|_| count()).max().unwrap();
    let last = (0..30).map(|_| count()).min().unwrap();
    assert!(last <= first + 10, "{first} {last}");
}

#[test]
fn a_client_that_gives_up_after_the_server_knows_of_it_has_sent_nothing() {
    passes(|| {
        let latency = Duration::from_millis(10);
        net::latency(latency..latency);
        let server = node("server", || {
            let listener = TcpListener::bind("0.0.0.0:7").unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        });
        thread::sleep(SECOND);
        let to = (server.address(), 7).into();
        let error = TcpStream::connect_timeout(&to, latency * 3 / 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        thread::sleep(SECOND);
    });
}

#[test]
fn a_socket_that_was_refused_tries_again_and_blocks_as_before() {
    passes(|| {
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
        // SAFETY: it has just been made.
        let mut stream = unsafe { TcpStream::from_raw_fd(fd) };
        let connect = || {
            // SAFETY: zeros are an address; it is complete.
            unsafe {
                let mut to: libc::sockaddr_in = mem::zeroed();
                (to.sin_family, to.sin_port) = (libc::AF_INET as u16, 9_u16.to_be());
                let size = size_of::<libc::sockaddr_in>() as u32;
                libc::connect(fd, (&raw const to).cast(), size)
            }
        };
        assert_eq!(connect(), -1);
        let error = std::io::Error::last_os_error();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let listener = TcpListener::bind("127.0.0.1:9").unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            thread::sleep(SECOND);
            stream.write_all(b"x").unwrap();
        });
        assert_eq!(connect(), 0);
        stream.read_exact(&mut [0]).unwrap();
        server.join().unwrap();
    });
}

//! `UdpSocket`, and C's functions for datagrams, on a simulated network.

mod common;

use common::{passes, passes_alike};
use pirn_sim::net::{self, node};
use pirn_sim::{Outcome, Sim};
use std::io::ErrorKind;
use std::mem;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Sends each datagram back.
fn echo_server() {
    let socket = UdpSocket::bind("0.0.0.0:7").unwrap();
    let mut buffer = [0; 2000];
    loop {
        let (count, from) = socket.recv_from(&mut buffer).unwrap();
        socket.send_to(&buffer[..count], from).unwrap();
    }
}

#[test]
fn datagrams_go_and_come_back_with_addresses_and_latency() {
    let talk = || {
        net::latency(10 * MS..20 * MS);
        let server = node("server", echo_server);
        thread::sleep(MS);
        let clients: Vec<_> = (0..4_u8)
            .map(|n| {
                let server = server.clone();
                thread::spawn(move || {
                    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
                    let begin = Instant::now();
                    socket.send_to(&[n; 10], "server:7").unwrap();
                    let mut buffer = [0; 100];
                    let (count, from) = socket.recv_from(&mut buffer).unwrap();
                    assert_eq!(&buffer[..count], [n; 10]);
                    assert_eq!(from, SocketAddr::from((server.address(), 7)));
                    assert!(begin.elapsed() >= 20 * MS);
                    socket.connect("server:7").unwrap();
                    assert_eq!(socket.peer_addr().unwrap(), from);
                    let own = socket.local_addr().unwrap().ip();
                    assert_eq!(own, Ipv4Addr::new(10, 0, 0, 1));
                    socket.send(&[]).unwrap();
                    assert_eq!(socket.recv(&mut buffer).unwrap(), 0);
                })
            })
            .collect();
        clients.into_iter().for_each(|it| it.join().unwrap());
    };
    passes_alike(talk);
}

#[test]
fn a_datagram_that_is_cut_off_or_looked_at_is_as_in_linux() {
    passes(Sim::new().run(1, || {
        let to = UdpSocket::bind("127.0.0.1:9").unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        from.send_to(b"0123456789", "127.0.0.1:9").unwrap();
        from.send_to(b"second", "127.0.0.1:9").unwrap();
        thread::sleep(SECOND);
        let mut size = 0_i32;
        // SAFETY: room for an int.
        let result = unsafe { libc::ioctl(to.as_raw_fd(), libc::FIONREAD, &raw mut size) };
        assert_eq!((result, size), (0, 10));
        let mut buffer = [0; 4];
        let (count, sender) = to.peek_from(&mut buffer).unwrap();
        assert_eq!((count, &buffer), (4, b"0123"));
        assert_eq!(sender, from.local_addr().unwrap());
        let place = buffer.as_mut_ptr().cast();
        // SAFETY: the buffers are there.
        let whole = unsafe { libc::recv(to.as_raw_fd(), place, 4, libc::MSG_TRUNC) };
        assert_eq!(whole, 10);
        // `read`, in two buffers.
        let mut parts = [[0_u8; 3]; 2];
        let buffers = parts.each_mut().map(|part| libc::iovec {
            iov_base: part.as_mut_ptr().cast(),
            iov_len: 3,
        });
        // SAFETY: the buffers are there.
        let count = unsafe { libc::readv(to.as_raw_fd(), buffers.as_ptr(), 2) };
        assert_eq!((count, parts), (6, [*b"sec", *b"ond"]));
        to.set_nonblocking(true).unwrap();
        let none = to.recv(&mut buffer).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::WouldBlock);
    }));
}

#[test]
fn many_at_once_by_sendmmsg_and_recvmmsg() {
    passes(Sim::new().run(1, || {
        let to = UdpSocket::bind("127.0.0.1:9").unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        from.connect("127.0.0.1:9").unwrap();
        let mut bytes = [[1_u8; 10], [2; 10], [3; 10]];
        let mut buffers = bytes.each_mut().map(|it| libc::iovec {
            iov_base: it.as_mut_ptr().cast(),
            iov_len: 10,
        });
        // SAFETY: zeros are messages.
        let mut messages: [libc::mmsghdr; 3] = unsafe { mem::zeroed() };
        for (message, buffer) in messages.iter_mut().zip(&mut buffers) {
            (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (buffer, 1);
        }
        let place = messages.as_mut_ptr();
        // SAFETY: the buffers are there.
        assert_eq!(unsafe { libc::sendmmsg(from.as_raw_fd(), place, 3, 0) }, 3);
        bytes = [[0; 10]; 3];
        thread::sleep(SECOND);
        let flags = libc::MSG_WAITFORONE as _;
        let none = std::ptr::null_mut();
        // SAFETY: the buffers are there.
        let count = unsafe { libc::recvmmsg(to.as_raw_fd(), place, 3, flags, none) };
        assert_eq!((count, messages[2].msg_len), (3, 10));
        let mut seen = bytes.map(|it| it[0]);
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3]);
    }));
}

#[test]
fn a_receive_times_out_in_virtual_time_and_poll_sees_a_datagram() {
    passes(Sim::new().run(1, || {
        node("server", echo_server);
        thread::sleep(SECOND);
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_read_timeout(Some(3600 * SECOND)).unwrap();
        let begin = Instant::now();
        let error = socket.recv(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(begin.elapsed() >= 3600 * SECOND);
        let mut entry = libc::pollfd {
            fd: socket.as_raw_fd(),
            events: libc::POLLIN | libc::POLLOUT,
            revents: 0,
        };
        // SAFETY: the buffers are there.
        assert_eq!(unsafe { libc::poll(&mut entry, 1, 0) }, 1);
        assert_eq!(entry.revents, libc::POLLOUT);
        socket.send_to(b"x", "server:7").unwrap();
        entry.events = libc::POLLIN;
        // SAFETY: the buffers are there.
        assert_eq!(unsafe { libc::poll(&mut entry, 1, 10_000) }, 1);
        assert_eq!(entry.revents, libc::POLLIN);
    }));
}

#[test]
fn a_connected_socket_learns_of_a_closed_port_and_an_unconnected_one_does_not() {
    passes(Sim::new().run(1, || {
        let peer = node("peer", || ());
        let to = SocketAddr::from((peer.address(), 9));
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_read_timeout(Some(SECOND)).unwrap();
        socket.send_to(b"x", to).unwrap();
        let error = socket.recv(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        socket.connect(to).unwrap();
        socket.send(b"x").unwrap();
        let error = socket.recv(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        socket.send(b"x").unwrap();
        thread::sleep(SECOND);
        let error = socket.send(b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        socket.send(b"x").unwrap();
        thread::sleep(SECOND);
        let error = socket.take_error().unwrap().unwrap();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }));
}

#[test]
fn a_connected_socket_hears_its_peer_only_and_ports_conflict() {
    passes(Sim::new().run(1, || {
        let [one, two, three] = [1, 2, 3].map(|port| UdpSocket::bind(("127.0.0.1", port)).unwrap());
        one.connect("127.0.0.1:2").unwrap();
        three.send_to(b"three", "127.0.0.1:1").unwrap();
        thread::sleep(SECOND);
        two.send_to(b"two", "127.0.0.1:1").unwrap();
        let mut buffer = [0; 10];
        assert_eq!(one.recv(&mut buffer).unwrap(), 3);
        let taken = UdpSocket::bind("0.0.0.0:3").unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        drop(three);
        UdpSocket::bind("0.0.0.0:3").unwrap();
        let big = two.send_to(&[0; 65_508], "127.0.0.1:3").unwrap_err();
        assert_eq!(big.raw_os_error(), Some(libc::EMSGSIZE));
        let nowhere = UdpSocket::bind("0.0.0.0:0").unwrap();
        let error = nowhere.send_to(b"x", "93.184.216.34:53").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
    }));
}

/// Sends a thousand numbers, a millisecond apart. Returns them as they arrive.
fn thousand(set: fn()) -> Vec<u32> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let place = Arc::clone(&seen);
    let report = Sim::new().run(1, move || {
        set();
        let place = Arc::clone(&place);
        node("sink", move || {
            let socket = UdpSocket::bind("0.0.0.0:9").unwrap();
            let mut number = [0; 4];
            while socket.recv(&mut number).is_ok() {
                place.lock().unwrap().push(u32::from_ne_bytes(number));
            }
        });
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        thread::sleep(MS);
        for number in 0..1000_u32 {
            socket.send_to(&number.to_ne_bytes(), "sink:9").unwrap();
            thread::sleep(MS);
        }
        thread::sleep(SECOND);
    });
    assert_eq!(report.outcome, Outcome::Passed, "{report:?}");
    mem::take(&mut seen.lock().unwrap())
}

#[test]
fn links_lose_duplicate_and_reorder_datagrams_by_the_seed() {
    let plain = thousand(|| net::latency(MS..MS));
    assert_eq!(plain, (0..1000).collect::<Vec<_>>());
    let lost = thousand(|| net::loss(0.2));
    assert!((700..900).contains(&lost.len()), "{}", lost.len());
    assert_eq!(lost, thousand(|| net::loss(0.2)));
    let twice = thousand(|| net::duplicates(0.2));
    assert!((1100..1300).contains(&twice.len()), "{}", twice.len());
    let overtaken = thousand(|| {
        net::latency(MS..2 * MS);
        net::reorders(0.1);
    });
    let late = overtaken.windows(2).filter(|it| it[0] > it[1]).count();
    assert!((20..200).contains(&late), "{late}");
    // 44 bytes each: 22 go through per second.
    let slow = thousand(|| net::bandwidth(1000));
    assert!((20..100).contains(&slow.len()), "{}", slow.len());
}

#[test]
fn a_partition_drops_datagrams_and_a_broadcast_reaches_all() {
    passes(Sim::new().run(1, || {
        let [one, _] = ["one", "two"].map(|name| node(name, echo_server));
        let own = node("own", || {
            thread::sleep(SECOND);
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.set_read_timeout(Some(SECOND)).unwrap();
            let count = || std::iter::from_fn(|| socket.recv(&mut [0]).ok()).count();
            socket.send_to(b"x", "one:7").unwrap();
            assert_eq!(count(), 0);
            thread::sleep(10 * SECOND);
            assert_eq!(count(), 0, "it is lost, not late");
            let denied = socket.send_to(b"x", "255.255.255.255:7").unwrap_err();
            assert_eq!(denied.kind(), ErrorKind::PermissionDenied);
            socket.set_broadcast(true).unwrap();
            socket.send_to(b"x", "255.255.255.255:7").unwrap();
            assert_eq!(count(), 2);
        });
        net::partition(&own, &one);
        thread::sleep(5 * SECOND);
        net::heal(&own, &one);
        thread::sleep(60 * SECOND);
    }));
}

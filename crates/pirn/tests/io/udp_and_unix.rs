//! UDP and Unix sockets through `std`.

use std::collections::HashSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::common::{
    TempDir, block_then, crowd, many_files, most_carriers, on_virtual, pattern, watched,
};
use pirn::thread;

/// Returns a UDP socket on a free port of the loopback interface, and its address.
fn udp() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

#[watched]
fn udp_tells_the_sender() {
    let sockets: Vec<_> = (0..many_files() / 2).map(|_| udp()).collect();
    block_then(
        sockets.len(),
        |i| {
            let (socket, _) = &sockets[i];
            let mut buffer = [0; 32];
            let (count, from) = socket.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..count], i.to_string().as_bytes());
            socket.send_to(b"thanks", from).unwrap();
        },
        || {
            for (i, (_, address)) in sockets.iter().enumerate() {
                let (socket, _) = udp();
                socket.send_to(i.to_string().as_bytes(), address).unwrap();
                let mut buffer = [0; 32];
                let (count, from) = socket.recv_from(&mut buffer).unwrap();
                assert_eq!((&buffer[..count], from), (&b"thanks"[..], *address));
            }
        },
    );
}

#[watched]
fn connected_udp() {
    on_virtual(|| {
        let ((left, left_address), (right, right_address)) = (udp(), udp());
        left.connect(right_address).unwrap();
        right.connect(left_address).unwrap();
        let answering = thread::spawn(move || {
            let mut buffer = [0; 16];
            let count = right.recv(&mut buffer).unwrap();
            right.send(&buffer[..count]).unwrap();
        });
        left.send(b"shuttle").unwrap();
        let mut buffer = [0; 16];
        assert_eq!(left.recv(&mut buffer).unwrap(), 7);
        assert_eq!(&buffer[..7], b"shuttle");
        answering.join().unwrap();
    });
}

#[watched]
fn udp_to_a_closed_port_is_refused() {
    on_virtual(|| {
        let (socket, _) = udp();
        let (closed, address) = udp();
        drop(closed);
        socket.connect(address).unwrap();
        socket.send(b"anybody?").unwrap();
        let error = socket.recv(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[watched]
fn udp_timeouts_and_non_blocking() {
    crowd(|_| {
        let (socket, address) = udp();
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let begin = Instant::now();
        let error = socket.recv_from(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        // The kernel counts in whole ticks, of which the first has already begun.
        assert!(begin.elapsed() >= Duration::from_millis(35));
        socket.set_nonblocking(true).unwrap();
        let error = socket.recv_from(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        socket.send_to(b"self", address).unwrap();
        socket.set_nonblocking(false).unwrap();
        assert_eq!(socket.recv_from(&mut [0; 8]).unwrap(), (4, address));
    });
}

#[watched]
fn udp_peek_from_leaves_the_datagram() {
    on_virtual(|| {
        let (receiver, address) = udp();
        let (sender, from) = udp();
        let peeking = thread::spawn(move || {
            let mut buffer = [0; 16];
            assert_eq!(receiver.peek_from(&mut buffer).unwrap(), (4, from));
            assert_eq!(receiver.recv_from(&mut buffer).unwrap(), (4, from));
            assert_eq!(&buffer[..4], b"weft");
        });
        thread::yield_now();
        sender.send_to(b"weft", address).unwrap();
        peeking.join().unwrap();
    });
}

#[watched]
fn each_datagram_goes_to_one_receiver() {
    let (receiver, address) = udp();
    let (sender, _) = udp();
    let seen = Mutex::new(HashSet::new());
    let count = 4 * most_carriers(); // fewer than the socket's buffer holds
    block_then(
        count,
        |_| {
            let mut number = [0; 8];
            assert_eq!(receiver.recv(&mut number).unwrap(), 8);
            assert!(seen.lock().unwrap().insert(usize::from_le_bytes(number)));
        },
        || {
            for i in 0..count {
                sender.send_to(&i.to_le_bytes(), address).unwrap();
            }
        },
    );
    assert_eq!(seen.into_inner().unwrap().len(), count);
}

#[watched]
fn unix_streams_serve_many_clients() {
    let folder = TempDir::new("unix");
    let path = folder.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let clients = many_files();
    let path = &path;
    thread::scope(|scope| {
        scope.spawn(move || {
            for stream in listener.incoming().take(clients) {
                let mut stream = stream.unwrap();
                scope.spawn(move || {
                    let mut request = String::new();
                    stream.read_to_string(&mut request).unwrap();
                    stream.write_all(request.to_uppercase().as_bytes()).unwrap();
                });
            }
        });
        for i in 0..clients {
            scope.spawn(move || {
                // Blocks while the backlog is full.
                let mut stream = UnixStream::connect(path).unwrap();
                write!(stream, "client {i}").unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                assert_eq!(answer, format!("CLIENT {i}"));
            });
        }
    });
}

#[watched]
fn unix_connect_waits_for_room_in_the_backlog() {
    use std::os::fd::AsRawFd;
    let folder = TempDir::new("backlog");
    let path = folder.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    // SAFETY: a second `listen` only sets the length of the backlog.
    crate::common::sys::check(unsafe { libc::listen(listener.as_raw_fd(), 1) }).unwrap();
    let count = 8 * most_carriers();
    block_then(
        count,
        |_| drop(UnixStream::connect(&path).unwrap()),
        || {
            for _ in 0..count {
                listener.accept().unwrap();
            }
        },
    );
}

#[watched]
fn a_socket_pair_carries_large_data() {
    let data = pattern(8 << 20);
    let (mut left, mut right) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        let data = &data;
        scope.spawn(move || left.write_all(data).unwrap());
        scope.spawn(move || {
            let mut received = Vec::new();
            right.read_to_end(&mut received).unwrap();
            assert!(&received == data, "damaged");
        });
    });
}

#[watched]
fn unix_datagrams_keep_their_borders() {
    let (left, right) = UnixDatagram::pair().unwrap();
    // The queue holds few datagrams, so the sender blocks again and again.
    thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..1000_usize {
                assert_eq!(left.send(&vec![7; i % 100]).unwrap(), i % 100);
            }
        });
        scope.spawn(|| {
            for i in 0..1000 {
                assert_eq!(right.recv(&mut [0; 128]).unwrap(), i % 100);
            }
        });
    });
}

#[watched]
fn unconnected_unix_datagrams_wait_for_room() {
    // `poll` says an unconnected datagram socket is writable though its addressee's queue is full,
    // so readiness alone is not enough here.
    let folder = TempDir::new("datagram");
    let path = folder.join("receiver");
    let receiver = UnixDatagram::bind(&path).unwrap();
    let (senders, each) = (4 * most_carriers(), 20);
    block_then(
        senders,
        |_| {
            let sender = UnixDatagram::unbound().unwrap();
            for _ in 0..each {
                sender.send_to(b"weft", &path).unwrap();
            }
        },
        || {
            for _ in 0..senders * each {
                let mut buffer = [0; 8];
                assert_eq!(receiver.recv_from(&mut buffer).unwrap().0, 4);
            }
        },
    );
}

#[watched]
fn unix_datagram_timeouts_fire() {
    on_virtual(|| {
        let (left, right) = UnixDatagram::pair().unwrap();
        let short = Some(Duration::from_millis(50));
        right.set_read_timeout(short).unwrap();
        let error = right.recv(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        left.set_write_timeout(short).unwrap();
        let error = loop {
            if let Err(error) = left.send(b"x") {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}

//! TCP through `std::net`: connecting, accepting, moving data, closing. (Timeouts, non-blocking
//! mode and descriptor reuse are in `socket_modes.rs`, the other families in `udp_and_unix.rs`.)

use std::collections::HashSet;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{
    block_then, child, each_byte_once, many_files, most_carriers, on_virtual, pattern, report, sys,
    watched,
};
use pirn::thread;

/// Returns a listener on a free port of the loopback interface, and its address.
fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Returns two connected streams.
fn pair() -> (TcpStream, TcpStream) {
    let (listener, address) = listen();
    let client = TcpStream::connect(address).unwrap();
    let number = client.local_addr().unwrap();
    loop {
        let (stream, peer) = listener.accept().unwrap();
        if peer == number {
            return (client, stream); // Not one that looks for who had the port before.
        }
    }
}

/// Sends back every line until the client closes.
fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 256];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return,
            count => stream.write_all(&buffer[..count]).unwrap(),
        }
    }
}

#[watched]
fn a_thread_per_connection_serves_many_clients() {
    let clients = many_files();
    let (listener, address) = listen();
    // Not as many connections as there are clients: if one comes that looks for who had the port
    // before, in another process, a client would wait for ever.
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let server = thread::spawn(move || {
        let accepted = listener.incoming().take_while(|_| !is_over.load(SeqCst));
        let handles: Vec<_> = accepted
            .map(|stream| thread::spawn(|| echo(stream.unwrap())))
            .collect();
        let served = handles.len();
        handles
            .into_iter()
            .for_each(|handle| handle.join().unwrap());
        served
    });
    let connected = std::sync::Barrier::new(clients);
    let connected = &connected;
    thread::scope(|scope| {
        for i in 0..clients {
            scope.spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                // All connections are open at once.
                connected.wait();
                for round in 0..5 {
                    let message = format!("client {i} round {round}");
                    stream.write_all(message.as_bytes()).unwrap();
                    let mut answer = vec![0; message.len()];
                    stream.read_exact(&mut answer).unwrap();
                    assert_eq!(answer, message.as_bytes());
                }
            });
        }
    });
    over.store(true, SeqCst);
    let last = TcpStream::connect(address).unwrap();
    let served = server.join().unwrap();
    if served != clients {
        report(&format!("{clients} clients made {served} connections"));
    }
    drop(last);
}

#[watched]
fn large_data_goes_both_ways_at_once() {
    let (left, right) = pair();
    let data = pattern(16 << 20);
    let send = |mut stream: &TcpStream| {
        stream.write_all(&data).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    };
    let receive = |mut stream: &TcpStream| {
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert!(received == data, "damaged");
    };
    thread::scope(|scope| {
        for stream in [&left, &right] {
            scope.spawn(move || send(stream));
            scope.spawn(move || receive(stream));
        }
    });
}

#[watched]
fn both_kinds_of_thread_talk() {
    let data = pattern(4 << 20);
    for virtual_sends in [true, false] {
        let (mut left, mut right) = pair();
        let expected = data.clone();
        let to_send = data.clone();
        let send = move || left.write_all(&to_send).unwrap();
        let receive = move || {
            let mut received = Vec::new();
            right.read_to_end(&mut received).unwrap();
            assert!(received == expected, "damaged");
        };
        if virtual_sends {
            let platform = std::thread::spawn(receive);
            thread::spawn(send).join().unwrap();
            platform.join().unwrap();
        } else {
            let platform = std::thread::spawn(send);
            thread::spawn(receive).join().unwrap();
            platform.join().unwrap();
        }
    }
}

#[watched]
fn blocked_readers_leave_the_carriers_free() {
    let pairs: Vec<_> = (0..many_files() / 4).map(|_| pair()).collect();
    block_then(
        pairs.len(),
        |i| {
            let mut buffer = [0; 4];
            (&pairs[i].0).read_exact(&mut buffer).unwrap();
            assert_eq!(buffer, (i as u32).to_le_bytes());
        },
        || {
            for (i, (_, right)) in pairs.iter().enumerate() {
                let mut right = right;
                right.write_all(&(i as u32).to_le_bytes()).unwrap();
            }
        },
    );
}

#[watched]
fn blocked_writers_leave_the_carriers_free() {
    let data = pattern(8 << 20); // more than the buffers of a connection hold
    let pairs: Vec<_> = (0..4 * most_carriers()).map(|_| pair()).collect();
    block_then(
        pairs.len(),
        |i| {
            let (left, _) = &pairs[i];
            let mut writer = left;
            writer.write_all(&data).unwrap();
            left.shutdown(Shutdown::Write).unwrap();
        },
        || {
            for (_, right) in &pairs {
                let (mut right, mut received) = (right, Vec::new());
                right.read_to_end(&mut received).unwrap();
                assert!(received == data, "damaged");
            }
        },
    );
}

#[watched]
fn peek_leaves_the_data() {
    on_virtual(|| {
        let (mut left, right) = pair();
        let peeking = thread::spawn(move || {
            let mut right = right;
            let mut buffer = [0; 4];
            assert_eq!(right.peek(&mut buffer[..1]).unwrap(), 1);
            assert_eq!(buffer[0], b'w');
            right.read_exact(&mut buffer).unwrap();
            assert_eq!(&buffer, b"weft");
            assert_eq!(right.peek(&mut buffer).unwrap(), 0);
        });
        left.write_all(b"weft").unwrap();
        left.shutdown(Shutdown::Write).unwrap();
        peeking.join().unwrap();
    });
}

#[watched]
fn vectored_reads_and_writes() {
    on_virtual(|| {
        let (mut left, mut right) = pair();
        let reader = thread::spawn(move || {
            let (mut one, mut two) = ([0; 4], [0; 8]);
            let slices = &mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
            assert_eq!(right.read_vectored(slices).unwrap(), 8);
            assert_eq!((&one, &two[..4]), (b"warp", &b"weft"[..]));
        });
        let slices = [
            IoSlice::new(b"warp"),
            IoSlice::new(b"we"),
            IoSlice::new(b"ft"),
        ];
        assert_eq!(left.write_vectored(&slices).unwrap(), 8);
        reader.join().unwrap();
    });
}

#[watched]
fn a_listener_is_shared_by_both_kinds_of_thread() {
    let acceptors = 4 * most_carriers();
    let clients = many_files();
    let (listener, address) = listen();
    let seen = Mutex::new(HashSet::new());
    // Takes connections until one says goodbye.
    let accept = || {
        loop {
            let mut number = [0; 8];
            listener
                .accept()
                .unwrap()
                .0
                .read_exact(&mut number)
                .unwrap();
            match usize::from_le_bytes(number) {
                usize::MAX => return,
                number => assert!(seen.lock().unwrap().insert(number), "{number} twice"),
            }
        }
    };
    let say = |number: usize| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&number.to_le_bytes()).unwrap();
        // The accepting side has closed it. When the backlog is full, the order differs.
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    };
    std::thread::scope(|platform| {
        platform.spawn(accept);
        thread::scope(|scope| {
            for _ in 0..acceptors {
                scope.spawn(accept);
            }
            thread::scope(|scope| {
                for i in 0..clients {
                    scope.spawn(move || say(i));
                }
            });
            for _ in 0..=acceptors {
                scope.spawn(move || say(usize::MAX));
            }
        });
    });
    assert_eq!(seen.into_inner().unwrap().len(), clients);
    assert_eq!(sys::status_flags(&listener) & libc::O_NONBLOCK, 0);
}

#[watched]
fn connecting_to_nobody_is_refused() {
    let (listener, address) = listen();
    drop(listener);
    on_virtual(move || {
        let kind = TcpStream::connect(address).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::ConnectionRefused);
        let long = Duration::from_secs(60);
        let kind = TcpStream::connect_timeout(&address, long)
            .unwrap_err()
            .kind();
        assert_eq!(kind, ErrorKind::ConnectionRefused);
    });
}

/// Returns a listener whose backlog is full, with the connections that fill it.
fn full_listener() -> (TcpListener, SocketAddr, Vec<TcpStream>) {
    let (listener, address) = listen();
    // SAFETY: a second `listen` only sets the length of the backlog.
    sys::check(unsafe { libc::listen(listener.as_raw_fd(), 1) }).unwrap();
    let mut filling = Vec::new();
    loop {
        match TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
            Ok(stream) => filling.push(stream),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                return (listener, address, filling);
            }
        }
    }
}

#[watched]
fn connect_timeout_to_a_full_backlog_times_out() {
    on_virtual(|| {
        let (_listener, address, _filling) = full_listener();
        let error = TcpStream::connect_timeout(&address, Duration::from_millis(30)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    });
}

#[watched]
fn connect_waits_for_room_in_the_backlog() {
    // A client that finds the backlog full tries again a second later, then two, then four, up to a
    // minute: so there are few.
    let few = [("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")];
    child::isolated(&few, || {
        let (listener, address, filling) = full_listener();
        let count = 2 * most_carriers();
        let expected = filling.len() + count;
        let connected = AtomicUsize::new(0);
        block_then(
            count,
            |_| {
                drop(TcpStream::connect(address).unwrap());
                connected.fetch_add(1, SeqCst);
            },
            || {
                for _ in 0..expected {
                    listener.accept().unwrap();
                }
            },
        );
        assert_eq!(connected.into_inner(), count);
    });
}

#[watched]
fn half_close_ends_one_direction() {
    on_virtual(|| {
        let (mut left, mut right) = pair();
        let server = thread::spawn(move || {
            let mut request = String::new();
            right.read_to_string(&mut request).unwrap();
            right.write_all(request.to_uppercase().as_bytes()).unwrap();
        });
        left.write_all(b"weft").unwrap();
        left.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        left.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "WEFT");
        server.join().unwrap();
    });
}

#[watched]
fn shutdown_wakes_the_parked_readers() {
    let (left, _right) = pair();
    block_then(
        4 * most_carriers(),
        |_| assert_eq!((&left).read(&mut [0; 8]).unwrap(), 0),
        || left.shutdown(Shutdown::Both).unwrap(),
    );
}

#[watched]
fn shutdown_of_a_listener_wakes_the_acceptors() {
    let (listener, _) = listen();
    block_then(
        4 * most_carriers(),
        |_| {
            assert_eq!(
                listener.accept().unwrap_err().kind(),
                ErrorKind::InvalidInput
            )
        },
        || {
            // SAFETY: touches no memory.
            sys::check(unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RDWR) }).unwrap();
        },
    );
}

#[watched]
fn a_reset_by_the_peer_is_an_error() {
    let pairs: Vec<_> = (0..4 * most_carriers())
        .map(|_| {
            let (left, right) = pair();
            (left, Mutex::new(Some(right)))
        })
        .collect();
    block_then(
        pairs.len(),
        |i| {
            let error = (&pairs[i].0).read(&mut [0; 8]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            let error = (&pairs[i].0).write(b"late").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        },
        || {
            for (_, right) in &pairs {
                let right = right.lock().unwrap().take().unwrap();
                // Closing with a linger time of zero sends a reset.
                let abort = libc::linger {
                    l_onoff: 1,
                    l_linger: 0,
                };
                sys::set_socket_option(&right, libc::SOL_SOCKET, libc::SO_LINGER, &abort);
            }
        },
    );
}

#[watched]
fn one_socket_read_by_many_gives_each_byte_once() {
    let (left, right) = pair();
    each_byte_once(&right, left);
}

#[watched]
fn one_write_call_writes_everything() {
    // A blocking `write` of the kernel returns early only for a signal or an error.
    let data = pattern(8 << 20);
    let (left, mut right) = pair();
    thread::scope(|scope| {
        let data = &data;
        scope.spawn(move || {
            assert_eq!(sys::write(left.as_raw_fd(), data).unwrap(), data.len());
        });
        scope.spawn(move || {
            let mut received = Vec::new();
            right.read_to_end(&mut received).unwrap();
            assert!(&received == data, "damaged");
        });
    });
}

//! A server with fewer descriptors than clients serves them all, one after the other.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::common::sys::check;
use crate::common::{child, watched};
use pirn::thread;

const CLIENTS: usize = 100;

/// Limits the number of descriptors to a few more than there are.
fn limit_descriptors() {
    let lowest_free = File::open("/dev/null").unwrap().as_raw_fd() as u64;
    let limit = libc::rlimit {
        rlim_cur: lowest_free + 4,
        rlim_max: lowest_free + 4,
    };
    // SAFETY: reads one `rlimit`.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }).unwrap();
}

/// Serves until all clients have come. When there is no descriptor left it tries again at once.
fn serve(listener: &TcpListener) {
    let (refused, accepted) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        while accepted.load(SeqCst) < CLIENTS {
            match listener.accept() {
                Ok((mut stream, _)) => {
                    accepted.fetch_add(1, SeqCst);
                    scope.spawn(move || {
                        let mut byte = [0];
                        stream.read_exact(&mut byte).unwrap();
                        stream.write_all(&byte).unwrap();
                    });
                }
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
                    refused.fetch_add(1, SeqCst);
                }
            }
        }
    });
    assert!(refused.into_inner() > 0);
}

fn every_client_is_served() {
    thread::spawn(|| ()).join().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // They are in the listener's queue before the server begins.
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    limit_descriptors();
    for mut client in &clients {
        client.write_all(b"x").unwrap();
    }
    thread::scope(|scope| {
        scope.spawn(|| serve(&listener));
    });
    for mut client in &clients {
        let mut text = String::new();
        match client.read_to_string(&mut text) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        assert_eq!(text, "x");
    }
}

#[watched]
fn by_one_carrier() {
    let variables = [("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")];
    child::isolated(&variables, every_client_is_served);
}

#[watched]
fn by_all_carriers() {
    child::isolated(&[], every_client_is_served);
}

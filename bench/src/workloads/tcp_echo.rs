//! A message over loopback TCP and back, on one connection: client and server on virtual threads,
//! and for comparison on platform threads.

use crate::place::Place;
use crate::workload::{Sample, Size, Workload};
use anyhow::{Result, ensure};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

pub struct TcpEcho;

impl Workload for TcpEcho {
    fn name(&self) -> &'static str {
        "tcp_echo"
    }

    fn about(&self) -> &'static str {
        "64 bytes there and back over one loopback TCP connection"
    }

    fn round(&self, size: Size) -> Result<Vec<Sample>> {
        let count = size.pick(20_000, 300);
        let mut samples = Vec::new();
        for place in Place::BOTH {
            let elapsed = place.run(move || connection(place, count))?;
            samples.push(Sample::nanos(
                &place.to_string(),
                elapsed,
                count,
                "round trip",
            ));
        }
        Ok(samples)
    }
}

type Message = [u8; 64];

/// Both ends of one connection: the server on a new thread, the client on this one.
fn connection(place: Place, count: usize) -> Result<Duration> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let server = place.start(move || serve(&listener));
    let elapsed = client(address, count)?;
    let served = server.wait()??;
    ensure!(
        served == count,
        "the server echoed {served} messages, not {count}"
    );
    Ok(elapsed)
}

fn client(address: SocketAddr, count: usize) -> Result<Duration> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let start = Instant::now();
    for i in 0..count {
        let message: Message = [i as u8; 64];
        let mut echo: Message = [0; 64];
        stream.write_all(&message)?;
        stream.read_exact(&mut echo)?;
        ensure!(echo == message, "message {i} came back changed");
    }
    Ok(start.elapsed())
}

/// Echoes one connection's messages; gives how many.
fn serve(listener: &TcpListener) -> Result<usize> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut message: Message = [0; 64];
    for count in 0.. {
        match stream.read_exact(&mut message) {
            Ok(()) => stream.write_all(&message)?,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(count),
            Err(error) => return Err(error.into()),
        }
    }
    unreachable!("the client closes the connection")
}

//! `echo`: a server and its clients, a coroutine for each end of each connection.

use crate::coroutines::{Arrivals, joined};
use anyhow::Result;
use may::go;
use may::net::{TcpListener, TcpStream};
use may::sync::SyncFlag;
use peer_protocol::{Params, Workload, nanos_per};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

const MESSAGE: usize = 64;

pub fn echo(params: &Params) -> Result<Workload> {
    let (connections, trips) = (params.count("connections")?, params.get("trips")?);
    let server = start_server()?;
    Ok(Box::new(move |round| {
        let gate = Arc::new((Arrivals::expect(connections), SyncFlag::new()));
        let spawn = |number| {
            let gate = gate.clone();
            go!(move || {
                let stream = connect(server);
                // One that has failed must not keep the others waiting.
                let (arrivals, open) = &*gate;
                arrivals.arrive();
                open.wait();
                exchange(stream?, [number as u8; MESSAGE], trips)
            })
        };
        let handles: Vec<_> = (0..connections).map(spawn).collect();
        let (arrivals, open) = &*gate;
        arrivals.wait();
        let start = Instant::now();
        open.fire();
        let echoed: u64 = handles.into_iter().map(joined).sum::<io::Result<_>>()?;
        let count = connections as u64 * trips;
        let value = nanos_per(start.elapsed(), count);
        let due = count * MESSAGE as u64;
        round.metric("round trip", value, "ns/round trip", echoed, due);
        Ok(())
    }))
}

fn start_server() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    go!(move || {
        for stream in listener.incoming() {
            match stream {
                // The client hears of an error, for the connection ends.
                Ok(stream) => drop(go!(move || send_back(stream))),
                Err(error) => eprintln!("cannot accept: {error}"),
            }
        }
    });
    Ok(address)
}

fn send_back(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 4096];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => stream.write_all(&buffer[..length])?,
        }
    }
}

fn connect(server: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Gives how many bytes came back right.
fn exchange(mut stream: TcpStream, mut message: [u8; MESSAGE], trips: u64) -> io::Result<u64> {
    let mut right = 0;
    for trip in 0..trips {
        message[..8].copy_from_slice(&trip.to_le_bytes());
        stream.write_all(&message)?;
        let mut reply = [0; MESSAGE];
        stream.read_exact(&mut reply)?;
        right += message.iter().zip(&reply).filter(|(a, b)| a == b).count() as u64;
    }
    Ok(right)
}

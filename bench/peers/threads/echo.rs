//! `echo`: a TCP server with a thread for each connection, and its clients.

use super::crowd::Crowd;
use super::start::{join, join_all, spawn, spawn_all};
use crate::net::{TcpListener, TcpStream};
use anyhow::{Context, Result};
use peer_protocol::{Params, Workload, nanos_per};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

pub fn new(params: &Params) -> Result<Workload> {
    let (connections, trips) = (params.get("connections")?, params.get("trips")?);
    Ok(Box::new(move |round| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
        let address = listener.local_addr()?;
        let server = spawn(0, move || serve(&listener, connections))?;
        let crowd = Crowd::of(connections);
        let gate = Arc::clone(&crowd);
        let clients = spawn_all(connections, move |_| {
            // One that cannot connect must be at the gate too, where it is waited for.
            let connection = connect(address);
            gate.wait();
            echoed(connection.context("cannot connect")?, trips)
        })?;
        crowd.watch();
        let start = Instant::now();
        crowd.wake(&clients);
        let bytes = join_all(clients).map(Result::flatten).sum::<Result<u64>>();
        let elapsed = start.elapsed();
        // A server that has given up knows better than its clients why.
        if bytes.is_ok() || server.is_finished() {
            join(server)??;
        }
        let bytes = bytes?;

        let all = connections * trips;
        let nanos = nanos_per(elapsed, all);
        let due = all * size_of::<Message>() as u64;
        round.metric("round trip", nanos, "ns/round trip", bytes, due);
        Ok(())
    }))
}

type Message = [u8; 64];

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends this many messages; gives how many bytes of them came back right.
fn echoed(mut stream: TcpStream, trips: u64) -> Result<u64> {
    let mut right = 0;
    for trip in 0..trips {
        let message: Message = [trip as u8; _];
        let mut echo: Message = [0; _];
        stream.write_all(&message)?;
        stream.read_exact(&mut echo)?;
        let equal = message
            .iter()
            .zip(&echo)
            .filter(|(sent, back)| sent == back);
        right += equal.count() as u64;
    }
    Ok(right)
}

/// Accepts this many connections; returns when all of them are closed.
fn serve(listener: &TcpListener, connections: u64) -> Result<()> {
    let mut threads = Vec::with_capacity(connections as usize);
    for number in 0..connections {
        let (stream, _) = listener.accept().context("cannot accept")?;
        stream.set_nodelay(true)?;
        threads.push(spawn(number, move || echo(stream))?);
    }
    join_all(threads).try_for_each(|ended| Ok(ended??))
}

/// Sends back what comes, until nothing does.
fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 1024];
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..length])?;
    }
}

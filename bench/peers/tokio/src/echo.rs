//! `echo`: clients and a server in one program, over loopback.

use crate::place::Place;
use crate::serve::listen;
use anyhow::{Context, Result};
use peer_protocol::{Params, Workload, nanos_per};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const MESSAGE: usize = 64;

pub fn echo(runtime: Runtime, params: &Params) -> Result<Workload> {
    let (connections, trips) = (params.get("connections")?, params.get("trips")?);
    Ok(Box::new(move |round| {
        let (time, bytes) = runtime.block_on(exchange(connections, trips))?;
        let all_trips = connections * trips;
        let (value, due) = (nanos_per(time, all_trips), all_trips * MESSAGE as u64);
        round.metric("round trip", value, "ns/round trip", bytes, due);
        Ok(())
    }))
}

async fn exchange(connections: u64, trips: u64) -> Result<(Duration, u64)> {
    let listener = listen()?;
    let address = listener.local_addr()?;
    let gate = Place::for_tasks(connections);
    let (connected, mut outcomes) = mpsc::channel(1);
    let spawn = |_| tokio::spawn(client(address, trips, connected.clone(), gate.clone()));
    let clients: Vec<_> = (0..connections).map(spawn).collect();
    drop(connected);

    let all_connected = async {
        while let Some(outcome) = outcomes.recv().await {
            outcome?;
        }
        Ok(())
    };
    let (servers, ()) = tokio::try_join!(accept(listener, connections), all_connected)?;
    gate.all_here().await;

    let start = Instant::now();
    gate.wake_all();
    let mut bytes = 0;
    for client in clients {
        bytes += client.await?.context("a client failed")?;
    }
    let time = start.elapsed();
    for server in servers {
        server.await?.context("a server failed")?;
    }
    Ok((time, bytes))
}

/// Gives the tasks that serve the connections.
async fn accept(
    listener: TcpListener,
    connections: u64,
) -> Result<Vec<JoinHandle<io::Result<()>>>> {
    let mut servers = Vec::new();
    for _ in 0..connections {
        let (stream, _) = listener.accept().await.context("cannot accept")?;
        servers.push(tokio::spawn(send_back(stream)));
    }
    Ok(servers)
}

async fn send_back(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            length => stream.write_all(&buffer[..length]).await?,
        }
    }
}

/// Tells how connecting went, waits at the gate, and gives the number of bytes that came back
/// right.
async fn client(
    address: SocketAddr,
    trips: u64,
    connected: mpsc::Sender<Result<()>>,
    gate: Arc<Place>,
) -> io::Result<u64> {
    let (outcome, stream) = match connect(address).await {
        Ok(stream) => (Ok(()), Some(stream)),
        Err(error) => (Err(error).context("cannot connect"), None),
    };
    // The receiver is gone when another client has failed before.
    let _ = connected.send(outcome).await;
    // A wait for all outcomes ends when the last sender is gone.
    drop(connected);
    let Some(stream) = stream else {
        return Ok(0);
    };
    gate.stay().await;
    send_and_compare(stream, trips).await
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn send_and_compare(mut stream: TcpStream, trips: u64) -> io::Result<u64> {
    let mut right = 0;
    for trip in 0..trips {
        let message = [trip as u8; MESSAGE];
        let mut reply = [0; MESSAGE];
        stream.write_all(&message).await?;
        stream.read_exact(&mut reply).await?;
        if reply == message {
            right += MESSAGE as u64;
        }
    }
    Ok(right)
}

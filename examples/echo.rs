//! A TCP echo server with one thread per connection, and a few hundred clients that use it.
use pirn::thread;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const CLIENTS: usize = 400; // two descriptors each; `ulimit -n` is often 1024
const LINES: usize = 3;

#[pirn::main]
fn main() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || serve(&listener));

    let start = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| thread::spawn(move || talk(client, address)))
        .collect();
    for client in clients {
        client.join().unwrap()?;
    }
    let (lines, elapsed) = (CLIENTS * LINES, start.elapsed());
    println!("{CLIENTS} clients got all of their {lines} lines back, in {elapsed:.1?}");
    Ok(())
}

/// The server: one thread accepts, one more serves each connection.
fn serve(listener: &TcpListener) -> io::Result<()> {
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || echo(&stream));
    }
    Ok(())
}

/// Sends back all bytes, until the client hangs up.
fn echo(stream: &TcpStream) -> io::Result<u64> {
    io::copy(&mut &*stream, &mut &*stream)
}

/// A client: sends a text, waits for the echo, and pauses for a while.
fn talk(client: usize, server: SocketAddr) -> io::Result<()> {
    thread::sleep(Duration::from_millis(client as u64)); // they arrive one after the other
    let stream = TcpStream::connect(server)?;
    let mut echoes = BufReader::new(&stream).lines();
    for line in 0..LINES {
        let said = format!("client {client}, line {line}");
        writeln!(&stream, "{said}")?;
        let heard = echoes.next().expect("the server hung up")?;
        assert_eq!(heard, said);
        thread::sleep(Duration::from_millis(300));
    }
    Ok(())
}

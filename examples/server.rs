//! The lines of README.md: a TCP server with a thread per connection.
use pirn::thread;
use std::{io, net::TcpListener};

#[pirn::main]
fn main() -> io::Result<()> {
    for stream in TcpListener::bind("127.0.0.1:7000")?.incoming() {
        let stream = stream?;
        thread::spawn(move || io::copy(&mut &stream, &mut &stream)); // echo until it hangs up
    }
    Ok(())
}

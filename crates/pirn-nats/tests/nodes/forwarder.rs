//! A connection that can be cut: a forwarder between a node and its server.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Forwards connections to a port, until it is cut.
pub struct Forwarder {
    port: u16,
    state: Arc<Mutex<State>>,
}

struct State {
    /// The server's port.
    server: u16,
    is_cut: bool,
    streams: Vec<TcpStream>,
}

impl Forwarder {
    pub fn to(server: u16) -> Forwarder {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            server,
            is_cut: false,
            streams: Vec::new(),
        }));
        let forwarding = Arc::clone(&state);
        pirn::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let mut state = forwarding.lock().unwrap();
                let Ok(server) = TcpStream::connect(("127.0.0.1", state.server)) else {
                    continue;
                };
                if state.is_cut {
                    continue;
                }
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    state.streams.push(from.try_clone().unwrap());
                    pirn::thread::spawn(move || drop(forward(from, to)));
                }
            }
        });
        Forwarder { port, state }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Cuts all connections, and lets no others through until it is mended.
    pub fn cut(&self) {
        let mut state = self.state.lock().unwrap();
        state.is_cut = true;
        for stream in state.streams.drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Forwards to another port from now on.
    pub fn aim(&self, server: u16) {
        self.state.lock().unwrap().server = server;
    }

    pub fn mend(&self) {
        self.state.lock().unwrap().is_cut = false;
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return to.shutdown(Shutdown::Both);
        }
        to.write_all(&buffer[..count])?;
    }
}

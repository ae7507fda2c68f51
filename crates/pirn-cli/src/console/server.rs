//! Connections: a platform thread per connection, for one request.
//!
//! Platform threads, so that the command is not itself a process with virtual threads: `pirn dump
//! pirn` would find two of that name.

use std::error::Error;
use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::request::{self, NoRequest};
use super::response::{self, Status};
use super::{Console, routes};

/// How many connections are served at the same time. A page has one that stays.
const CONNECTIONS: usize = 32;
/// How long a client may refuse to take the next bytes.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long, and for how many bytes, a refused client may go on sending until it is cut off.
const LINGER: Duration = Duration::from_millis(200);
const LINGER_READS: usize = 16;

/// Accepts and serves connections. Returns only if that becomes impossible.
pub fn serve(listener: &TcpListener, console: &Arc<Console>) -> Result<(), Box<dyn Error>> {
    let open = Arc::new(AtomicUsize::new(0));
    for accepted in listener.incoming() {
        let Ok(mut stream) = accepted else {
            // The client is gone already, or no descriptors are left until others close.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let place = Place::take(&open);
        if place.is_none() {
            let _ = response::refuse(&mut stream, Status::Unavailable);
            continue;
        }
        let console = Arc::clone(console);
        // If no thread can be started, the client sees its connection closed, and may come again.
        let _ = thread::Builder::new()
            .name("console".into())
            .spawn(move || {
                let _place = place;
                // Errors mean that the client is gone.
                let _ = answer(&mut stream, &console);
            });
    }
    Ok(())
}

/// One of the connections that may be open.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Option<Place> {
        let place = Place(Arc::clone(open));
        // Dropping gives the place back. SeqCst, as nothing here is hot.
        (open.fetch_add(1, Ordering::SeqCst) < CONNECTIONS).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Reads and answers a request.
fn answer(stream: &mut TcpStream, console: &Console) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let refused = match request::read(stream) {
        Ok(request) => match console.guard.check(&request) {
            Ok(path) => return routes::answer(console, path, &request.query, stream),
            Err(status) => status,
        },
        Err(NoRequest::Refused(status)) => status,
        Err(NoRequest::Gone) => return Ok(()),
    };
    response::refuse(stream, refused)?;
    linger(stream)
}

/// Waits, within bounds, until the client has closed its side: closing a socket that has unread
/// bytes resets the connection, and the client may then never see the response.
fn linger(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(LINGER))?;
    let mut rest = [0; 4096];
    for _ in 0..LINGER_READS {
        if stream.read(&mut rest)? == 0 {
            break;
        }
    }
    Ok(())
}

//! What a page is told without asking, as Server-Sent Events.
//!
//! | event | data |
//! |---|---|
//! | `hello` | the process, when it was started, the interval; first, and after a reconnection again |
//! | `points` | counters and rates: all that are kept, then each new one |
//! | `dump` | the number of a new dump: the page asks for what it shows of it |
//! | `status` | whether the process answers |

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde::Serialize;

use super::views::{Point, newer, newest};
use super::{Console, response};
use crate::live::Status;

/// Something is sent at least this often: by failing it shows that the page is gone.
const PING: Duration = Duration::from_secs(5);

#[derive(Serialize)]
struct Hello<'a> {
    pid: u32,
    name: &'a str,
    program: &'a str,
    /// Milliseconds since 1970.
    started: u64,
    version: &'static str,
}

#[derive(Clone, Serialize, PartialEq)]
struct State {
    state: &'static str,
    text: String,
}

#[derive(Clone, Copy, Serialize, PartialEq)]
struct NewDump {
    number: u64,
    took_ms: f64,
}

/// Sends events until the page is gone.
pub fn serve(console: &Console, out: &mut TcpStream) -> io::Result<()> {
    let _watcher = console.watchers.enter();
    let live = &console.live;
    response::stream(out, "text/event-stream; charset=utf-8")?;
    out.write_all(b"retry: 1000\n\n")?;
    hello(console, out)?;
    let mut last_sample = 0;
    let (mut last_state, mut last_dump, mut last_trouble) = (None, None, None);
    let mut sent = Instant::now();
    loop {
        // Before looking, so that what comes while looking is seen the next time.
        let revision = live.revision();
        let mut events = Vec::new();
        let points: Vec<Point> = newer(&live.history(), last_sample);
        if let Some(last) = points.last() {
            last_sample = last.time;
            event(&mut events, "points", &points)?;
        }
        let state = Some(state(&live.status()));
        if state != last_state {
            event(&mut events, "status", &state)?;
            last_state = state;
        }
        let dump = newest(live).map(|snapshot| NewDump {
            number: snapshot.number,
            took_ms: snapshot.took.as_secs_f64() * 1e3,
        });
        if dump != last_dump {
            event(&mut events, "dump", &dump)?;
            last_dump = dump;
        }
        let trouble = Some(live.trouble().unwrap_or_default());
        if trouble != last_trouble {
            event(&mut events, "trouble", &trouble)?;
            last_trouble = trouble;
        }
        if events.is_empty() && sent.elapsed() >= PING {
            events.extend_from_slice(b":\n\n");
        }
        if !events.is_empty() {
            out.write_all(&events)?;
            sent = Instant::now();
        }
        live.wait(revision, PING);
        console.watchers.look_again();
    }
}

fn hello(console: &Console, out: &mut TcpStream) -> io::Result<()> {
    let identity = console.live.identity();
    let now = UNIX_EPOCH.elapsed().unwrap_or_default();
    let started = now.saturating_sub(identity.uptime()).as_millis();
    let hello = Hello {
        pid: identity.pid,
        name: &identity.name,
        program: &identity.program,
        started: u64::try_from(started).unwrap_or(u64::MAX),
        version: env!("CARGO_PKG_VERSION"),
    };
    let mut bytes = Vec::new();
    event(&mut bytes, "hello", &hello)?;
    out.write_all(&bytes)
}

fn state(status: &Status) -> State {
    let (state, text) = match status {
        Status::Alive => ("alive", String::new()),
        Status::Silent { seconds, why } => ("silent", format!("silent for {seconds} s: {why}")),
        Status::Ended(text) => ("ended", text.clone()),
    };
    State { state, text }
}

/// Adds an event. JSON has no line ends, by which a name could make an event of its own.
fn event<T: Serialize>(out: &mut Vec<u8>, name: &str, data: &T) -> io::Result<()> {
    write!(out, "event: {name}\ndata: ")?;
    serde_json::to_writer(&mut *out, data)?;
    out.write_all(b"\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_end_an_event() {
        let mut sent = Vec::new();
        event(&mut sent, "status", &"a\n\nevent: b\r\u{2028}").unwrap();
        let sent = String::from_utf8(sent).unwrap();
        assert_eq!(sent.matches('\n').count(), 3, "{sent:?}");
        assert!(!sent.contains('\r'));
    }
}

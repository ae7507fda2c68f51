//! What a page is told without asking, as Server-Sent Events.
//!
//! | event | data |
//! |---|---|
//! | `hello` | the process, when it was started, the interval; first, and after a reconnection again |
//! | `points` | counters and rates: all that are kept, then each new one |
//! | `dump` | the number of a new dump: the page asks for what it shows of it |
//! | `status` | whether the process answers |

use std::io;
use std::time::{Duration, Instant, UNIX_EPOCH};

use pirn_http::{Event, Request, Response};
use pirn_live::Status;
use serde::Serialize;

use crate::Console;
use crate::views::{Point, newer, newest};

/// Something is sent at least this often: by failing it shows that the page is gone.
const PING: Duration = Duration::from_secs(5);
/// The page connects again after this long.
const AGAIN: Duration = Duration::from_secs(1);

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
pub fn serve(console: &Console, request: &mut Request) -> io::Result<Response> {
    let _watcher = console.watchers.enter();
    let live = &console.live;
    let mut out = request.events()?;
    out.send(&hello(console)?.retry(AGAIN))?;
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
            events.push(event("points", &points)?);
        }
        let state = Some(state(&live.status()));
        if state != last_state {
            events.push(event("status", &state)?);
            last_state = state;
        }
        let dump = newest(live).map(|snapshot| NewDump {
            number: snapshot.number,
            took_ms: snapshot.took.as_secs_f64() * 1e3,
        });
        if dump != last_dump {
            events.push(event("dump", &dump)?);
            last_dump = dump;
        }
        let trouble = Some(live.trouble().unwrap_or_default());
        if trouble != last_trouble {
            events.push(event("trouble", &trouble)?);
            last_trouble = trouble;
        }
        if !events.is_empty() {
            sent = Instant::now();
        } else if sent.elapsed() >= PING {
            out.comment("")?;
            sent = Instant::now();
        }
        events.iter().try_for_each(|event| out.send(event))?;
        live.wait(revision, PING);
        console.watchers.look_again();
    }
}

fn hello(console: &Console) -> io::Result<Event> {
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
    event("hello", &hello)
}

fn state(status: &Status) -> State {
    let (state, text) = match status {
        Status::Alive => ("alive", String::new()),
        Status::Silent { seconds, why } => ("silent", format!("silent for {seconds} s: {why}")),
        Status::Ended(text) => ("ended", text.clone()),
    };
    State { state, text }
}

fn event<T: Serialize>(name: &str, data: &T) -> io::Result<Event> {
    Ok(Event::new(serde_json::to_string(data)?).name(name))
}

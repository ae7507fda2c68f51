//! Files to keep: a dump with each thread, and a trace.

use std::io::{self, BufWriter, Write};
use std::net::TcpStream;
use std::sync::{Arc, PoisonError};

use pirn_dump::{Format, View};
use pirn_events::{Recording, Timeline, perfetto};

use super::request::Query;
use super::{Console, response, views};
use crate::live::Snapshot;

/// Sends a dump, in the form that the path's ending names.
pub fn dump(console: &Console, path: &str, out: &mut TcpStream) -> io::Result<()> {
    let snapshot = match threads(console) {
        Ok(snapshot) => snapshot,
        Err(error) => return failed(out, &error),
    };
    let (dump, names) = (&snapshot.dump, &snapshot.names);
    let ending = path.strip_prefix("dump.").unwrap_or(path);
    let name = format!("pirn-{}.{ending}", console.live.identity().pid);
    response::save_as(out, &name, |out| match ending {
        "json" => Format::Json.write(dump, names, &View::default(), out),
        "txt" => Format::Text.write(dump, names, &View::default(), out),
        _ => dump.write_to(out),
    })
}

/// Returns a dump of each thread that is taken now.
fn threads(console: &Console) -> Result<Arc<Snapshot>, String> {
    console.watchers.asks_for_threads();
    views::whole(&console.live, views::PATIENCE)
}

/// Sends what was recorded last, as a trace.
pub fn trace(console: &Console, query: &Query, out: &mut TcpStream) -> io::Result<()> {
    if query.number("seconds").is_some()
        && let Err(error) = views::record(console, query)
    {
        return failed(out, &error);
    }
    let recorded = console
        .recorded
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let Some(bytes) = recorded else {
        return failed(out, "nothing has been recorded yet");
    };
    let recording = Recording::read(&mut bytes.as_slice()).map_err(io::Error::other)?;
    let name = format!("pirn-{}.pftrace", console.live.identity().pid);
    response::save_as(out, &name, |out| {
        let mut out = BufWriter::new(out);
        perfetto::write(&Timeline::new(&recording), &mut out)?;
        out.flush()
    })
}

fn failed(out: &mut TcpStream, error: &str) -> io::Result<()> {
    let text = format!("{error}\n");
    response::send(
        out,
        response::Status::Unavailable,
        "text/plain; charset=utf-8",
        text.as_bytes(),
    )
}

//! Files to keep: a dump with each thread, and a trace.

use std::io::{self, BufWriter, Write};
use std::sync::{Arc, PoisonError};

use pirn_dump::{Format, View};
use pirn_events::{Recording, Timeline, perfetto};
use pirn_http::header::CONTENT_DISPOSITION;
use pirn_http::{Request, Response, Status};
use pirn_live::Snapshot;

use crate::request::Query;
use crate::{Console, views};

/// Sends a dump, in the form that the path's ending names.
pub fn dump(console: &Console, path: &str, request: &mut Request) -> io::Result<Response> {
    let snapshot = match threads(console) {
        Ok(snapshot) => snapshot,
        Err(error) => return Ok(failed(&error)),
    };
    let (dump, names) = (&snapshot.dump, &snapshot.names);
    let ending = path.strip_prefix("dump.").unwrap_or(path);
    let name = format!("pirn-{}.{ending}", console.live.identity().pid);
    save_as(request, &name, |out| match ending {
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
pub fn trace(console: &Console, query: &Query, request: &mut Request) -> io::Result<Response> {
    if query.number("seconds").is_some()
        && let Err(error) = views::record(console, query)
    {
        return Ok(failed(&error));
    }
    let recorded = console
        .recorded
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let Some(bytes) = recorded else {
        return Ok(failed("nothing has been recorded yet"));
    };
    let recording = Recording::read(&mut bytes.as_slice()).map_err(io::Error::other)?;
    let name = format!("pirn-{}.pftrace", console.live.identity().pid);
    save_as(request, &name, |out| {
        let mut out = BufWriter::new(out);
        perfetto::write(&Timeline::new(&recording), &mut out)?;
        out.flush()
    })
}

fn failed(error: &str) -> Response {
    Response::new(Status::SERVICE_UNAVAILABLE).text(format!("{error}\n"))
}

/// Sends a file to be saved, which is written piece by piece. If that fails in the middle, the
/// browser sees that the end is missing.
fn save_as(
    request: &mut Request,
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Response> {
    let disposition = format!("attachment; filename=\"{name}\"");
    let head = Response::ok().content_type("application/octet-stream");
    let mut body = request.respond(head.header(CONTENT_DISPOSITION, disposition))?;
    write(&mut body)?;
    Ok(Response::ok()) // It has been sent.
}

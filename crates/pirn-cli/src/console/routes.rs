//! What is behind each path.

use std::io;
use std::net::TcpStream;

use serde::Serialize;

use super::request::Query;
use super::response::{self, Status};
use super::{Console, download, page, stream, views};

const JSON: &str = "application/json";

/// Answers a request that has been let in.
pub fn answer(console: &Console, path: &str, query: &Query, out: &mut TcpStream) -> io::Result<()> {
    match path {
        "events" => stream::serve(console, out),
        "groups" => json(out, views::groups(console, query)),
        "threads" => json(out, views::threads(console, query)),
        "thread" => json(out, views::thread(console, query)),
        "scopes" => json(out, views::scopes(&console.live, query)),
        "record" => json(out, views::record(console, query)),
        "dump.pirndump" | "dump.json" | "dump.txt" => download::dump(console, path, out),
        "trace.pftrace" => download::trace(console, query, out),
        _ => match page::file(path) {
            Some((kind, bytes)) => response::send(out, Status::Ok, kind, bytes),
            None => response::refuse(out, Status::NotFound),
        },
    }
}

/// Sends a value, or what is wrong: `{"error":"…"}`, which the page shows.
fn json<T: Serialize>(out: &mut TcpStream, answer: Result<T, String>) -> io::Result<()> {
    #[derive(Serialize)]
    struct Wrong {
        error: String,
    }
    let body = match answer {
        Ok(value) => serde_json::to_vec(&value),
        Err(error) => serde_json::to_vec(&Wrong { error }),
    };
    response::send(out, Status::Ok, JSON, &body.map_err(io::Error::other)?)
}

//! Benchmark peer: `http-server` with the server `pirn-http`, as its own guide uses it. A virtual
//! thread for each connection of HTTP/1.1, and for each stream of HTTP/2, on which the handler
//! runs.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use peer_protocol::{Certificate, Params, Workload, listening, until_end_of_input};
use pirn_http::{Request, Server, Tls};
use std::io::{self, Read};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// How many bytes of a body are read at once.
const PIECE: usize = 16 * 1024;

#[pirn::main]
fn main() -> ExitCode {
    let version = concat!(
        "pirn-http ",
        env!("CARGO_PKG_VERSION"),
        ", ",
        env!("RUSTC_VERSION")
    );
    peer_protocol::run("pirn-http", version, |name, params| {
        (name == "http-server").then(|| serve(params))
    })
}

/// Serves until the end of input; there are no rounds.
fn serve(params: &Params) -> Result<Workload> {
    let server = server(params)?;
    let bound = match params.get("tls")? {
        0 => server.bind("127.0.0.1:0")?,
        _ => {
            let Certificate { chain, key } = Certificate::from_environment()?;
            let tls = Tls::from_files(chain, key).context("the certificate")?;
            server.bind_tls("127.0.0.1:0", &tls)?
        }
    };
    let running = bound.start()?;
    listening(running.local_addr().context("no address")?.port());
    until_end_of_input();
    Ok(Box::new(|_| bail!("a server has no rounds")))
}

fn server(params: &Params) -> Result<Server> {
    let delay = Duration::from_millis(params.get("delay_ms")?);
    let body = Bytes::from(vec![b'x'; params.count("body")?]);
    Ok(Server::new()
        .get("/", move || {
            if !delay.is_zero() {
                thread::sleep(delay);
            }
            "Hello, World!"
        })
        .get("/body", move || body.clone())
        .post("/body", count))
}

/// Answers with the number of bytes of the body.
fn count(request: &mut Request) -> io::Result<String> {
    let mut piece = [0; PIECE];
    let mut length = 0;
    loop {
        match request.read(&mut piece)? {
            0 => return Ok(length.to_string()),
            read => length += read,
        }
    }
}

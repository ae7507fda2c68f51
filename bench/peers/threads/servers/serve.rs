//! `serve`, and `http-server` as far as it goes: the HTTP server of a textbook, with a thread for
//! each connection.

use super::server::{self, listen};
use super::start::spawn;
use anyhow::{Context, Result, ensure};
use peer_protocol::{Params, Workload, listening, until_end_of_input};
use std::net::Ipv4Addr;
use std::time::Duration;

pub fn new(params: &Params) -> Result<Workload> {
    let delay = Duration::from_millis(params.get("delay_ms")?);
    let listener = listen((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
    let port = listener.local_addr()?.port();
    spawn(0, move || server::serve(&listener, delay))?;
    listening(port);
    until_end_of_input();
    Ok(Box::new(|_| Ok(())))
}

/// The server of a textbook, beside which those for production are measured: a greeting is all that
/// it has.
pub fn http_server(params: &Params) -> Result<Workload> {
    ensure!(
        params.get("http2")? == 0,
        "the server of a textbook speaks no HTTP/2"
    );
    ensure!(
        params.get("tls")? == 0,
        "the server of a textbook speaks no TLS"
    );
    ensure!(
        params.get("body")? == 0,
        "the server of a textbook has no bodies to send or receive"
    );
    new(params)
}

//! `serve`: the demo's HTTP server, with a thread for each connection.

use super::server::{Server, listen};
use super::start::spawn;
use super::threads::Ours;
use anyhow::{Context, Result};
use peer_protocol::{Params, Workload, listening, until_end_of_input};
use std::net::Ipv4Addr;
use std::time::Duration;

pub fn new(params: &Params) -> Result<Workload> {
    let server = Server::new(Ours, Duration::from_millis(params.get("delay_ms")?));
    let listener = listen((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
    let port = listener.local_addr()?.port();
    spawn(0, move || server.serve(&listener))?;
    listening(port);
    until_end_of_input();
    Ok(Box::new(|_| Ok(())))
}

//! `run-redis`: this process becomes a `redis-server`, whose port it tells before.

use anyhow::{Context, Error};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use crate::Starter;

/// Replaces this process. Returns only if that fails.
pub fn become_server(starter: &Starter) -> Error {
    match free_port() {
        Ok(port) => {
            peer_protocol::listening(port);
            let port = port.to_string();
            let options = ["--port", &port, "--bind", "127.0.0.1", "--save", ""];
            let mut command = starter.command(&["redis-server"]);
            let error = command.args(options).stdout(Stdio::null()).exec();
            Error::new(error).context("cannot start redis-server")
        }
        Err(error) => error,
    }
}

/// A port that is free now. Another process may take it before the server does.
fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

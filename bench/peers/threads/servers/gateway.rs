//! `gateway`: an HTTP server whose every answer takes three calls of another one.

use super::http::{self, Answer};
use super::server::listen;
use super::start::spawn;
use anyhow::{Context, Result};
use peer_protocol::{Params, Workload, listening, until_end_of_input};
use std::net::Ipv4Addr;
use std::sync::Arc;
use ureq::Agent;

thread_local! {
    /// Each connection's thread has an agent of its own, and so its own connection to the backend:
    /// ureq's pool walks all of its idle connections for each call.
    static AGENT: Agent = Agent::config_builder()
        .proxy(None) // the environment's is not for loopback
        .input_buffer_size(BUFFER)
        .output_buffer_size(BUFFER)
        .build()
        .into();
}

/// Bytes of the buffers of a connection: 128 KiB each, which is ureq's default, is a lot for
/// thousands.
const BUFFER: usize = 4096;

pub fn new(params: &Params) -> Result<Workload> {
    let gateway = Arc::new(Gateway {
        backend: format!("http://127.0.0.1:{}/", params.get("backend")?),
    });
    let listener = listen((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
    let port = listener.local_addr()?.port();
    spawn(0, move || {
        http::serve(&listener, move || gateway.answer());
    })?;
    listening(port);
    until_end_of_input();
    Ok(Box::new(|_| Ok(())))
}

struct Gateway {
    backend: String,
}

impl Gateway {
    fn answer(&self) -> Answer {
        match self.three_calls() {
            Ok(length) => Answer::ok(length.to_string()),
            Err(error) => Answer::bad_gateway(error.to_string()),
        }
    }

    /// The sum of the lengths of what the backend answers.
    fn three_calls(&self) -> Result<usize, ureq::Error> {
        let mut length = 0;
        for _ in 0..3 {
            let mut response = AGENT.with(|agent| agent.get(&self.backend).call())?;
            length += response.body_mut().read_to_vec()?.len();
        }
        Ok(length)
    }
}

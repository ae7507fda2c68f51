//! The servers of `bench/PROTOCOL.md` on `std`'s sockets, with a thread for each connection.

mod gateway;
mod http;
mod serve;
mod server;

use crate::workloads::start;
use anyhow::Result;
use peer_protocol::{Params, Workload};

/// Makes the workload of this name.
pub fn find(name: &str, params: &Params) -> Option<Result<Workload>> {
    Some(match name {
        "serve" => serve::new(params),
        "http-server" => serve::http_server(params),
        "gateway" => gateway::new(params),
        _ => return None,
    })
}

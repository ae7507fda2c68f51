//! `serve` and `gateway`: HTTP servers with may_minihttp, a coroutine for each connection.
//!
//! may_minihttp does not honour `Connection: close`: it serves a connection until the client
//! closes it, and lets no service do otherwise. Its listen backlog is always 1024.

use crate::http_client::Client;
use anyhow::Result;
use may::coroutine::sleep;
use may_minihttp::{HttpServer, HttpService, Request, Response};
use peer_protocol::{Params, Workload, listening, until_end_of_input};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

pub fn serve(params: &Params) -> Result<Workload> {
    let delay = Duration::from_millis(params.get("delay_ms")?);
    run(Hello { delay })
}

pub fn gateway(params: &Params) -> Result<Workload> {
    let port = u16::try_from(params.get("backend")?)?;
    let backend = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let client = Arc::new(Client::new(backend));
    run(Gateway { client })
}

/// Serves until the end of input; there are no rounds.
fn run(service: impl HttpService + Clone + Send + Sync + 'static) -> Result<Workload> {
    let address = free_address()?;
    HttpServer(service).start(address)?;
    listening(address.port());
    until_end_of_input();
    Ok(Box::new(|_| Ok(())))
}

/// may_minihttp cannot tell which port it was given: this finds one that nobody has.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

#[derive(Clone)]
struct Hello {
    delay: Duration,
}

impl HttpService for Hello {
    fn call(&mut self, _: Request, response: &mut Response) -> io::Result<()> {
        if !self.delay.is_zero() {
            sleep(self.delay);
        }
        response
            .header("Content-Type: text/plain")
            .body("Hello, World!");
        Ok(())
    }
}

#[derive(Clone)]
struct Gateway {
    client: Arc<Client>,
}

impl HttpService for Gateway {
    fn call(&mut self, _: Request, response: &mut Response) -> io::Result<()> {
        response.header("Content-Type: text/plain");
        let lengths = (0..3).map(|_| self.client.get("/").map(|body| body.len()));
        match lengths.sum::<io::Result<usize>>() {
            Ok(sum) => response.body_vec(sum.to_string().into_bytes()),
            Err(error) => {
                response.status_code(502, "Bad Gateway");
                response.body_vec(error.to_string().into_bytes());
            }
        }
        Ok(())
    }
}

//! `serve`, `gateway` and `http-server`: HTTP servers with may_minihttp, a coroutine for each
//! connection.
//!
//! may_minihttp does not honour `Connection: close`: it serves a connection until the client
//! closes it, and lets no service do otherwise. Its listen backlog is always 1024.

use crate::http_client::Client;
use anyhow::{Result, ensure};
use may::coroutine::sleep;
use may_minihttp::{HttpServer, HttpService, Request, Response};
use peer_protocol::{Params, Workload, listening, until_end_of_input};
use std::io::{self, Read};
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

pub fn http_server(params: &Params) -> Result<Workload> {
    ensure!(params.get("http2")? == 0, "may_minihttp speaks no HTTP/2");
    ensure!(params.get("tls")? == 0, "may_minihttp speaks no TLS");
    let delay = Duration::from_millis(params.get("delay_ms")?);
    let body = vec![b'x'; params.count("body")?].into();
    run(Site { delay, body })
}

/// Serves until the end of input; there are no rounds.
fn run(service: impl HttpService + Clone + Send + Sync + 'static) -> Result<Workload> {
    let address = free_address()?;
    HttpServer(service).start(address)?;
    listening(address.port());
    until_end_of_input();
    Ok(Box::new(|_| Ok(())))
}

/// may_minihttp cannot tell which port it was given: this finds a free one.
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
struct Site {
    delay: Duration,
    body: Arc<[u8]>,
}

impl HttpService for Site {
    fn call(&mut self, request: Request, response: &mut Response) -> io::Result<()> {
        match (request.method(), request.path()) {
            ("GET", "/") => Hello { delay: self.delay }.call(request, response),
            ("GET", "/body") => {
                response.header("Content-Type: application/octet-stream");
                response.body_mut().extend_from_slice(&self.body);
                Ok(())
            }
            ("POST", "/body") => {
                let length = count(request.body())?;
                response.header("Content-Type: text/plain");
                response.body_vec(length.to_string().into_bytes());
                Ok(())
            }
            _ => {
                response.status_code(404, "Not Found");
                Ok(())
            }
        }
    }
}

/// The number of bytes of a body.
fn count(mut body: impl Read) -> io::Result<usize> {
    let mut piece = [0; 4096]; // stacks have 32 KiB
    let mut length = 0;
    loop {
        match body.read(&mut piece)? {
            0 => return Ok(length),
            read => length += read,
        }
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

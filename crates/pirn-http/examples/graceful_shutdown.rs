//! A server that answers what it has begun when it is told to end: `cargo run --release -p
//! pirn-http --example graceful_shutdown [ADDRESS]`, then `curl localhost:8080/slow` and Ctrl-C.

use pirn_http::{SIGINT, SIGTERM, Server, Timeouts};
use std::thread;
use std::time::Duration;

#[pirn::main]
fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    let left = Server::new()
        .get("/slow", || thread::sleep(Duration::from_secs(5)))
        .get("/forever", || thread::sleep(Duration::MAX))
        // Handlers that are not done by then are interrupted, wherever they wait.
        .timeouts(Timeouts::default().grace(Duration::from_secs(10)))
        .bind(address)?
        .serve_until([SIGINT, SIGTERM])?;
    println!("{left} connections were cut off");
    Ok(())
}

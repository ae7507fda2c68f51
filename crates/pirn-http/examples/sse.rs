//! Events that a page shows when they come: `cargo run --release -p pirn-http --example sse
//! [ADDRESS]`, then open the page.

use pirn_http::{Event, Request, Response, Server};
use std::io;
use std::thread;
use std::time::Duration;

const PAGE: &str = r#"<!DOCTYPE html>
<meta charset="utf-8"><title>Events</title>
<ul id="seen"></ul>
<script>
  new EventSource("/sse").onmessage = event => {
    const line = document.createElement("li");
    line.textContent = event.data;
    seen.append(line);
  };
</script>
"#;

/// Sends an event per second, until the client goes: then the sleep, or the send, fails.
fn events(request: &mut Request) -> io::Result<()> {
    println!("{:?} connected", request.header("user-agent"));
    let mut events = request.events()?;
    loop {
        events.send(&Event::new("hi!"))?;
        thread::sleep(Duration::from_secs(1));
    }
}

#[pirn::main]
fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    Server::new()
        .get("/", || Response::ok().html(PAGE))
        .get("/sse", events)
        .bind(address)?
        .serve()
}

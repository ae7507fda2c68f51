//! `pirn console`: a page about a running process, for a browser on this machine.
//!
//! ```text
//!   browser --- HTTP on loopback ---> routes --> guard, views, stream ---> Live ---> process
//!              /TOKEN/events …        path       token  JSON            Unix socket
//! ```
//!
//! This command serves, not the process: that never opens a port. Dumps are taken only while a page
//! is connected, and only of groups unless a page asks for single threads.

mod download;
mod guard;
mod open;
mod page;
mod request;
mod routes;
mod stream;
mod token;
mod views;
mod watchers;

use std::error::Error;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Args;
use pirn_dump::show;
use pirn_http::{Limits, Server, Timeouts};
use pirn_live::{Live, Settings, attach};

use guard::Guard;
use token::Token;
use watchers::Watchers;

/// The command line of `pirn console`.
#[derive(Args)]
pub struct ConsoleArgs {
    /// The process: its number or its name.
    #[arg(value_name = "PID|NAME")]
    process: String,
    /// Where to listen: an address that only this machine can reach. Port 0 is any free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = loopback)]
    listen: SocketAddr,
    /// Opens the page in the browser, with `xdg-open`.
    #[arg(long)]
    open: bool,
    /// How often the counters are read, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u64).range(100..=60_000))]
    interval_ms: u64,
}

/// Parses an address of this machine alone.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "it is not an address and a port, such as 127.0.0.1:8080".to_string())?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err("others could reach it: only 127.0.0.1 and [::1] are allowed".to_string()),
    }
}

/// How many connections there may be. A page has one that stays.
const CONNECTIONS: usize = 32;
/// How many header fields a request may have. Browsers send some 15.
const FIELDS: usize = 48;
/// How long a client may take for a request, and be silent before it.
const PATIENCE: Duration = Duration::from_secs(5);

/// What all connections share.
struct Console {
    live: Arc<Live>,
    guard: Guard,
    watchers: Watchers,
    /// What was recorded last, in the form of `pirn events --output FILE.events`.
    recorded: Mutex<Option<Arc<Vec<u8>>>>,
}

/// Runs `pirn console`, until the command is ended.
pub fn run(args: &ConsoleArgs, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let pid = attach::find(&args.process)?;
    let listener = TcpListener::bind(args.listen)
        .map_err(|error| format!("cannot listen on {}: {error}", args.listen))?;
    let address = listener.local_addr()?;
    let settings = Settings {
        interval: Duration::from_millis(args.interval_ms),
        ..Settings::default()
    };
    let live = Arc::new(Live::connect(pid, settings)?);
    let token = Token::random()?;
    let url = format!("http://{address}/{}/", token.text());
    let name = show::plain(live.identity().name.as_bytes());
    writeln!(out, "console of process {pid} ({name}), until Ctrl-C:")?;
    writeln!(out, "{url}")?;
    out.flush()?;
    if args.open {
        open::open(&url)?;
    }
    let console = Console {
        watchers: Watchers::new(Arc::clone(&live)),
        live,
        guard: Guard::new(token, address),
        recorded: Mutex::default(),
    };
    let server = Server::with_state(console)
        .limits(Limits::default().connections(CONNECTIONS).fields(FIELDS))
        .timeouts(Timeouts::default().head(PATIENCE).idle(PATIENCE))
        .fallback(routes::answer);
    Ok(server.listen(listener).serve()?)
}

#[cfg(test)]
mod tests {
    use super::loopback;

    #[test]
    fn only_this_machine_can_reach_it() {
        assert_eq!(loopback("127.0.0.1:80").unwrap().port(), 80);
        assert!(loopback("[::1]:0").unwrap().is_ipv6());
        for address in ["0.0.0.0:80", "10.0.0.1:80", "[::]:80"] {
            assert!(loopback(address).unwrap_err().contains("others could"));
        }
        assert!(
            loopback("localhost")
                .unwrap_err()
                .contains("not an address")
        );
    }
}

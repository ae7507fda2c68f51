//! Connections that stay open, each of which makes one request after the other.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bench_load::report::{Report, Share};
use clap::Args;
use tokio::net::TcpSocket;
use tokio::time::{Instant, sleep_until};

use crate::connection::{Connection, request, socket, timely};
use crate::crowd::Crowd;
use crate::tally::{Tally, Times, processor_time};
use crate::{limits, millis, some_millis};

/// Connections are opened one after the other; each sends a request as soon as it has the answer to
/// the one before. Counted are the requests that begin in the time after the ramp, and all errors.
#[derive(Args)]
pub struct Open {
    /// The server's port on 127.0.0.1
    #[arg(long)]
    port: u16,
    /// How many connections there are
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// The time it takes to open them
    #[arg(long = "ramp-ms", value_parser = millis)]
    ramp: Duration,
    /// The time after the ramp in which requests count
    #[arg(long = "measure-ms", value_parser = some_millis)]
    measure: Duration,
    /// What each answer's body must be
    #[arg(long, value_name = "TEXT", required_unless_present = "echo")]
    body: Option<String>,
    /// Requests are 64 bytes, which the server sends back, and not HTTP
    #[arg(long, conflicts_with = "body")]
    echo: bool,
    /// The server's process id, to tell the processor time that it took for the requests that count
    #[arg(long, value_name = "PID")]
    server: Option<i32>,
    /// The longest that connecting, and a request, may take
    #[arg(long = "timeout-ms", value_parser = some_millis)]
    timeout: Duration,
}

/// What the connections share.
struct Shared {
    port: u16,
    timeout: Duration,
    exchange: Exchange,
    /// Requests that begin from here on count.
    from: Instant,
    /// No request begins any more.
    until: Instant,
    tally: Tally,
}

/// What goes over a connection, again and again.
enum Exchange {
    Http { request: String, body: String },
    Echo,
}

/// Runs the load.
pub async fn run(args: &Open) -> Result<Report> {
    limits::make_room(args.connections)?;
    let begin = Instant::now();
    let from = begin + args.ramp;
    let shared = Arc::new(Shared {
        port: args.port,
        timeout: args.timeout,
        exchange: match &args.body {
            Some(body) => Exchange::Http {
                request: request(args.port, ""),
                body: body.clone(),
            },
            None => Exchange::Echo,
        },
        from,
        until: from + args.measure,
        tally: Tally::new(),
    });
    let crowd = Crowd {
        count: args.connections,
        begin,
        ramp: args.ramp,
        // One that takes its time to connect at the end of the ramp may still send a request.
        limit: args.ramp + args.measure + 2 * args.timeout,
    };
    let (late, server) = tokio::join!(
        crowd.gather(|number| client(Arc::clone(&shared), number)),
        share_of(args.server, &shared)
    );
    let (late, server) = (late?, server?);
    let wall = from.elapsed();
    // Requests are counted by when they begin, so their rate is the rate of beginnings.
    let report = shared.tally.report(&Times {
        wall,
        per: args.measure,
        late,
    });
    Ok(Report { server, ..report })
}

/// What the server took while the requests that count were made. Both are read at the same moments,
/// which may come late.
async fn share_of(server: Option<i32>, shared: &Shared) -> Result<Option<Share>> {
    let Some(pid) = server else {
        return Ok(None);
    };
    sleep_until(shared.from).await;
    let (answered, time) = (shared.tally.answered(), processor_time(pid)?);
    sleep_until(shared.until).await;
    Ok(Some(Share {
        answered: shared.tally.answered() - answered,
        cpu_s: processor_time(pid)? - time,
    }))
}

/// A failed request ends the connection. Errors count whenever they happen: else a connection that
/// cannot be opened would leave no trace.
async fn client(shared: Arc<Shared>, number: u32) -> Result<()> {
    let socket = socket(number)?;
    if let Err(error) = converse(&shared, socket).await {
        let reason = || format!("connection {number}: {error:#}");
        shared.tally.failed(1, reason);
    }
    Ok(())
}

async fn converse(shared: &Shared, socket: TcpSocket) -> Result<()> {
    let opening = Connection::open(socket, shared.port);
    let opened = timely(Instant::now(), shared.timeout, opening).await;
    let mut connection = opened.context("connecting")?;
    let _open = shared.tally.opened();
    loop {
        let began = Instant::now();
        if began >= shared.until {
            return Ok(());
        }
        let answering = async {
            match &shared.exchange {
                Exchange::Http { request, body } => connection.expect(request, body).await,
                Exchange::Echo => connection.echo(began.elapsed().subsec_nanos()).await,
            }
        };
        timely(began, shared.timeout, answering).await?;
        if began >= shared.from {
            shared.tally.ok(began.elapsed());
        }
    }
}

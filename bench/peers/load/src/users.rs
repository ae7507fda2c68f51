//! Users who arrive one after the other, make some requests each, and go, as in a JMeter test plan.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bench_load::report::Report;
use clap::Args;
use tokio::net::TcpSocket;
use tokio::time::Instant;

use crate::connection::{Connection, request, socket, timely};
use crate::crowd::Crowd;
use crate::tally::{Tally, Times};
use crate::{HELLO, limits, millis, some_millis};

/// Users arrive evenly spread over a time; each makes some requests on a connection of its own.
#[derive(Args)]
pub struct Users {
    /// The server's port on 127.0.0.1
    #[arg(long)]
    port: u16,
    /// How many users arrive
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    users: u32,
    /// How many requests each makes, one after the other
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    requests: u32,
    /// The time they take to arrive
    #[arg(long = "ramp-ms", value_parser = millis)]
    ramp: Duration,
    /// The longest a request may take (the first: with connecting)
    #[arg(long = "timeout-ms", value_parser = some_millis)]
    timeout: Duration,
}

/// What the users share.
struct Shared {
    port: u16,
    users: u32,
    /// The limit of open ones.
    descriptors: u64,
    requests: u32,
    timeout: Duration,
    request: String,
    tally: Tally,
}

/// Runs the load.
pub async fn run(args: &Users) -> Result<Report> {
    // How many are there at once depends on how fast the server is: a client that finds no room
    // ends the load.
    let descriptors = limits::raise()?;
    let shared = Arc::new(Shared {
        port: args.port,
        users: args.users,
        descriptors,
        requests: args.requests,
        timeout: args.timeout,
        request: request(args.port, ""),
        tally: Tally::new(),
    });
    let crowd = Crowd {
        count: args.users,
        begin: Instant::now(),
        ramp: args.ramp,
        limit: args.ramp + args.timeout.saturating_mul(args.requests),
    };
    let late = crowd
        .gather(|number| user(Arc::clone(&shared), number))
        .await?;
    let wall = crowd.begin.elapsed();
    Ok(shared.tally.report(&Times {
        wall,
        per: wall,
        late,
    }))
}

/// A failed request ends the user: those it would still have made have failed with it.
async fn user(shared: Arc<Shared>, number: u32) -> Result<()> {
    let began = Instant::now();
    let socket =
        socket(number).with_context(|| limits::shortage(shared.users, shared.descriptors))?;
    let mut done = 0;
    if let Err(error) = visit(&shared, began, socket, &mut done).await {
        let lost = u64::from(shared.requests - done);
        let nth = done + 1;
        let reason = || format!("user {number}, request {nth}: {error:#}");
        shared.tally.failed(lost, reason);
    }
    Ok(())
}

/// Makes the requests; `done` is how many have been answered.
async fn visit(
    shared: &Shared,
    mut began: Instant,
    socket: TcpSocket,
    done: &mut u32,
) -> Result<()> {
    let opening = Connection::open(socket, shared.port);
    let mut connection = timely(began, shared.timeout, opening)
        .await
        .context("connecting")?;
    let _open = shared.tally.opened();
    loop {
        let answering = connection.expect(&shared.request, HELLO);
        timely(began, shared.timeout, answering).await?;
        shared.tally.ok(began.elapsed());
        *done += 1;
        if *done == shared.requests {
            return Ok(());
        }
        began = Instant::now();
    }
}

//! A single request, to see whether a server serves.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::connection::{Connection, request, socket};

/// The longest it may take, from connecting on.
const LIMIT: Duration = Duration::from_secs(5);

/// One `GET /`.
#[derive(Args)]
pub struct Get {
    /// The server's port on 127.0.0.1
    #[arg(long)]
    port: u16,
    /// Ask the server to close the connection after the answer; it must say that it will, or do it
    #[arg(long)]
    close: bool,
}

/// Makes the request.
pub async fn run(args: &Get) -> Result<Value> {
    timeout(LIMIT, get(args))
        .await
        .with_context(|| format!("not done within {LIMIT:?}"))?
}

async fn get(args: &Get) -> Result<Value> {
    let header = if args.close {
        "Connection: close\r\n"
    } else {
        ""
    };
    let request = request(args.port, header);
    let mut connection = Connection::open(socket(0)?, args.port).await?;
    let answer = connection.get(&request).await?;
    let closes = answer.closes;
    let line = json!({ "status": answer.status, "body": String::from_utf8_lossy(answer.body) });
    if args.close && !closes {
        connection.closed().await?;
    }
    Ok(line)
}

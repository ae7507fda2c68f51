//! A single request, to see whether a server serves.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::connection::{Connection, connect, socket};

/// The longest it may take, from connecting on.
const LIMIT: Duration = Duration::from_secs(20);

/// One `GET`, or one `POST`.
#[derive(Args)]
pub struct Get {
    /// The server's port on 127.0.0.1
    #[arg(long)]
    port: u16,
    /// What is asked for
    #[arg(long, default_value = "/")]
    path: String,
    /// Ask by `POST`, with a body of this many bytes
    #[arg(long, value_name = "BYTES")]
    post: Option<usize>,
    /// Speak TLS, and trust this certificate alone
    #[arg(long, value_name = "PEM")]
    certificate: Option<PathBuf>,
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
    let stream = connect(socket(0)?, args.port).await?;
    match &args.certificate {
        None => ask(args, Connection::over(stream)).await,
        Some(certificate) => {
            let stream = secured(stream, certificate).await?;
            ask(args, Connection::over(stream)).await
        }
    }
}

/// Begins TLS on a connection. The server must have this certificate.
async fn secured(stream: TcpStream, certificate: &Path) -> Result<TlsStream<TcpStream>> {
    let trusted = CertificateDer::from_pem_file(certificate)
        .with_context(|| format!("cannot read {}", certificate.display()))?;
    let mut roots = RootCertStore::empty();
    roots.add(trusted)?;
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("127.0.0.1")?;
    let secured = connector.connect(name, stream).await;
    secured.context("no agreement about TLS")
}

async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    args: &Get,
    mut connection: Connection<S>,
) -> Result<Value> {
    let answer = connection.get(&request(args)).await?;
    let closes = answer.closes;
    let line = json!({ "status": answer.status, "body": String::from_utf8_lossy(answer.body) });
    if args.close && !closes {
        connection.closed().await?;
    }
    Ok(line)
}

/// The request with its body.
fn request(args: &Get) -> String {
    let Get { port, path, .. } = args;
    let close = if args.close {
        "Connection: close\r\n"
    } else {
        ""
    };
    match args.post {
        None => format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{close}\r\n"),
        Some(length) => {
            let body = "x".repeat(length);
            format!(
                "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {length}\r\n{close}\r\n{body}"
            )
        }
    }
}

//! `http-server`: axum, as its own examples use it. Over TLS that is hyper-util's server for both
//! versions of HTTP, with rustls.

use crate::serve::listen;
use anyhow::{Context, Result, bail};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::routing::get;
use axum::serve::ListenerExt;
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use peer_protocol::{Certificate, Params, Workload, listening, until_end_of_input};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub fn http_server(runtime: Runtime, params: &Params) -> Result<Workload> {
    let site = site(params)?;
    let tls = match params.get("tls")? {
        0 => None,
        _ => Some(acceptor()?),
    };
    let listener = runtime.block_on(async { listen() })?;
    let port = listener.local_addr()?.port();
    match tls {
        Some(tls) => runtime.spawn(serve_tls(listener, tls, site)),
        None => runtime.spawn(serve(listener, site)),
    };
    listening(port);
    until_end_of_input();
    Ok(Box::new(|_| bail!("a server has no rounds")))
}

fn site(params: &Params) -> Result<Router> {
    let delay = Duration::from_millis(params.get("delay_ms")?);
    let body = Bytes::from(vec![b'x'; params.count("body")?]);
    let hello = move || async move {
        if !delay.is_zero() {
            // What blocks belongs on a thread of the pool for that.
            let blocked = tokio::task::spawn_blocking(move || thread::sleep(delay));
            blocked.await.expect("the pool lives as long as the server");
        }
        "Hello, World!"
    };
    let download = move || async move { body };
    Ok(Router::new()
        .route("/", get(hello))
        .route("/body", get(download).post(count)))
}

/// Answers with the number of bytes of the body.
async fn count(mut body: Body) -> Result<String, StatusCode> {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
        length += frame.data_ref().map_or(0, Bytes::len);
    }
    Ok(length.to_string())
}

async fn serve(listener: TcpListener, site: Router) {
    let listener = listener.tap_io(|stream| set_nodelay(stream));
    if let Err(error) = axum::serve(listener, site).await {
        eprintln!("cannot serve: {error}");
    }
}

fn set_nodelay(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        eprintln!("cannot set TCP_NODELAY: {error}");
    }
}

fn acceptor() -> Result<TlsAcceptor> {
    let Certificate { chain, key } = Certificate::from_environment()?;
    let chain = CertificateDer::pem_file_iter(chain).context("the certificate")?;
    let chain = chain.collect::<Result<_, _>>().context("the certificate")?;
    let key = PrivateKeyDer::from_pem_file(key).context("the key")?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve_tls(listener: TcpListener, tls: TlsAcceptor, site: Router) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(converse(stream, tls.clone(), site.clone()))),
            Err(error) => {
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(100)).await; // as in `serve`
            }
        }
    }
}

async fn converse(stream: TcpStream, tls: TlsAcceptor, site: Router) {
    set_nodelay(&stream);
    let stream = match tls.accept(stream).await {
        Ok(stream) => TokioIo::new(stream),
        Err(error) => return eprintln!("no agreement about TLS: {error}"),
    };
    let server = auto::Builder::new(TokioExecutor::new());
    let service = TowerToHyperService::new(site);
    if let Err(error) = server.serve_connection_with_upgrades(stream, service).await {
        eprintln!("connection failed: {error}");
    }
}

//! An HTTP server with a virtual thread for each request: handlers are plain functions that may
//! block, in whatever crate, for as long as they like.
//!
//! ```no_run
//! use pirn_http::{Request, Server};
//!
//! #[pirn::main]
//! fn main() -> std::io::Result<()> {
//!     Server::new()
//!         .get("/", || "Hello, World!")
//!         .post("/upload", |request: &mut Request| -> std::io::Result<String> {
//!             let mut file = std::fs::File::create("upload")?;
//!             Ok(format!("{} bytes", std::io::copy(request, &mut file)?))
//!         })
//!         .bind("127.0.0.1:8080")?
//!         .serve()
//! }
//! ```
//!
//! * A request is a [`Read`](std::io::Read) of its body; a response is a value, or a
//!   [`Write`](std::io::Write) for what is not known beforehand.
//! * Framing is strict (RFC 9112): what another program might read differently is refused.
//! * Clients choose between HTTP/1.1 and [HTTP/2](#http2); handlers need not know.
//! * [Limits] and [time limits](Timeouts) hold from the first byte, and cost nothing per request.
//! * The server interrupts a handler whose client hangs up, so that the handler does not work in
//!   vain.
//! * [`Server::client`] tests handlers without sockets.
//!
//! # Middleware
//! [`Server::with`] puts a function around all handlers, [`Router::with`] one around a group of
//! them: one of your own, or [`Cors`], `Compression`, [`observe::AccessLog`], [`observe::Metrics`],
//! [`observe::request_ids`], [`limit_concurrency`], [`limit_rate`].
//!
//! # HTTP/2
//! Clients that speak TLS agree about the protocol in the handshake; `h2` is preferred. Without TLS
//! a client that knows that the server speaks HTTP/2 may begin with it (*prior knowledge*), on the
//! listener that also serves HTTP/1.1. `Server::http2` switches it off.
//!
//! Each connection has a thread that runs hyper's engine, `h2`, and each request one of its own. A
//! handler that does not read stops the client when the window is used up, 256 KiB of a stream and
//! 1 MiB of a connection. A client that does not read parks the handler; the server keeps at most
//! 80 KiB of its answer. A stream that the client resets interrupts its handler. Floods of resets,
//! of small frames or of heads without an end close the connection, with `ENHANCE_YOUR_CALM`.
//!
//! WebSockets are opened on streams, beside other requests (RFC 8441), for the same handlers. There
//! are no pushes and no priorities.
//!
//! ```
//! use pirn_http::{Request, Response, Server};
//! use std::io::{Read, Write};
//! // Both directions at once, which HTTP/2 is made for: each piece is sent back when it comes.
//! let server = Server::new().post("/echo", |request: &mut Request| -> std::io::Result<()> {
//!     let mut both = request.respond(Response::ok())?;
//!     let mut piece = [0; 4096];
//!     loop {
//!         match both.read(&mut piece)? {
//!             0 => return Ok(()),
//!             count => both.write_all(&piece[..count])?,
//!         }
//!         both.flush()?;
//!     }
//! });
//! assert_eq!(server.client().post("/echo", "hello").text(), "hello");
//! ```
//!
//! # Features
//! | feature | default | |
//! |---|---|---|
//! | `json` | yes | `Json`, `Request::json` |
//! | `form` | yes | `Request::form`, `Request::query_as` |
//! | `cookies` | no | `cookies`: `Request::cookie`, `Response::cookie` |
//! | `files` | no | `files`: `Server::files`, with conditional requests and ranges |
//! | `http2` | no | [HTTP/2](#http2), by `h2`, and `tokio-rustls` for TLS: 15 crates more, among them parts of `tokio` and `tracing`, without runtime and subscribers |
//! | `tls` | no | `Tls`, `Server::bind_tls`: HTTPS by rustls |
//! | `websocket` | no | `WebSocket`, `Server::websocket` |
//! | `gzip`, `brotli`, `zstd` | no | `Compression`, with these codings; `zstd` builds C |
//! | `tower` | no | `Server::service`: axum's routers, and other services of `tower` |
//! | `tracing` | no | `observe::spans`: a span of `tracing` for each request |
//! | `full` | no | all of these |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

/// Compiles and runs the Rust code of the guide.
#[cfg(all(
    doctest,
    feature = "files",
    feature = "json",
    feature = "tls",
    feature = "websocket"
))]
#[doc = include_str!("../../../docs/http.md")]
pub struct Guide;

// The modules from the top. Each refers to those below it only, as a test of `pirn-api` checks.
//
//   server                        listeners, threads of connections, the client for tests
//   router                        which handler serves a request
//   compress, cors, limit, observe: middleware
//   cookies, events, files, form, json, multipart, redirect, tower, websocket: for handlers
//   handler, request, split       what handlers are, and what they get
//   exchange                      a request and its answer, in whichever protocol
//   h1, h2                        the protocols: heads, bodies, a connection, its streams
//   shared                        what a connection knows of its server
//   response, outgoing, error, problem: what handlers return
//   limits, transfer, input, upgrade: time limits, and the bytes that they hold for
//   socket, tls, stream           the bytes of a connection
//   admission, refusal, fields, negotiation, media_type, date, poison: heads, and small parts

mod admission;
#[cfg(any(feature = "brotli", feature = "gzip", feature = "zstd"))]
mod compress;
#[cfg(feature = "cookies")]
pub mod cookies;
mod cors;
mod date;
mod error;
mod events;
mod exchange;
mod fields;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "form")]
mod form;
mod h1;
#[cfg(feature = "http2")]
mod h2;
mod handler;
mod input;
#[cfg(feature = "json")]
mod json;
mod limit;
mod limits;
mod media_type;
mod multipart;
#[cfg_attr(
    not(any(
        test,
        feature = "brotli",
        feature = "files",
        feature = "gzip",
        feature = "zstd"
    )),
    expect(dead_code, reason = "only `Vary` is needed then")
)]
mod negotiation;
pub mod observe;
mod outgoing;
mod poison;
#[cfg(feature = "json")]
mod problem;
mod redirect;
mod refusal;
mod request;
mod response;
mod router;
mod server;
mod shared;
mod socket;
mod split;
mod stream;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tower")]
mod tower;
mod transfer;
mod upgrade;
#[cfg(feature = "websocket")]
mod websocket;

#[cfg(any(feature = "brotli", feature = "gzip", feature = "zstd"))]
pub use compress::Compression;
pub use cors::Cors;
pub use error::Error;
pub use events::{Event, Events};
pub use handler::{Handler, IntoHandler, Middleware};
pub use http::{
    self, HeaderMap, HeaderName, HeaderValue, Method, StatusCode as Status, Uri, header,
};
#[cfg(feature = "json")]
pub use json::Json;
pub use limit::{limit_concurrency, limit_rate};
pub use limits::Limits;
pub use limits::timeouts::Timeouts;
pub use multipart::{Multipart, Part};
pub use redirect::Redirect;
pub use request::{Request, ResponseWriter};
pub use response::{Body, IntoResponse, Response};
pub use router::Router;
pub use server::{Acceptor, Answer, Bound, Client, Listener, Running, Server, tcp_acceptor};
pub use signal_hook::consts::{SIGINT, SIGTERM};
pub use split::{BodyReader, BodyWriter, Responder};
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsBuilder};
#[cfg(feature = "tower")]
pub use tower::RequestBody;
#[cfg(feature = "websocket")]
pub use tungstenite::{Message, protocol::frame::coding::CloseCode};
pub use upgrade::Upgraded;
#[cfg(feature = "websocket")]
pub use websocket::WebSocket;

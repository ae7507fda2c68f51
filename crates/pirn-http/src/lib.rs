//! An HTTP server with a virtual thread for each connection: handlers are plain functions that may
//! block, in whatever crate, for as long as they like.
//!
//! ```no_run
//! use pirn_http::{Request, Server};
//!
//! #[pirn::main]
//! fn main() -> std::io::Result<()> {
//!     Server::new()
//!         .get("/", |_: &mut Request| "Hello, World!")
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
//! * [Limits] and [time limits](Timeouts) hold from the first byte, and cost nothing per request.
//! * A handler is interrupted when its client hangs up: nobody works for who is gone.
//! * [`Server::client`] tests handlers without sockets.
//!
//! # Middleware
//! [`Server::with`] puts a function around all handlers: one of your own, or the `layer` of
//! [`Cors`], `Compression`, [`observe::AccessLog`], [`observe::Metrics`]; [`observe::request_ids`],
//! [`limit_concurrency`], [`limit_rate`].
//!
//! # Features
//! | feature | default | |
//! |---|---|---|
//! | `json` | yes | `Json`, `Request::json` |
//! | `form` | yes | `Request::form`, `Request::query_as` |
//! | `cookies` | yes | `cookies`: `Request::cookie`, `Response::cookie` |
//! | `files` | yes | `files`: `Server::files`, with conditional requests and ranges |
//! | `tls` | yes | [`Tls`], [`Server::bind_tls`]: HTTPS by rustls |
//! | `websocket` | yes | [`WebSocket`], [`Server::websocket`] |
//! | `gzip`, `brotli`, `zstd` | no | `Compression`, with these codings; `zstd` builds C |
//! | `tower` | no | `Server::service`: axum's routers, and other services of `tower` |

mod client;
#[cfg(any(feature = "brotli", feature = "gzip", feature = "zstd"))]
mod compress;
#[cfg(feature = "cookies")]
pub mod cookies;
mod cors;
mod date;
mod events;
mod exchange;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "form")]
mod form;
mod h1;
#[cfg(feature = "http2")]
mod h2;
#[cfg(feature = "json")]
mod json;
mod limit;
mod media_type;
mod memory;
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
mod request;
mod response;
mod router;
mod server;
mod stream;
#[cfg(feature = "tower")]
mod tower;

pub use client::{Answer, Client};
#[cfg(any(feature = "brotli", feature = "gzip", feature = "zstd"))]
pub use compress::Compression;
pub use cors::Cors;
pub use events::{Event, Events};
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "websocket")]
mod websocket;

pub use h1::upgrade::Upgraded;
pub use http::{
    self, HeaderMap, HeaderName, HeaderValue, Method, StatusCode as Status, Uri, header,
};
#[cfg(feature = "json")]
pub use json::Json;
pub use limit::{limit_concurrency, limit_rate};
pub use multipart::{Multipart, Part};
pub use request::{Request, ResponseWriter};
pub use response::{Body, IntoResponse, Response};
pub use server::shared::{Handler, Limits};
pub use server::watch::Timeouts;
pub use server::{Bound, Listener, Running, Server};
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsBuilder};
#[cfg(feature = "tower")]
pub use tower::RequestBody;
#[cfg(feature = "websocket")]
pub use websocket::WebSocket;

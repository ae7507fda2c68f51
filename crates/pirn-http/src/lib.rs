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
//! * [`Server::client`] tests handlers without sockets.

mod client;
mod date;
mod h1;
#[cfg(feature = "json")]
mod json;
mod memory;
mod query;
mod request;
mod response;
mod router;
mod server;
mod stream;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "websocket")]
mod websocket;

pub use client::{Answer, Client};
pub use h1::upgrade::Upgraded;
pub use http::{
    self, HeaderMap, HeaderName, HeaderValue, Method, StatusCode as Status, Uri, header,
};
#[cfg(feature = "json")]
pub use json::Json;
pub use request::{Request, ResponseWriter};
pub use response::{Body, IntoResponse, Response};
pub use server::shared::Limits;
pub use server::watch::Timeouts;
pub use server::{Bound, Listener, Running, Server};
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsBuilder};
#[cfg(feature = "websocket")]
pub use websocket::WebSocket;

//! Servers, by connections inside the process and by sockets.

mod h1;
mod hangups;
#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "tls")]
mod tls;
mod upgrade;
#[cfg(feature = "websocket")]
mod websocket;

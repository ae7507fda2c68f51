//! Servers, by connections inside the process and by sockets.

mod h1;
#[cfg(feature = "tls")]
mod tls;
mod upgrade;
#[cfg(feature = "websocket")]
mod websocket;

//! HTTP/1.0 and HTTP/1.1.

pub(crate) mod body;
pub(crate) mod chunked;
pub(crate) mod connection;
pub(crate) mod framing;
pub(crate) mod head;
pub(crate) mod output;
pub(crate) mod reply;

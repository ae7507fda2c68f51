//! Sockets, and the names of hosts.

mod accept;
mod connect;
pub(crate) mod messages;
pub(crate) mod netdb;
pub(crate) mod socket;

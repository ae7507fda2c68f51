//! Sockets, and the names of hosts.

mod connect;
pub(crate) mod messages;
mod names;
pub(crate) mod netdb;
pub(crate) mod socket;

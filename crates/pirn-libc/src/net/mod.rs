//! Sockets, and the names of hosts.

mod connect;
pub(crate) mod messages;
pub(crate) mod netdb;
pub(crate) mod socket;

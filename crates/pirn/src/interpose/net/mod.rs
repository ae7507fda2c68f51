//! Sockets, and the names of hosts.

mod accept;
mod connect;
pub(in crate::interpose) mod messages;
pub(in crate::interpose) mod netdb;
pub(in crate::interpose) mod pieces;
pub(in crate::interpose) mod socket;

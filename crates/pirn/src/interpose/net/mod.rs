//! Sockets, and the names of hosts.

mod netdb;
pub(in crate::interpose) mod socket;

//! Sockets, and the names of hosts.

pub(in crate::interpose) mod messages;
pub(in crate::interpose) mod netdb;
pub(in crate::interpose) mod socket;

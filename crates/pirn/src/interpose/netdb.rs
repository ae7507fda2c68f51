//! netdb

//! Bridges between virtual threads and async code.

//! Scoped values.

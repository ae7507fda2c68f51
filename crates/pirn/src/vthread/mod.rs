//! A virtual thread: its identity and state, and how it gets on and off a platform thread.
//!
//! * [`core_`]: what there is of a virtual thread, and its reference count.
//! * [`body`]: what it runs, and its result; [`cells`]: recycling the memory of both.
//! * [`handshake`], [`permit`], [`wait_word`], [`join`]: the lock-free protocols (model-checked).
//! * [`mount`]: mounting, unmounting, and the first and last moments of a thread.
//! * [`platform`]: what platform threads have of it.
//! * [`keys`]: the values of `pthread_key`s, and their destructors.

pub(crate) mod body;
pub(crate) mod cells;
pub(crate) mod core_;
pub(crate) mod handshake;
pub(crate) mod join;
pub(crate) mod keys;
pub(crate) mod mount;
pub(crate) mod permit;
pub(crate) mod platform;
pub(crate) mod wait_word;

pub(crate) use body::Cell;
pub(crate) use core_::{Core, ThreadRef};
pub(crate) use mount::{Carrier, carrier, current};

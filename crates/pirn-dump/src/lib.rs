//! Thread dumps of pirn: what a process says about its virtual threads, and how it is shown.
//!
//! A process makes a [`Dump`], or writes it piece by piece in its wire form, without names of
//! functions: program counters only. The reader, usually the command `pirn dump`, finds the names
//! and writes text, JSON, and the formats of other tools.
//!
//! The model and its wire form need no other crate. The features:
//!
//! * `names`: names of frames, from ELF symbols and DWARF;
//! * `formats`: all output formats but text.

#![forbid(unsafe_code)]

mod cycles;
mod diff;
mod filter;
#[cfg(feature = "formats")]
mod formats;
mod group;
mod model;
mod names;
#[cfg(test)]
mod samples;
mod scopes;
pub mod show;
#[cfg(feature = "names")]
mod symbols;
mod text;
mod view;
pub mod wire;

pub use cycles::{Blocker, Waiter, cycle_finding, cycles};
pub use diff::{Change, Diff};
pub use filter::{Filter, FilterError};
pub use group::Grouper;
pub use model::*;
pub use names::{Frame, Names};
#[cfg(feature = "names")]
pub use symbols::Symbols;
pub use view::{Format, View};
pub use wire::{DecodeError, Encoder};

/// The code of the README.
#[cfg(all(doctest, feature = "names"))]
#[doc = include_str!("../README.md")]
struct ReadMe;

//! Events: reading the [recorder](pirn_rt::recorder)'s rings, and when.
//!
//! * [`api`]: the same for the program itself.
//! * [`stream`]: what is in the rings, with names, as bytes for `crates/pirn-events`.
//! * [`session`]: recording for some seconds, for a tool or the program.
//! * [`trace_writer`]: recording all the time, and writing a file when a [rule](settings::Rules)
//!   says so.
//! * [`watch`]: finding threads that keep their carriers.
//! * [`settings`] reads `PIRN_EVENTS`.

mod api;
#[doc(hidden)]
pub mod session;
#[doc(hidden)]
pub mod settings;
mod stream;
#[doc(hidden)]
pub mod trace_writer;
mod watch;

pub(crate) use stream::lost;

pub use api::{Recorder, record, write};

//! Recordings of the events of virtual threads, as `pirn::events` writes them.
//!
//! * [`Recording::read`] reads one. It expects nothing: a recording may have been cut off, or be no
//!   recording at all.
//! * [`Timeline::new`] makes a list of events of it, in order, with times and names.
//! * [`perfetto::write`] makes a trace of that, for <https://ui.perfetto.dev>.
//!
//! # Examples
//! ```
//! let error = pirn_events::Recording::read(&mut b"no recording".as_slice()).unwrap_err();
//! assert_eq!(error.to_string(), "this is not a recording of events");
//! ```

#![forbid(unsafe_code)]

mod awaited;
pub mod kinds;
mod merge;
pub mod perfetto;
#[doc(hidden)]
pub mod proto;
mod read;
mod recording;
mod stamps;
mod timeline;

pub use awaited::Awaited;
pub use read::ReadError;
pub use recording::{Carrier, Clocks, Place, Recording, Scope, Segment};
pub use timeline::{Event, Row, Thread, Timeline, What, Why};

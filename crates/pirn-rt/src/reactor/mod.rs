//! What a runtime waits for outside of its own threads. Nothing here knows threads or the
//! scheduler: it keeps what was registered, and gives it back when the time has come.
//!
//! * [`epoll`]: events of descriptors, and the kicks that wake carriers.
//! * [`timers`]: points in time, in a [`heap`] per processor; [`attendance`]: which sleeping
//!   carrier wakes for them.
//! * [`jobs`]: calls for the pool's platform threads.

mod attendance;
pub mod epoll;
pub(crate) mod heap;
pub mod jobs;
pub mod timers;

//! The kinds of events, and what their words mean. `crates/pirn-events` reads them: its `kinds` are
//! the same, as a test checks.
//!
//! ```text
//!   a slot        63                                 8 7         0
//!                 +-----------------------------------+----------+
//!   first word    | stamp: the clock's lower 56 bits  | kind     |
//!                 +-----------------------------------+----------+
//!   second word   | payload                                      |
//!                 +----------------------------------------------+
//! ```
//!
//! `DETAIL` and `TEXT` are not events: they follow the slot that they belong to, and have data in
//! place of the stamp. A ring does not repeat which thread is mounted: a reader follows the
//! switches, from a `STATE` on.

/// Marks the number of a carrier that is a platform thread of the program; the rest is its kernel
/// id, which is below 2^22.
pub(crate) const FOREIGN: u32 = 1 << 23;

/// Which thread is mounted on the carrier: its id, or 0. Written before the first event and every
/// so often.
pub(crate) const STATE: u8 = 1;
/// The carrier, which had none, mounts a thread: its id.
pub(crate) const MOUNT: u8 = 2;
/// The mounted thread yields. From here to `EXIT`, the payload is the id of the thread that is
/// mounted next, or 0 if the carrier goes back to its own loop.
pub(crate) const YIELD: u8 = 3;
/// The mounted thread parks. A `DETAIL` follows, which says for what.
pub(crate) const PARK: u8 = 4;
/// The mounted thread has been preempted.
pub(crate) const PREEMPT: u8 = 5;
/// The mounted thread ends. Its name comes before, if it has one.
pub(crate) const EXIT: u8 = 6;
/// A thread is spawned: its id. A `DETAIL` follows: the address of the place.
pub const SPAWN: u8 = 7;
/// A thread is woken: its id.
pub(crate) const WAKE: u8 = 8;
/// A thread is interrupted: its id; 0 for a platform thread.
pub const INTERRUPT: u8 = 9;
/// A scope is opened: its id.
pub const SCOPE_OPEN: u8 = 10;
/// A scope is cancelled: its id.
pub const SCOPE_CANCEL: u8 = 11;
/// A scope is closed: its id. Its name comes before, if it has one.
pub(crate) const SCOPE_CLOSE: u8 = 12;
/// The mounted thread has a platform thread make a call.
pub(crate) const OFFLOAD: u8 = 13;
/// The mounted thread has the result of such a call.
pub(crate) const OFFLOADED: u8 = 14;
/// The carrier goes to sleep.
pub(crate) const SLEEP: u8 = 15;
/// The carrier wakes.
pub(crate) const AWAKE: u8 = 16;
/// A carrier has been stuck in one thread: the number of nanoseconds. A `DETAIL` follows: its
/// number.
pub const STUCK: u8 = 17;
/// A spare carrier is put to work: its number.
pub(crate) const SPARE: u8 = 18;
/// The mounted thread's closure has panicked.
pub(crate) const PANIC: u8 = 19;
/// The name of a thread or scope: its length in bytes in place of the stamp, and its id. `TEXT`
/// follows. From outside of a carrier, 16 bytes of a name: in place of the stamp the number of the
/// part, and in the lowest byte its length; the bytes are in place of detail and mounted thread.
pub(crate) const NAME: u8 = 20;
/// 15 bytes of a name: seven in place of the stamp, and the payload's eight.
pub(crate) const TEXT: u8 = 21;
/// The second slot of an event. In place of the stamp: flags; the payload: an argument.
pub const DETAIL: u8 = 22;

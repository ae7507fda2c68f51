//! A virtual thread: its identity and state, and how it gets on and off a platform thread.
//!
//! * [`record`]: the runtime's data about a thread; [`reference`](mod@reference): counted
//!   references to it; [`ids`].
//! * [`body`]: the closure that it runs, and its result; [`magazines`]: recycled memory for record
//!   and body.
//! * [`claimed`]: the right to wake it; [`ready`]: the right to run it.
//! * [`handshake`], [`permit`], [`wait_word`], [`join`]: the lock-free protocols (model-checked).
//! * [`mount`]: mounting and unmounting; [`life`]: a thread's first and last moments; [`end`]:
//!   announcing its end.
//! * [`summons`]: having a thread run something; [`signals`]: which it blocks, and what is pending.
//! * [`early`]: stacks from a thread's creation until it is joined.
//! * [`at_mount`]: what a mount has to do besides.
//! * [`awaited`]: what a thread waits for.
//! * [`current`](mod@current): the reference of a thread to itself.
//! * [`residents`]: the threads by their slots, for walks over them; [`resident`]: the entry of
//!   one (model-checked). [`mounted`]: those that are mounted, by their platform threads, for
//!   readers outside.
//! * [`recorded`]: what the recorder of events is told of threads.
//! * [`label`]: a thread's id and name, for messages; [`c_name`]: the name that C has given it.
//! * [`platform`]: the corresponding state of platform threads; [`natively`](mod@natively): those
//!   of the runtime.
//! * [`overflow`]: the signal handler that names the thread that ran out of stack. [`carrier_tls`]:
//!   running a libc function on the platform thread's own TLS.
//! * [`cpu_time`]: how much of it a thread has used.
//! * [`extra_state`]: registers that a switch carries in few programs.
//! * [`keys`]: the values of `pthread_key`s, and their destructors.

pub(crate) mod at_mount;
pub mod awaited;
pub mod body;
pub mod c_name;
mod carrier_tls;
mod claimed;
pub mod cpu_time;
mod current;
pub mod early;
pub mod end;
pub mod extra_state;
pub(crate) mod handshake;
pub mod helper;
pub mod ids;
pub(crate) mod join;
pub mod keys;
pub mod label;
mod life;
pub mod magazines;
pub mod mount;
pub mod mounted;
pub mod natively;
pub mod overflow;
pub(crate) mod permit;
pub mod platform;
pub mod ready;
pub mod record;
pub mod recorded;
mod reference;
mod resident;
pub mod residents;
pub mod signals;
pub mod summons;
pub mod wait_word;

pub use body::ClosureBody;
pub use claimed::Claimed;
pub use current::Current;
pub use helper::{ROOMY, start_helper};
pub use life::{run_destructors, set_end_in_child};
pub use mount::{Carrier, carrier, current, on_carrier, parkable};
pub use natively::natively;
pub use ready::Ready;
pub use record::Core;
pub use reference::ThreadRef;

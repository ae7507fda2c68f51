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
pub(crate) mod awaited;
pub(crate) mod body;
pub(crate) mod c_name;
mod carrier_tls;
mod claimed;
pub(crate) mod cpu_time;
mod current;
pub(crate) mod early;
pub(crate) mod end;
pub(crate) mod extra_state;
pub(crate) mod handshake;
pub(crate) mod helper;
pub(crate) mod ids;
pub(crate) mod join;
pub(crate) mod keys;
pub(crate) mod label;
mod life;
pub(crate) mod magazines;
pub(crate) mod mount;
pub(crate) mod mounted;
pub(crate) mod natively;
pub(crate) mod overflow;
pub(crate) mod permit;
pub(crate) mod platform;
pub(crate) mod ready;
pub(crate) mod record;
pub(crate) mod recorded;
mod reference;
mod resident;
pub(crate) mod residents;
pub(crate) mod signals;
pub(crate) mod summons;
pub(crate) mod wait_word;

pub(crate) use body::ClosureBody;
pub(crate) use claimed::Claimed;
pub(crate) use current::Current;
pub(crate) use helper::{ROOMY, start_helper};
pub(crate) use life::{run_destructors, set_end_in_child};
pub(crate) use mount::{Carrier, carrier, current, on_carrier, parkable};
pub(crate) use natively::natively;
pub(crate) use ready::Ready;
pub(crate) use record::Core;
pub(crate) use reference::ThreadRef;

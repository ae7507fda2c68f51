//! Everything that the project knows about glibc's internals, determined at run time.
//!
//! * [`symbols`]: private and shadowed symbols, by `dlsym`, once.
//! * [`tls`]: the layout of a TLS block and its TCB, and how to make one.
//! * [`linker`]: the dynamic linker's information about both, its locks, and the functions that it
//!   calls.
//! * [`objects`]: the program and its libraries, as loaded.
//! * [`layout`]: where the processor and glibc put the parts of a thread.
//! * [`late`]: TLS blocks when libraries are opened later.
//! * [`malloc`]: the words of libc's TLS that are malloc's per-thread cache.
//! * [`thread`]: other words of a thread: what is freed at its end, and what `longjmp` and the
//!   kernel read.
//! * [`code`]: which code preemption may interrupt.
//!
//! Nothing is assumed that can be queried, and the rest is checked at start. A runtime that finds
//! something unexpected refuses to start and reports what it found.

pub(crate) mod code;
pub mod late;
mod layout;
pub mod linker;
pub(crate) mod malloc;
pub mod objects;
pub mod symbols;
pub mod thread;
pub mod tls;

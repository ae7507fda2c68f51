//! Everything that the project knows about glibc's internals, determined at run time.
//!
//! * [`symbols`]: private and shadowed symbols, by `dlsym`, once.
//! * [`tls`]: the layout of a TLS block and its TCB, and how to make one.
//! * [`linker`]: the dynamic linker's information about both; [`linker_words`]: its locks, and the
//!   functions that it calls.
//! * [`objects`]: the program and its libraries, as loaded.
//! * [`late`]: TLS blocks when libraries are opened later.
//! * [`malloc`]: the words of libc's TLS that are malloc's per-thread cache.
//! * [`rseq`]: the area of restartable sequences, which the kernel writes to.
//! * [`destructors`]: running the destructors of thread-locals; [`dlerror`]: freeing what has none.
//! * [`code`]: which code may be interrupted; [`leaves`]: functions of libc that may be.
//!
//! Nothing is assumed that can be queried, and the rest is checked at start. A runtime that finds
//! something unexpected refuses to start and reports what it found.

pub(crate) mod code;
pub(crate) mod destructors;
pub(crate) mod dlerror;
pub mod jump;
pub mod late;
mod leaves;
mod linker;
pub mod linker_words;
pub(crate) mod malloc;
pub mod objects;
pub mod rseq;
pub mod symbols;
pub mod tls;

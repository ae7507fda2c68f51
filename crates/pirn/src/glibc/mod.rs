//! Everything the project knows about glibc's insides, found out at run time.
//!
//! * [`symbols`]: private and shadowed symbols, by `dlsym`, once.
//! * [`tls`]: how a TLS block and its TCB look, and how to make one.
//! * [`linker`]: what the dynamic linker says about both.
//! * [`objects`]: the program and its libraries, as they are loaded.
//! * [`late`]: TLS blocks when libraries are opened later.
//! * [`malloc`]: which words of libc's TLS are malloc's per-thread cache.
//! * [`rseq`]: the area of restartable sequences, which the kernel writes to.
//! * [`destructors`]: running those of thread-locals.
//! * [`carrier_tls`]: running a libc function on the platform thread's own TLS.
//!
//! Nothing is assumed that can be asked; what cannot be asked is checked at start, and a runtime
//! that finds something unexpected refuses to start and says what it found.

pub(crate) mod carrier_tls;
pub(crate) mod destructors;
pub(crate) mod jump;
pub(crate) mod late;
mod linker;
pub(crate) mod malloc;
pub(crate) mod objects;
pub(crate) mod rseq;
pub(crate) mod symbols;
pub(crate) mod tls;

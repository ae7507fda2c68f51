//! How the processor's ABI and glibc lay out a thread: which side of the thread pointer has what.
//!
//! | item | what it is |
//! |---|---|
//! | `HEAD` | bytes of `struct pthread` that glibc usually touches |
//! | `ABOVE` | bytes of a slot above the thread pointer, if the program does not matter |
//! | `NEAREST` | distance of the images' cache line next to the thread pointer |
//! | `TCB` | bytes at the beginning of the images that belong to the ABI |
//! | `DTV_POINTER` | offset of the dtv pointer from the thread pointer |
//! | `SELF_POINTER` | whether the first word at the thread pointer points to itself |
//! | `descriptor` | the address of `struct pthread`, which is a `pthread_t` |
//! | `images` | where the images of libraries begin |
//! | `reach` | how many bytes of images there are up to a library's end |
//! | `room` | a block's [`Room`]: what lies where in a slot |
//! | `DTV_HOME` | a part of `struct pthread` in which a small dtv can be |
//! | `dtv_bytes`, `dtv_room` | bytes of a dtv, and what it has in the course of time |
//! | `DTV_SHARE` | bytes of the reserve that bring a byte of dtv |
//! | `Sizes` | what the dynamic linker says of the sizes |
//! | `jump_target` | the stack pointer in a `jmp_buf` |
//! | `RSEQ_SIGNATURE`, `OLDEST`, `RENEWED` | numbers and versions of glibc's |

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

/// What the dynamic linker says of the sizes of a thread's parts.
pub(super) struct Sizes {
    /// `_dl_get_tls_static_info`.
    pub(super) total: usize,
    /// `struct pthread`.
    pub(super) pthread: usize,
    /// The offset of the dtv pointer in it, or from it on.
    pub(super) dtv: usize,
}

/// Bytes of a block, without the dtv, and where they are.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Below the thread pointer.
    pub(super) below: usize,
    /// From there to the end of the slot.
    pub(super) above: usize,
    /// What images may have, the reserve included.
    pub(super) images: usize,
}

//! `libpirn.so`, preloaded into C programs that know nothing of it, and linked to others.

mod exports;
mod forks;
mod linked;
mod preloaded;
mod robust;
mod shared;
mod signals;

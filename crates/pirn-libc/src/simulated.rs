//! The seams for a simulated network and for random bytes: what a simulation answers in place of
//! the kernel.
//!
//! The network's sockets are Unix sockets of the kernel's, with the descriptor that the program
//! knows. So reading, writing, waiting and closing are the kernel's. What differs is how they are
//! made, connected and named.

use crate::virtual_thread;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::slice;
use libc::{sockaddr, socklen_t};
use pirn_rt::sched::simulation;
use pirn_rt::sys::{SysResult, call};
use std::sync::OnceLock;

/// A network that threads of a simulation see. `None` always means that the kernel is to answer.
pub trait Network: Sync {
    /// Makes a socket.
    fn socket(&self, domain: c_int, kind: c_int, protocol: c_int) -> Option<SysResult>;

    /// Connects a socket.
    ///
    /// # Safety
    /// As for `connect`.
    unsafe fn connect(
        &self,
        fd: c_int,
        address: *const sockaddr,
        length: socklen_t,
    ) -> Option<SysResult>;

    /// Returns whether this is a simulated listener.
    fn listens(&self, fd: c_int) -> bool;

    /// Notes that a simulated listener has accepted a connection, and tells the address of the
    /// peer.
    ///
    /// # Safety
    /// As for `accept`.
    unsafe fn accepted(
        &self,
        listener: c_int,
        fd: c_int,
        address: *mut sockaddr,
        length: *mut socklen_t,
    );

    /// Returns whether an option has no meaning for a simulated socket, and is to be ignored.
    fn ignores_option(&self, fd: c_int, level: c_int, option: c_int) -> bool;

    /// Notes a duplicate of a descriptor.
    fn duplicated(&self, fd: c_int, new: c_int);

    /// Notes that a descriptor is about to be closed.
    fn closing(&self, fd: c_int);

    /// Returns a host's address as text for `getaddrinfo`, which so asks no server.
    fn address_of(&self, name: &CStr) -> Option<&'static CStr>;
}

/// Fills a buffer with random bytes, if there is a run.
pub type Fill = fn(&mut [u8]) -> bool;

static RANDOM: OnceLock<Fill> = OnceLock::new();

/// Installs what simulated threads read from the kernel's devices of random bytes, once.
pub fn install_random(fill: Fill) {
    let _ = RANDOM.set(fill);
}

/// Reads from a device of random bytes, `/dev/random` or `/dev/urandom`, if the running thread is
/// simulated and this is one.
///
/// # Safety
/// As for `read`.
#[inline(always)]
pub(crate) unsafe fn read_random(fd: c_int, to: *mut c_void, length: usize) -> Option<SysResult> {
    match simulation::is_running() {
        false => None,
        // SAFETY: the caller's contract.
        true => unsafe { read_random_here(fd, to, length) },
    }
}

#[cold]
unsafe fn read_random_here(fd: c_int, to: *mut c_void, length: usize) -> Option<SysResult> {
    const DEVICES: [(u32, u32); 2] = [(1, 8), (1, 9)];
    let fill = RANDOM.get().filter(|_| virtual_thread().is_some())?;
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills in the status, if it succeeds; the caller's contract for the buffer.
    unsafe {
        call!(libc::SYS_fstat, fd, status.as_mut_ptr()).ok()?;
        let libc::stat {
            st_mode, st_rdev, ..
        } = status.assume_init();
        let device = (libc::major(st_rdev), libc::minor(st_rdev));
        if st_mode & libc::S_IFMT != libc::S_IFCHR || !DEVICES.contains(&device) {
            return None;
        }
        to.write_bytes(0, length);
        fill(slice::from_raw_parts_mut(to.cast(), length)).then_some(Ok(length))
    }
}

static NETWORK: OnceLock<&'static dyn Network> = OnceLock::new();

/// Installs the network of simulations, once.
pub fn install(network: &'static dyn Network) {
    let _ = NETWORK.set(network);
}

/// Returns the network that the running thread sees, if it is simulated.
#[inline(always)]
pub(crate) fn network() -> Option<&'static dyn Network> {
    match simulation::is_running() {
        false => None,
        true => here(),
    }
}

#[cold]
fn here() -> Option<&'static dyn Network> {
    virtual_thread()?;
    NETWORK.get().copied()
}

/// Returns the address, as text, of a host that is simulated.
///
/// # Safety
/// `name` is null or a C string.
pub(crate) unsafe fn address_of(name: *const c_char) -> Option<*const c_char> {
    let network = network()?;
    // SAFETY: the caller's contract.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
    network.address_of(name).map(CStr::as_ptr)
}

/// Notes a duplicate of a descriptor, also in the table of descriptors.
pub(crate) fn duplicated(fd: c_int, new: c_int) {
    pirn_rt::blocking::fds::duplicated(fd, new);
    if let Some(network) = network() {
        network.duplicated(fd, new);
    }
}

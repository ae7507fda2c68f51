//! The seams for a simulation: what it answers in the kernel's place.
//!
//! A [`Kernel`] answers system calls, which are made as the kernel has them. A [`Network`] is for
//! sockets: these are Unix sockets of the kernel's, with the descriptor that the program knows. So
//! reading, writing, waiting and closing are the kernel's. What differs is how they are made,
//! connected and named.

use crate::forward::args;
use crate::virtual_thread;
use core::ffi::{CStr, c_char, c_int, c_long};
use libc::{sockaddr, socklen_t};
use pirn_rt::sched::simulation;
use pirn_rt::sys::SysResult;
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

/// What threads of a simulation find in the kernel's place, but for sockets.
pub trait Kernel: Sync {
    /// Makes a system call on files, timers, random numbers or children. `None`: the kernel is to
    /// make it.
    ///
    /// # Safety
    /// As for the system call.
    unsafe fn call(&self, number: c_long, args: [usize; 6]) -> Option<SysResult>;

    /// Notes a descriptor that libc has opened by itself, which may write to it by itself.
    fn opened(&self, fd: c_int, by_stdio: bool);
}

static KERNEL: OnceLock<&'static dyn Kernel> = OnceLock::new();
static NETWORK: OnceLock<&'static dyn Network> = OnceLock::new();

/// Installs the network and the kernel of simulations, once.
pub fn install(network: &'static dyn Network, kernel: &'static dyn Kernel) {
    let _ = NETWORK.set(network);
    let _ = KERNEL.set(kernel);
}

/// Makes a system call in the kernel's place, if the running thread is simulated.
///
/// # Safety
/// As for the system call.
#[inline(always)]
pub(crate) unsafe fn call<const N: usize>(number: c_long, given: [usize; N]) -> Option<SysResult> {
    match simulation::is_running() {
        false => None,
        // SAFETY: the caller's contract.
        true => unsafe { call_here(number, args(given)) },
    }
}

#[cold]
unsafe fn call_here(number: c_long, args: [usize; 6]) -> Option<SysResult> {
    // SAFETY: the caller's contract.
    kernel().and_then(|it| unsafe { it.call(number, args) })
}

/// Returns whether the running thread is simulated.
pub(crate) fn is_here() -> bool {
    simulation::is_running() && kernel().is_some()
}

/// Returns the kernel that the running thread sees, if it is simulated.
fn kernel() -> Option<&'static dyn Kernel> {
    virtual_thread()?;
    KERNEL.get().copied()
}

/// Notes a descriptor that libc has opened by itself; -1: it has not.
pub(crate) fn opened(fd: c_int, by_stdio: bool) {
    if simulation::is_running()
        && fd >= 0
        && let Some(kernel) = kernel()
    {
        kernel.opened(fd, by_stdio);
    }
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

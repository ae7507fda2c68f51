//! The seams for a simulation: what it answers in the kernel's place.
//!
//! A [`Kernel`] answers system calls, which are made as the kernel has them. A [`Network`] is for
//! sockets: these are Unix sockets of the kernel's, with the descriptor that the program knows. So
//! reading, writing, waiting and closing are the kernel's. What differs is how they are made,
//! connected and named; what datagrams carry beside their bytes; and errors that no Unix socket
//! has.

use crate::virtual_thread;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ops::RangeInclusive;
use libc::{msghdr, sockaddr, socklen_t};
use pirn_rt::blocking::fds;
use pirn_rt::blocking::fds::readiness::Interest;
use pirn_rt::sched::simulation;
use pirn_rt::sys::{Errno, SysResult};
use std::sync::OnceLock;

/// A network that threads of a simulation see. `None` always means that the kernel is to answer. No
/// method waits.
pub trait Network: Sync {
    /// Makes a socket.
    fn socket(&self, domain: c_int, kind: c_int, protocol: c_int) -> Option<SysResult>;

    /// Connects a socket, or begins to, with `EINPROGRESS`: it is writable when the connection is
    /// made or refused, and another call tells the result.
    ///
    /// # Safety
    /// As for `connect`.
    unsafe fn connect(
        &self,
        fd: c_int,
        address: *const sockaddr,
        length: socklen_t,
    ) -> Option<SysResult>;

    /// Checks a connection that the kernel has made.
    fn connected(&self, fd: c_int) -> SysResult;

    /// Returns whether this is a simulated listener.
    ///
    /// # Errors
    /// It may accept no connection now.
    fn listens(&self, fd: c_int) -> Result<bool, Errno>;

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

    /// Sets an option that is not the kernel's.
    ///
    /// # Safety
    /// As for `setsockopt`.
    unsafe fn set_option(
        &self,
        fd: c_int,
        level: c_int,
        option: c_int,
        value: *const c_void,
        length: socklen_t,
    ) -> Option<SysResult>;

    /// Notes a duplicate of a descriptor, which takes the place of what had the number.
    fn duplicated(&self, fd: c_int, new: c_int);

    /// Notes a descriptor that came with a message.
    fn received(&self, fd: c_int);

    /// Notes that descriptors are about to be closed.
    fn closing(&self, fds: RangeInclusive<c_int>);

    /// Returns whether this is a simulated socket, and whether for datagrams.
    fn has_datagrams(&self, fd: c_int) -> Option<bool>;

    /// Sends a datagram.
    ///
    /// # Safety
    /// As for `sendmsg`, with a simulated socket for datagrams.
    unsafe fn send(&self, fd: c_int, message: &msghdr) -> SysResult;

    /// Receives a datagram. `EAGAIN`: the queue is empty.
    ///
    /// # Safety
    /// As for `recvmsg`, with a simulated socket for datagrams.
    unsafe fn receive(&self, fd: c_int, message: &mut msghdr, flags: c_int) -> SysResult;

    /// Begins to read or write `length` bytes. Returns how many may be transferred.
    ///
    /// # Errors
    /// The call fails without an attempt.
    fn begin(&self, fd: c_int, interest: Interest, length: usize) -> Result<usize, Errno>;

    /// Returns what the program is told where the kernel's Unix socket had this result.
    fn outcome(&self, fd: c_int, result: SysResult) -> SysResult;

    /// Returns a host's addresses as texts, IPv4 and IPv6, so that no server is asked.
    fn addresses_of(&self, name: &CStr) -> Option<[&'static CStr; 2]>;

    /// Returns a host's name.
    ///
    /// # Safety
    /// The address has this length.
    unsafe fn name_of(&self, address: *const sockaddr, length: socklen_t) -> Option<&'static CStr>;

    /// Notes that the simulation refuses a call.
    fn refused(&self, call: &'static str);
}

/// Answers system calls of a simulation's threads in the kernel's place, but for sockets.
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
        true => unsafe { call_here(number, &given) },
    }
}

#[cold]
unsafe fn call_here(number: c_long, given: &[usize]) -> Option<SysResult> {
    let mut args = [0; 6];
    args[..given.len()].copy_from_slice(given);
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

/// Notes a duplicate of a descriptor, also in the table of descriptors.
pub(crate) fn duplicated(fd: c_int, new: c_int) {
    fds::duplicated(fd, new);
    if let Some(network) = network() {
        network.duplicated(fd, new);
    }
}

/// Notes that descriptors are about to be closed.
#[inline(always)]
pub(crate) fn closing(fds: RangeInclusive<c_int>) {
    if let Some(network) = network() {
        network.closing(fds);
    }
}

/// A host of a simulation, for functions that look names up.
pub(crate) enum Host {
    /// The thread is not simulated.
    Libcs,
    /// Its addresses as texts, IPv4 and IPv6.
    Known([&'static CStr; 2]),
    /// It is an address itself, or an unknown name.
    Other,
}

/// Looks a host up.
///
/// # Safety
/// `name` is null or a C string.
pub(crate) unsafe fn host(name: *const c_char) -> Host {
    let Some(network) = network() else {
        return Host::Libcs;
    };
    // SAFETY: the caller's contract.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    match name.and_then(|name| network.addresses_of(name)) {
        Some(texts) => Host::Known(texts),
        None => Host::Other,
    }
}

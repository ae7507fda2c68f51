//! Addresses of nodes and sockets: IPv4.

use core::ffi::c_int;
use core::mem;
use libc::{sockaddr, sockaddr_in, sockaddr_un, socklen_t};
use pirn_rt::sys::Errno;
use std::net::Ipv4Addr;

/// Host and port, in the machine's order of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Address {
    pub(super) host: u32,
    pub(super) port: u16,
}

/// The address of the first node.
const FIRST: u32 = 0x0a00_0001;

impl Address {
    pub(super) const ANY: Address = Address { host: 0, port: 0 };

    /// Reads what a program passes.
    ///
    /// # Safety
    /// `address` is null, or has `length` bytes.
    pub(super) unsafe fn read(
        address: *const sockaddr,
        length: socklen_t,
    ) -> Result<Address, Errno> {
        if address.is_null() {
            return Err(Errno(libc::EFAULT));
        }
        if (length as usize) < size_of::<sockaddr_in>() {
            return Err(Errno(libc::EINVAL));
        }
        // SAFETY: the caller's contract.
        let it = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
        match c_int::from(it.sin_family) {
            libc::AF_INET => Ok(Address {
                host: u32::from_be(it.sin_addr.s_addr),
                port: u16::from_be(it.sin_port),
            }),
            _ => Err(Errno(libc::EAFNOSUPPORT)),
        }
    }

    /// Writes it where a program wants it, as far as there is room.
    ///
    /// # Safety
    /// Both are null, or `length` tells how many bytes may be written.
    pub(super) unsafe fn write(self, address: *mut sockaddr, length: *mut socklen_t) {
        if address.is_null() || length.is_null() {
            return;
        }
        // SAFETY: zeros are an address.
        let mut it: sockaddr_in = unsafe { mem::zeroed() };
        it.sin_family = libc::AF_INET as libc::sa_family_t;
        it.sin_addr.s_addr = self.host.to_be();
        it.sin_port = self.port.to_be();
        // SAFETY: the caller's contract.
        unsafe {
            let room = (*length as usize).min(size_of::<sockaddr_in>());
            let bytes = (&raw const it).cast::<u8>();
            bytes.copy_to_nonoverlapping(address.cast(), room);
            *length = size_of::<sockaddr_in>() as socklen_t;
        }
    }
}

/// Returns the address of a node.
pub(super) fn of_node(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(FIRST + number)
}

/// Returns what an address means on a node: 127.0.0.1 and 0.0.0.0 are its own.
pub(super) fn seen_from(node: u32, host: u32) -> u32 {
    match host >> 24 {
        0 | 127 => FIRST + node,
        _ => host,
    }
}

/// Returns the node with this address, if there are so many.
pub(super) fn node_of(host: u32, nodes: usize) -> Option<u32> {
    host.checked_sub(FIRST).filter(|&it| (it as usize) < nodes)
}

/// Returns a Unix socket's address in the abstract namespace.
pub(super) fn of_unix(name: &[u8]) -> (sockaddr_un, socklen_t) {
    // SAFETY: zeros are an address.
    let mut it: sockaddr_un = unsafe { mem::zeroed() };
    it.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in it.sun_path[1..].iter_mut().zip(name) {
        *to = *from as core::ffi::c_char;
    }
    let before = mem::offset_of!(sockaddr_un, sun_path) + 1;
    (it, (before + name.len()) as socklen_t)
}

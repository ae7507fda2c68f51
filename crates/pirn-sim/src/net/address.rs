//! Addresses of nodes and sockets. IPv4's are kept as IPv6 has them: `::ffff:10.0.0.2`.

use core::ffi::c_int;
use core::mem;
use libc::{sockaddr, sockaddr_in, sockaddr_in6, sockaddr_un, socklen_t};
use pirn_rt::sys::Errno;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Host and port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Address {
    pub(super) host: Ipv6Addr,
    pub(super) port: u16,
}

/// The address of the first node.
const FIRST: u32 = 0x0a00_0001;
const FIRST_V6: u128 = 0xfd00_0000_0000_0000_0000_0000_0000_0001;

impl Address {
    /// Returns any address of a family.
    pub(super) fn any(domain: c_int) -> Address {
        let host = match domain {
            libc::AF_INET => Ipv4Addr::UNSPECIFIED.to_ipv6_mapped(),
            _ => Ipv6Addr::UNSPECIFIED,
        };
        Address { host, port: 0 }
    }

    /// Reads what a program passes for a socket of this family.
    ///
    /// # Safety
    /// `address` is null, or has `length` bytes.
    pub(super) unsafe fn read(
        domain: c_int,
        address: *const sockaddr,
        length: socklen_t,
    ) -> Result<Address, Errno> {
        if address.is_null() {
            return Err(Errno(libc::EFAULT));
        }
        let size = match domain {
            libc::AF_INET => size_of::<sockaddr_in>(),
            _ => size_of::<sockaddr_in6>(),
        };
        // The family comes first.
        // SAFETY: the caller's contract.
        let family = || c_int::from(unsafe { (*address).sa_family });
        if (length as usize) < size_of::<libc::sa_family_t>() {
            return Err(Errno(libc::EINVAL));
        }
        if family() != domain {
            return Err(Errno(libc::EAFNOSUPPORT));
        }
        if (length as usize) < size {
            return Err(Errno(libc::EINVAL));
        }
        // SAFETY: the caller's contract, for this length.
        Ok(unsafe { Address::read_long(address) })
    }

    /// # Safety
    /// The address has the length that its family, one of IP's, has.
    unsafe fn read_long(address: *const sockaddr) -> Address {
        // SAFETY: the caller's contract.
        unsafe {
            match c_int::from((*address).sa_family) {
                libc::AF_INET => {
                    let it = address.cast::<sockaddr_in>().read_unaligned();
                    let host = Ipv4Addr::from(u32::from_be(it.sin_addr.s_addr));
                    Address {
                        host: host.to_ipv6_mapped(),
                        port: u16::from_be(it.sin_port),
                    }
                }
                _ => {
                    let it = address.cast::<sockaddr_in6>().read_unaligned();
                    Address {
                        host: Ipv6Addr::from(it.sin6_addr.s6_addr),
                        port: u16::from_be(it.sin6_port),
                    }
                }
            }
        }
    }

    /// Reads an address of either family.
    ///
    /// # Safety
    /// As for [`read`](Self::read).
    pub(super) unsafe fn read_any(address: *const sockaddr, length: socklen_t) -> Option<Address> {
        [libc::AF_INET, libc::AF_INET6]
            .into_iter()
            // SAFETY: the caller's contract.
            .find_map(|domain| unsafe { Address::read(domain, address, length) }.ok())
    }

    /// Writes it where a program wants it, as far as there is room, as sockets of this family do.
    ///
    /// # Safety
    /// Both are null, or `length` tells how many bytes may be written.
    pub(super) unsafe fn write(
        self,
        domain: c_int,
        address: *mut sockaddr,
        length: *mut socklen_t,
    ) {
        if address.is_null() || length.is_null() {
            return;
        }
        // SAFETY: zeros are addresses; the caller's contract.
        unsafe {
            let copy = |bytes: *const u8, size: usize| {
                bytes.copy_to_nonoverlapping(address.cast(), size.min(*length as usize));
                *length = size as socklen_t;
            };
            if domain == libc::AF_INET {
                let mut it: sockaddr_in = mem::zeroed();
                it.sin_family = libc::AF_INET as libc::sa_family_t;
                it.sin_addr.s_addr = self.v4().unwrap_or(Ipv4Addr::UNSPECIFIED).to_bits().to_be();
                it.sin_port = self.port.to_be();
                copy((&raw const it).cast(), size_of::<sockaddr_in>());
            } else {
                let mut it: sockaddr_in6 = mem::zeroed();
                it.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                it.sin6_addr.s6_addr = self.host.octets();
                it.sin6_port = self.port.to_be();
                copy((&raw const it).cast(), size_of::<sockaddr_in6>());
            }
        }
    }

    pub(super) fn v4(self) -> Option<Ipv4Addr> {
        self.host.to_ipv4_mapped()
    }

    pub(super) fn is_any(self) -> bool {
        self.v4()
            .map_or(self.host.is_unspecified(), |it| it.is_unspecified())
    }

    fn is_loopback(self) -> bool {
        self.v4()
            .map_or(self.host.is_loopback(), |it| it.is_loopback())
    }

    /// Returns what it means as a destination: any host is the own one.
    pub(super) fn as_destination(self) -> Address {
        let host = match (self.is_any(), self.v4()) {
            (false, _) => self.host,
            (true, Some(_)) => Ipv4Addr::LOCALHOST.to_ipv6_mapped(),
            (true, None) => Ipv6Addr::LOCALHOST,
        };
        Address { host, ..self }
    }

    /// Returns an address at which a socket that is bound to this one is reached.
    pub(super) fn as_reached(self) -> Address {
        self.as_destination()
    }

    /// Returns the node with this address, as a node sees it, if there are so many.
    pub(super) fn node(self, from: u32, nodes: usize) -> Option<u32> {
        if self.is_loopback() {
            return Some(from);
        }
        let number = match self.v4() {
            Some(v4) => v4.to_bits().checked_sub(FIRST),
            None => self
                .host
                .to_bits()
                .checked_sub(FIRST_V6)
                .and_then(|it| it.try_into().ok()),
        };
        number.filter(|&it| (it as usize) < nodes)
    }

    /// Returns whether it is in the network of the nodes.
    pub(super) fn is_inside(self) -> bool {
        match self.v4() {
            Some(v4) => v4.octets()[0] == 10,
            None => self.host.octets()[0] == 0xfd,
        }
    }

    /// Returns the host that a node has for those who talk to it as this one.
    pub(super) fn own_for(self, node: u32) -> Ipv6Addr {
        match (self.is_loopback(), self.v4()) {
            (true, Some(_)) => Ipv4Addr::LOCALHOST.to_ipv6_mapped(),
            (true, None) => Ipv6Addr::LOCALHOST,
            (false, Some(_)) => v4_of_node(node).to_ipv6_mapped(),
            (false, None) => v6_of_node(node),
        }
    }

    /// Returns whether a socket that is bound to this address is reached at `to`, which is on its
    /// node.
    pub(super) fn is_reached_at(self, to: Address, only_v6: bool) -> bool {
        let matches = match (self.v4(), to.v4()) {
            _ if !self.is_any() => self.host == to.host,
            (Some(_), Some(_)) | (None, None) => true,
            (None, Some(_)) => !only_v6,
            (Some(_), None) => false,
        };
        matches && self.port == to.port
    }
}

/// Returns the address of a node.
pub(super) fn v4_of_node(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(FIRST + number)
}

/// Returns the address of a node.
pub(super) fn v6_of_node(number: u32) -> Ipv6Addr {
    Ipv6Addr::from(FIRST_V6 + u128::from(number))
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

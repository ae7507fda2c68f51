//! UDP: each datagram is one of a Unix socket's, after a header with the sender's address. The
//! functions that receive take the header off.

use super::address::Address;
use super::socket::Kind;
use super::{Network, wire};
use crate::world;
use core::ffi::c_int;
use core::ptr;
use libc::{iovec, msghdr, sockaddr, socklen_t};
use pirn_rt::sys::{Errno, SysResult, call};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The most bytes of a datagram.
const MOST: usize = 65_507;
/// What comes before a datagram: the sender's host and port, and what it is.
const HEADER: usize = 19;
/// What a datagram is: the program's; or one that only wakes the threads that wait for the socket.
const OF_PROGRAM: u8 = 0;
const WAKES: u8 = 1;

fn header(from: Address, what: u8) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..16].copy_from_slice(&from.host.octets());
    header[16..18].copy_from_slice(&from.port.to_ne_bytes());
    header[18] = what;
    header
}

/// Returns the sender; `None`: it is no datagram of the program's.
fn sender(header: &[u8; HEADER]) -> Option<Address> {
    let host: [u8; 16] = *header.first_chunk()?;
    (header[18] == OF_PROGRAM).then_some(Address {
        host: Ipv6Addr::from(host),
        port: u16::from_ne_bytes([header[16], header[17]]),
    })
}

/// Returns whether the program has closed the socket whose other end this is.
pub(super) fn is_closed(other: c_int) -> bool {
    let nothing = header(Address::any(libc::AF_INET), WAKES);
    matches!(
        wire::send(other, &nothing),
        Err(Errno(libc::ECONNREFUSED | libc::EPIPE | libc::ENOTCONN))
    )
}

impl Network {
    /// `connect` of a socket for datagrams.
    ///
    /// # Safety
    /// As for `connect`.
    pub(super) unsafe fn connect_datagrams(
        &mut self,
        fd: c_int,
        address: *const sockaddr,
        length: socklen_t,
    ) -> SysResult {
        let Some(id) = self.sockets.id(fd) else {
            return Err(Errno(libc::EBADF));
        };
        let is_long = !address.is_null() && length as usize >= size_of::<libc::sa_family_t>();
        // SAFETY: the caller's contract; the family comes first.
        if is_long && c_int::from(unsafe { (*address).sa_family }) == libc::AF_UNSPEC {
            self.sockets.get_mut(id).peer = None;
            return Ok(0);
        }
        // SAFETY: the caller's contract.
        let to = unsafe { Address::read(self.sockets.get(id).domain, address, length) }?;
        let to = to.as_destination();
        self.check(id, to)?;
        let local = self.complete(id, to)?;
        let socket = self.sockets.get_mut(id);
        (socket.local, socket.peer) = (Some(local), Some(to));
        Ok(0)
    }

    /// Returns an error if the machine has no route.
    fn check(&self, id: u32, to: Address) -> Result<(), Errno> {
        let socket = self.sockets.get(id);
        if is_broadcast(to) {
            return match socket.options.is_set(libc::SO_BROADCAST) {
                true => Ok(()),
                false => Err(Errno(libc::EACCES)),
            };
        }
        if to.node(socket.node, self.nodes.len()).is_none() && !to.is_inside() {
            world::refused("sendto: no address of the simulation");
            return Err(Errno(libc::ENETUNREACH));
        }
        Ok(())
    }

    /// Sends a datagram.
    ///
    /// # Safety
    /// As for `sendmsg`.
    pub(super) unsafe fn send_datagram(&mut self, fd: c_int, message: &msghdr) -> SysResult {
        let Some(id) = self.sockets.id(fd) else {
            return Err(Errno(libc::EBADF));
        };
        if let error @ 1.. = self.take_error_of(fd) {
            return Err(Errno(error));
        }
        let socket = self.sockets.get(id);
        let (node, peer) = (socket.node, socket.peer);
        let to = match (message.msg_name.is_null(), peer) {
            (true, None) => return Err(Errno(libc::EDESTADDRREQ)),
            (true, Some(peer)) => peer,
            (false, _) => {
                let (address, length) = (message.msg_name.cast(), message.msg_namelen);
                // SAFETY: the caller's contract.
                unsafe { Address::read(socket.domain, address, length) }?.as_destination()
            }
        };
        if to.port == 0 {
            return Err(Errno(libc::EINVAL));
        }
        self.check(id, to)?;
        // SAFETY: the caller's contract.
        let bytes = unsafe { gathered(message) };
        if bytes.len() > MOST {
            return Err(Errno(libc::EMSGSIZE));
        }
        let from = self.complete(id, to)?;
        let datagram = Arc::new([&header(from, OF_PROGRAM), &*bytes].concat());
        let connected = (peer == Some(to)).then_some(id);
        let others = 0..self.nodes.len() as u32;
        let nodes: Vec<u32> = match is_broadcast(to) {
            true => others.filter(|it| *it != node).collect(),
            false => to.node(node, self.nodes.len()).into_iter().collect(),
        };
        for there in nodes {
            for delay in self.delays(node, there, bytes.len()) {
                let datagram = Arc::clone(&datagram);
                self.after(delay, move |net| {
                    net.deliver([node, there], [from, to], &datagram, connected);
                });
            }
        }
        Ok(bytes.len())
    }

    /// Hands a datagram over. `connected`: the sender's socket, which is told of a closed port.
    fn deliver(
        &mut self,
        [here, there]: [u32; 2],
        [from, to]: [Address; 2],
        datagram: &[u8],
        connected: Option<u32>,
    ) {
        if !self.gets_through(here, there) {
            return;
        }
        let own = Address {
            host: to.own_for(there),
            ..to
        };
        let to = if is_broadcast(to) { own } else { to };
        let found = self
            .sockets
            .bound(Kind::Datagram, there, to, |it| match it.peer {
                Some(peer) if peer != from => None,
                Some(_) => Some(2),
                None => Some(u32::from(!it.local().is_any())),
            });
        let shared = |id: &u32| self.sockets.get(*id).options.is_set(libc::SO_REUSEPORT);
        let chosen = match found.len() {
            0 => {
                if let Some(sender) = connected {
                    self.tell_of_closed_port(sender, [there, here]);
                }
                return;
            }
            count if count > 1 && found.iter().all(shared) => found[self.drawn_below(count)],
            count => found[count - 1],
        };
        // Without room for it, it is lost.
        let _ = wire::send(self.sockets.get(chosen).other, datagram);
    }

    /// Tells a connected socket that no socket has the port: by ICMP.
    fn tell_of_closed_port(&mut self, sender: u32, [from, to]: [u32; 2]) {
        for delay in self.delays(from, to, 0) {
            self.after(delay, move |net| {
                let socket = net.sockets.get_mut(sender);
                if socket.other >= 0 && !socket.descriptors.is_empty() {
                    socket.error = libc::ECONNREFUSED;
                    let wakes = header(Address::any(socket.domain), WAKES);
                    let other = socket.other;
                    if !net.is_cut(from, to) {
                        let _ = wire::send(other, &wakes);
                    }
                }
            });
        }
    }

    /// Receives a datagram.
    ///
    /// # Safety
    /// As for `recvmsg`.
    pub(super) unsafe fn receive_datagram(
        &mut self,
        fd: c_int,
        message: &mut msghdr,
        flags: c_int,
    ) -> SysResult {
        let domain = match self.sockets.id(fd) {
            Some(id) => self.sockets.get(id).domain,
            None => return Err(Errno(libc::EBADF)),
        };
        loop {
            if let error @ 1.. = self.take_error_of(fd) {
                return Err(Errno(error));
            }
            let mut header = [0; HEADER];
            let mut buffers = vec![iovec {
                iov_base: header.as_mut_ptr().cast(),
                iov_len: HEADER,
            }];
            if message.msg_iovlen > 0 {
                // SAFETY: the caller's contract.
                buffers.extend(unsafe {
                    core::slice::from_raw_parts(message.msg_iov, message.msg_iovlen)
                });
            }
            let mut whole = *message;
            (whole.msg_iov, whole.msg_iovlen) = (buffers.as_mut_ptr(), buffers.len());
            (whole.msg_name, whole.msg_namelen) = (ptr::null_mut(), 0);
            // SAFETY: the caller's contract, and our header.
            let received = unsafe { call!(libc::SYS_recvmsg, fd, &raw mut whole, flags) }?;
            if received < HEADER {
                return Ok(0); // Shut.
            }
            let Some(from) = sender(&header) else {
                if flags & libc::MSG_PEEK != 0 {
                    // SAFETY: as before.
                    let _ =
                        unsafe { call!(libc::SYS_recvmsg, fd, &raw mut whole, libc::MSG_DONTWAIT) };
                }
                continue;
            };
            message.msg_flags = whole.msg_flags;
            message.msg_controllen = 0;
            let (address, length) = (message.msg_name.cast(), &raw mut message.msg_namelen);
            match message.msg_name.is_null() {
                true => message.msg_namelen = 0,
                // SAFETY: the caller's contract.
                false => unsafe { from.write(domain, address, length) },
            }
            return Ok(received - HEADER);
        }
    }
}

fn is_broadcast(to: Address) -> bool {
    to.v4() == Some(Ipv4Addr::BROADCAST)
}

/// Returns the bytes of a message.
///
/// # Safety
/// As for `sendmsg`.
unsafe fn gathered(message: &msghdr) -> Vec<u8> {
    let mut bytes = Vec::new();
    for at in 0..message.msg_iovlen {
        // SAFETY: the caller's contract.
        unsafe {
            let iovec { iov_base, iov_len } = *message.msg_iov.add(at);
            if iov_len > 0 {
                bytes.extend_from_slice(core::slice::from_raw_parts(iov_base.cast(), iov_len));
            }
        }
    }
    bytes
}

//! The functions of libc by which sockets are made, connected and named.

use super::address::{self, Address};
use super::socket::{Kind, Socket, State, change, exchange, is_ours, new, pair, to_c};
use super::{names, options, wire, with};
use crate::{timers, world};
use core::ffi::{CStr, c_int, c_void};
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use libc::{msghdr, sockaddr, socklen_t};
use pirn_libc::simulated;
use pirn_rt::blocking::fds::readiness::Interest;
use pirn_rt::sys::{self, Errno, SysResult, call};

/// What threads of a simulation see in the kernel's place.
pub(crate) struct Calls;

impl simulated::Network for Calls {
    fn socket(&self, domain: c_int, kind: c_int, protocol: c_int) -> Option<SysResult> {
        const FLAGS: c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let refuse = |call| {
            world::refused(call);
            Some(Err(Errno(libc::EAFNOSUPPORT)))
        };
        let (sort, protocols) = match (domain, kind & !FLAGS) {
            (libc::AF_UNIX, _) => return None,
            (libc::AF_NETLINK, _) => return refuse("socket(AF_NETLINK)"),
            (libc::AF_PACKET, _) => return refuse("socket(AF_PACKET)"),
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) => {
                (Kind::Stream, libc::IPPROTO_TCP)
            }
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) => {
                (Kind::Datagram, libc::IPPROTO_UDP)
            }
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_RAW) => return refuse("socket(SOCK_RAW)"),
            _ => return refuse("socket: neither TCP nor UDP nor Unix"),
        };
        if protocol != 0 && protocol != protocols {
            return Some(Err(Errno(libc::EPROTONOSUPPORT)));
        }
        let node = world::own_node();
        if let Err(error) = with(|net| net.room_for_socket(node)) {
            return Some(Err(error));
        }
        let [fd, other] = match pair(kind) {
            Ok(pair) => pair,
            Err(error) => return Some(Err(error)),
        };
        with(|net| net.add(fd, new(node, domain, sort, fd, other)));
        Some(Ok(fd as usize))
    }

    unsafe fn connect(
        &self,
        fd: c_int,
        address: *const sockaddr,
        length: socklen_t,
    ) -> Option<SysResult> {
        let (domain, kind, state) = change(fd, |it| (it.domain, it.kind, it.state))?;
        if kind == Kind::Datagram {
            // SAFETY: the caller's contract.
            return Some(with(|net| unsafe {
                net.connect_datagrams(fd, address, length)
            }));
        }
        // SAFETY: the caller's contract.
        let to = match unsafe { Address::read(domain, address, length) } {
            Ok(to) => to,
            Err(error) => return Some(Err(error)),
        };
        Some(match state {
            State::Connecting => Err(Errno(libc::EALREADY)),
            State::Connected | State::Listens => Err(Errno(libc::EISCONN)),
            State::New => match with(|net| net.take_error_of(fd)) {
                0 => begin_connecting(fd, to),
                error => Err(Errno(error)),
            },
        })
    }

    fn connected(&self, fd: c_int) -> SysResult {
        let is_unix = || {
            // SAFETY: the options are ints.
            let int = |option| unsafe { sys::socket_option::<c_int>(fd, option) };
            int(libc::SO_DOMAIN) == Ok(libc::AF_UNIX) && int(libc::SO_TYPE) != Ok(libc::SOCK_DGRAM)
        };
        if with(|net| net.sockets.id(fd)).is_some() || !is_unix() {
            return Ok(0);
        }
        // SAFETY: the option is such a structure.
        let peer = unsafe { sys::socket_option::<libc::ucred>(fd, libc::SO_PEERCRED) };
        if peer.is_ok_and(|it| it.pid as u32 != std::process::id()) {
            world::refused("connect: a Unix socket of another process");
            // SAFETY: no pointers.
            let _ = unsafe { call!(libc::SYS_shutdown, fd, libc::SHUT_RDWR) };
            return Err(Errno(libc::ECONNREFUSED));
        }
        Ok(0)
    }

    fn listens(&self, fd: c_int) -> Result<bool, Errno> {
        with(|net| match net.sockets.by_fd(fd) {
            Some(&mut Socket {
                state: State::Listens,
                node,
                ..
            }) => net.room_for_socket(node).map(|()| true),
            _ => Ok(false),
        })
    }

    unsafe fn accepted(
        &self,
        listener: c_int,
        fd: c_int,
        address: *mut sockaddr,
        length: *mut socklen_t,
    ) {
        let peer = with(|net| {
            let listener = net.sockets.by_fd(listener)?;
            let (peer, local, wire) = listener.pending.pop_front()?;
            let mut socket = new(listener.node, listener.domain, Kind::Stream, fd, -1);
            socket.state = State::Connected;
            socket.options = listener.options.clone();
            (socket.local, socket.peer) = (Some(local), Some(peer));
            socket.end = Some((wire, 1));
            let domain = socket.domain;
            let id = net.add(fd, socket);
            net.accepted_at(wire, id);
            Some((peer, domain))
        });
        if let Some((peer, domain)) = peer {
            // SAFETY: the caller's contract.
            unsafe { peer.write(domain, address, length) };
        }
    }

    unsafe fn set_option(
        &self,
        fd: c_int,
        level: c_int,
        option: c_int,
        value: *const c_void,
        length: socklen_t,
    ) -> Option<SysResult> {
        // SAFETY: the caller's contract.
        unsafe { options::set(fd, level, option, value, length) }
    }

    fn duplicated(&self, fd: c_int, new: c_int) {
        timers::duplicated(fd, new);
        with(|net| net.duplicated(fd, new));
    }

    fn received(&self, fd: c_int) {
        with(|net| net.adopt(fd));
    }

    fn closing(&self, fds: RangeInclusive<c_int>) {
        timers::closing(&fds);
        with(|net| net.close_all(fds));
    }

    fn has_datagrams(&self, fd: c_int) -> Option<bool> {
        change(fd, |it| it.kind == Kind::Datagram)
    }

    unsafe fn send(&self, fd: c_int, message: &msghdr) -> SysResult {
        // SAFETY: the caller's contract.
        with(|net| unsafe { net.send_datagram(fd, message) })
    }

    unsafe fn receive(&self, fd: c_int, message: &mut msghdr, flags: c_int) -> SysResult {
        // SAFETY: the caller's contract.
        with(|net| unsafe { net.receive_datagram(fd, message, flags) })
    }

    fn begin(&self, fd: c_int, interest: Interest, length: usize) -> Result<usize, Errno> {
        with(|net| {
            if net.sockets.by_fd(fd).map(|it| it.state) == Some(State::New) {
                return match net.take_error_of(fd) {
                    0 if interest == Interest::Read => Err(Errno(libc::ENOTCONN)),
                    0 => Err(Errno(libc::EPIPE)),
                    error => Err(Errno(error)),
                };
            }
            net.part(length)
        })
    }

    fn outcome(&self, fd: c_int, result: SysResult) -> SysResult {
        if !matches!(result, Ok(0) | Err(Errno(libc::EPIPE | libc::ECONNRESET))) {
            return result;
        }
        match with(|net| net.take_error_of(fd)) {
            0 => result,
            error => Err(Errno(error)),
        }
    }

    fn addresses_of(&self, name: &CStr) -> Option<[&'static CStr; 2]> {
        names::addresses_of(name)
    }

    unsafe fn name_of(&self, address: *const sockaddr, length: socklen_t) -> Option<&'static CStr> {
        // SAFETY: the caller's contract.
        unsafe { Address::read_any(address, length) }.and_then(names::name_of)
    }

    fn refused(&self, call: &'static str) {
        world::refused(call);
    }
}

/// Begins to connect, with a new pair if an earlier attempt has broken the old one.
fn begin_connecting(fd: c_int, to: Address) -> SysResult {
    if change(fd, |it| it.other < 0) == Some(true) {
        let [new, other] = pair(libc::SOCK_STREAM | libc::SOCK_CLOEXEC)?;
        exchange(fd, new)?;
        change(fd, |it| it.other = other);
    }
    with(|net| net.begin_connecting(fd, to))
}

/// `bind`.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    if !is_ours(fd) {
        // SAFETY: the caller's contract.
        return to_c(unsafe { call!(libc::SYS_bind, fd, address, length) });
    }
    to_c(with(|net| {
        let Some(id) = net.sockets.id(fd) else {
            return Err(Errno(libc::EBADF));
        };
        // SAFETY: the caller's contract.
        let wanted = unsafe { Address::read(net.sockets.get(id).domain, address, length) }?;
        net.bind(id, wanted).map(|()| 0)
    }))
}

/// `listen`.
#[unsafe(no_mangle)]
pub extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    let is_plain = !is_ours(fd) || change(fd, |it| it.state != State::New) == Some(true);
    if is_plain {
        // SAFETY: no pointers.
        return to_c(unsafe { call!(libc::SYS_listen, fd, backlog) });
    }
    to_c(begin_listening(fd, backlog))
}

fn begin_listening(fd: c_int, backlog: c_int) -> SysResult {
    /// Names are the machine's.
    static NAMES: AtomicU64 = AtomicU64::new(0);
    with(|net| match net.sockets.id(fd) {
        Some(id) if net.sockets.get(id).kind == Kind::Stream => {
            let socket = net.sockets.get(id);
            match socket.local {
                Some(local) if !net.may_listen(id, local) => Err(Errno(libc::EADDRINUSE)),
                Some(_) => Ok(()),
                None => net.bind(id, Address::any(socket.domain)),
            }
        }
        _ => Err(Errno(libc::EOPNOTSUPP)),
    })?;
    let name = NAMES.fetch_add(1, Relaxed); // Relaxed: no other data.
    let name = format!("pirn-sim-{}-{name}", std::process::id()).into_bytes();
    let (address, length) = address::of_unix(&name);
    // SAFETY: a complete address; otherwise no pointers.
    let new = unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        let new = call!(libc::SYS_socket, libc::AF_UNIX, kind, 0)? as c_int;
        call!(libc::SYS_bind, new, &raw const address, length)?;
        call!(libc::SYS_listen, new, backlog)?;
        new
    };
    exchange(fd, new)?;
    let other = change(fd, |it| {
        (it.name, it.state) = (name, State::Listens);
        core::mem::replace(&mut it.other, -1)
    });
    wire::close(other.unwrap_or(-1));
    Ok(0)
}

/// `getsockname`.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    if !is_ours(fd) {
        // SAFETY: the caller's contract.
        return to_c(unsafe { call!(libc::SYS_getsockname, fd, address, length) });
    }
    if let Some((local, domain)) = change(fd, |it| (it.local(), it.domain)) {
        // SAFETY: the caller's contract.
        unsafe { local.write(domain, address, length) };
    }
    0
}

/// `getpeername`.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    if !is_ours(fd) {
        // SAFETY: the caller's contract.
        return to_c(unsafe { call!(libc::SYS_getpeername, fd, address, length) });
    }
    match change(fd, |it| it.peer.map(|peer| (peer, it.domain))).flatten() {
        Some((peer, domain)) => {
            // SAFETY: the caller's contract.
            unsafe { peer.write(domain, address, length) };
            0
        }
        None => to_c(Err(Errno(libc::ENOTCONN))),
    }
}

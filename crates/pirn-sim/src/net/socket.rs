//! The functions of libc by which sockets are made, connected and named.

use super::address::{self, Address};
use super::{Listener, NETWORK, Socket, State, sleep, wait_for_link, wire, with};
use crate::{program, world};
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use libc::{sockaddr, socklen_t};
use pirn_libc::simulated::Network;
use pirn_rt::blocking::fds;
use pirn_rt::sched::simulation;
use pirn_rt::sys::{self, Errno, SysResult, call};
use std::collections::VecDeque;

/// What threads of a simulation see in the kernel's place.
pub(crate) struct Sockets;

/// Returns whether this is a simulated socket of the calling thread's.
fn is_ours(fd: c_int) -> bool {
    simulation::is_running()
        && world::is_inside_run()
        && NETWORK
            .lock()
            .as_ref()
            .is_some_and(|net| net.sockets.contains_key(&fd))
}

/// Changes the entry of a socket, which exists.
fn change<R>(fd: c_int, f: impl FnOnce(&mut Socket) -> R) -> Option<R> {
    with(|net| net.sockets.get_mut(&fd).map(f))
}

impl Network for Sockets {
    fn socket(&self, domain: c_int, kind: c_int, _protocol: c_int) -> Option<SysResult> {
        const FLAGS: c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        if !world::is_inside_run() || domain == libc::AF_UNIX {
            return None;
        }
        if (domain, kind & !FLAGS) != (libc::AF_INET, libc::SOCK_STREAM) {
            return Some(Err(Errno(libc::EAFNOSUPPORT)));
        }
        let kind = libc::SOCK_STREAM | kind & FLAGS;
        // SAFETY: no pointers.
        let result = unsafe { call!(libc::SYS_socket, libc::AF_UNIX, kind, 0) };
        if let Ok(fd) = result {
            let socket = Socket {
                node: world::own_node(),
                ..Socket::default()
            };
            with(|net| net.sockets.insert(fd as c_int, socket));
        }
        Some(result)
    }

    unsafe fn connect(
        &self,
        fd: c_int,
        address: *const sockaddr,
        length: socklen_t,
    ) -> Option<SysResult> {
        if !is_ours(fd) {
            return None;
        }
        // SAFETY: the caller's contract.
        let to = match unsafe { Address::read(address, length) } {
            Ok(to) => to,
            Err(error) => return Some(Err(error)),
        };
        Some(connect(fd, to))
    }

    fn listens(&self, fd: c_int) -> bool {
        is_ours(fd) && change(fd, |it| it.state == State::Listens) == Some(true)
    }

    unsafe fn accepted(
        &self,
        listener: c_int,
        fd: c_int,
        address: *mut sockaddr,
        length: *mut socklen_t,
    ) {
        let peer = with(|net| {
            let found = net.listeners.iter_mut().find(|(_, it)| it.fd == listener)?;
            let (local, peer) = (*found.0, found.1.pending.pop_front());
            let socket = Socket {
                node: found.1.node,
                local: Some(local),
                peer,
                state: State::Connected,
            };
            net.sockets.insert(fd, socket);
            peer
        });
        if let Some(peer) = peer {
            // SAFETY: the caller's contract.
            unsafe { peer.write(address, length) };
        }
    }

    fn ignores_option(&self, fd: c_int, level: c_int, option: c_int) -> bool {
        const MEANT: [c_int; 2] = [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO];
        is_ours(fd) && !(level == libc::SOL_SOCKET && MEANT.contains(&option))
    }

    fn duplicated(&self, fd: c_int, new: c_int) {
        if is_ours(fd) {
            with(|net| {
                if let Some(socket) = net.sockets.get(&fd).cloned() {
                    net.sockets.insert(new, socket);
                }
            });
        }
    }

    fn closing(&self, fd: c_int) {
        if is_ours(fd) {
            with(|net| {
                net.sockets.remove(&fd);
                net.listeners.retain(|_, it| it.fd != fd);
            });
        }
    }

    fn address_of(&self, name: &CStr) -> Option<&'static CStr> {
        if !world::is_inside_run() || name.is_empty() {
            return None;
        }
        if name == c"localhost" {
            return Some(c"127.0.0.1");
        }
        with(|net| {
            net.nodes
                .iter()
                .find(|it| *it.name == *name)
                .map(|it| it.text)
        })
    }
}

/// Closes the sockets of a node.
pub(super) fn crash(node: u32) {
    let (ends, fds) = with(|net| {
        let of_node = |nodes: &[u32; 2]| nodes.contains(&node);
        let ends: Vec<_> = net
            .wires
            .values()
            .filter(|it| of_node(&it.1))
            .map(|it| it.0)
            .collect();
        let fds = net.sockets.iter().filter(|(_, it)| it.node == node);
        let fds: Vec<_> = fds.map(|(fd, _)| *fd).collect();
        net.sockets.retain(|_, it| it.node != node);
        net.listeners.retain(|_, it| it.node != node);
        (ends, fds)
    });
    for fd in fds {
        let _ = fds::close(fd);
    }
    for end in ends.into_iter().flatten() {
        // SAFETY: no pointers. Its thread, on no node, closes it.
        let _ = unsafe { call!(libc::SYS_shutdown, end, libc::SHUT_RDWR) };
    }
}

/// Connects a socket, or begins to if it must not wait.
fn connect(fd: c_int, to: Address) -> SysResult {
    match change(fd, |it| it.state) {
        Some(State::New | State::Failed(_)) => {}
        Some(State::Connecting) => return Err(Errno(libc::EALREADY)),
        _ => return Err(Errno(libc::EISCONN)),
    }
    let node = world::own_node();
    let near = become_pair(fd)?;
    let local = with(|net| {
        let wanted = net.sockets.get(&fd).and_then(|it| it.local);
        let local = net.complete(node, wanted);
        if let Some(socket) = net.sockets.get_mut(&fd) {
            (socket.local, socket.state) = (Some(local), State::Connecting);
        }
        local
    });
    let to = Address {
        host: address::seen_from(node, to.host),
        ..to
    };
    // SAFETY: no pointers.
    let flags = unsafe { call!(libc::SYS_fcntl, fd, libc::F_GETFL) }?;
    let attempt = Attempt {
        fd,
        near,
        local,
        to,
        node,
    };
    if flags as c_int & libc::O_NONBLOCK == 0 {
        return attempt.finish(0).map(|()| 0);
    }
    // Until the connection is there, the program must not find the socket ready.
    let filled = fill(fd);
    std::thread::spawn(move || attempt.finish(filled));
    Err(Errno(libc::EINPROGRESS))
}

/// Makes the socket one end of a pair. Returns the other end.
fn become_pair(fd: c_int) -> Result<c_int, Errno> {
    let mut pair = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: room for two; otherwise no pointers.
    unsafe {
        call!(
            libc::SYS_socketpair,
            libc::AF_UNIX,
            kind,
            0,
            pair.as_mut_ptr()
        )?;
        let flags = call!(libc::SYS_fcntl, fd, libc::F_GETFL)?;
        let own = call!(libc::SYS_fcntl, fd, libc::F_GETFD)?;
        let _ = fds::closing(fd);
        let closes = if own as c_int & libc::FD_CLOEXEC != 0 {
            libc::O_CLOEXEC
        } else {
            0
        };
        call!(libc::SYS_dup3, pair[0], fd, closes)?;
        call!(libc::SYS_fcntl, fd, libc::F_SETFL, flags)?;
        let _ = call!(libc::SYS_close, pair[0]);
    }
    fds::created(fd);
    fds::created(pair[1]);
    Ok(pair[1])
}

/// A connection that is being made.
struct Attempt {
    fd: c_int,
    /// The other end of its pair.
    near: c_int,
    local: Address,
    to: Address,
    node: u32,
}

impl Attempt {
    /// Performs the handshake, and lays the wire. `filled`: so many bytes of ours are in the
    /// socket.
    fn finish(self, filled: usize) -> Result<(), Errno> {
        let result = self.shake_hands();
        change(self.fd, |it| match result {
            Ok(_) => (it.peer, it.state) = (Some(self.to), State::Connected),
            Err(error) => it.state = State::Failed(error.0),
        });
        match result {
            Ok((far, there)) => {
                drain(self.near, filled);
                wire::lay([self.near, far], [self.node, there]);
                Ok(())
            }
            Err(error) => {
                let _ = fds::close(self.near); // The program finds the socket ready.
                Err(error)
            }
        }
    }

    /// Returns the end of the server's pair, and the server's node.
    fn shake_hands(&self) -> Result<(c_int, u32), Errno> {
        /// After six attempts of Linux (`tcp_syn_retries`).
        const PATIENCE: u64 = 127_000_000_000;
        /// Until the router says that there is no such host.
        const NO_HOST: u64 = 3_000_000_000;
        let Attempt { to, node, .. } = *self;
        let there = with(|net| address::node_of(to.host, net.nodes.len()));
        let Some(there) = there else {
            program::report_host(to.host);
            sleep(NO_HOST);
            return Err(Errno(libc::EHOSTUNREACH));
        };
        let travel = |from, to| {
            let whole = wait_for_link(from, to, PATIENCE);
            sleep(with(|net| net.delay()));
            whole.then_some(()).ok_or(Errno(libc::ETIMEDOUT))
        };
        travel(node, there)?;
        let listener = with(|net| net.listeners.get(&to).map(|it| it.name.clone()));
        let far = listener
            .ok_or(Errno(libc::ECONNREFUSED))
            .and_then(|name| enter(&name));
        if far.is_ok() {
            with(|net| {
                if let Some(listener) = net.listeners.get_mut(&to) {
                    listener.pending.push_back(self.local);
                }
            });
        }
        travel(there, node)?;
        far.map(|far| (far, there))
    }
}

/// Connects a new Unix socket to a listener's. Returns it.
fn enter(name: &[u8]) -> Result<c_int, Errno> {
    let (address, length) = address::of_unix(name);
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: a complete address; otherwise no pointers.
    unsafe {
        let far = call!(libc::SYS_socket, libc::AF_UNIX, kind, 0)? as c_int;
        match call!(libc::SYS_connect, far, &raw const address, length) {
            Ok(_) => {
                let _ = call!(libc::SYS_fcntl, far, libc::F_SETFL, 0);
                fds::created(far);
                Ok(far)
            }
            Err(_) => {
                let _ = call!(libc::SYS_close, far);
                Err(Errno(libc::ECONNREFUSED)) // A full queue; the kernel drops the attempt.
            }
        }
    }
}

/// Fills the way from a socket to its other end. Returns the number of bytes.
fn fill(fd: c_int) -> usize {
    let bytes = [0_u8; 4096];
    let mut filled = 0;
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let place = bytes.as_ptr();
    for size in [bytes.len(), 1] {
        // SAFETY: so many bytes are there.
        while let Ok(sent) = unsafe { call!(libc::SYS_sendto, fd, place, size, flags, 0, 0) } {
            filled += sent;
        }
    }
    filled
}

/// Takes these bytes out again, at the other end.
fn drain(near: c_int, mut filled: usize) {
    let mut bytes = [0_u8; 4096];
    while filled > 0 {
        let size = filled.min(bytes.len());
        // SAFETY: so much room is there.
        match unsafe { call!(libc::SYS_read, near, bytes.as_mut_ptr(), size) } {
            Ok(read) if read > 0 => filled -= read,
            _ => return,
        }
    }
}

fn to_c(result: SysResult) -> c_int {
    sys::to_c(result) as c_int
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
    // SAFETY: the caller's contract.
    to_c(
        unsafe { Address::read(address, length) }.and_then(|wanted| {
            let node = world::own_node();
            with(|net| {
                let local = net.complete(node, Some(wanted));
                if address::node_of(local.host, net.nodes.len()) != Some(node) {
                    return Err(Errno(libc::EADDRNOTAVAIL));
                }
                if net.listeners.contains_key(&local) {
                    return Err(Errno(libc::EADDRINUSE));
                }
                if let Some(socket) = net.sockets.get_mut(&fd) {
                    socket.local = Some(local);
                }
                Ok(0)
            })
        }),
    )
}

/// `listen`.
#[unsafe(no_mangle)]
pub extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    if !is_ours(fd) {
        // SAFETY: no pointers.
        return to_c(unsafe { call!(libc::SYS_listen, fd, backlog) });
    }
    to_c(begin_listening(fd, backlog))
}

fn begin_listening(fd: c_int, backlog: c_int) -> SysResult {
    /// Names are the machine's.
    static NAMES: AtomicU64 = AtomicU64::new(0);
    let name = NAMES.fetch_add(1, Relaxed); // Relaxed: no other data.
    let name = format!("pirn-sim-{}-{name}", std::process::id()).into_bytes();
    let (address, length) = address::of_unix(&name);
    // SAFETY: a complete address.
    unsafe {
        call!(libc::SYS_bind, fd, &raw const address, length)?;
        call!(libc::SYS_listen, fd, backlog)?;
    }
    with(|net| {
        let node = net.sockets.get(&fd).map_or(0, |it| it.node);
        let local = net.sockets.get(&fd).and_then(|it| it.local);
        let local = net.complete(node, local);
        if let Some(socket) = net.sockets.get_mut(&fd) {
            (socket.local, socket.state) = (Some(local), State::Listens);
        }
        let listener = Listener {
            name,
            node,
            fd,
            pending: VecDeque::new(),
        };
        net.listeners.insert(local, listener);
        Ok(0)
    })
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
    let local = change(fd, |it| it.local).flatten();
    // SAFETY: the caller's contract.
    unsafe { local.unwrap_or(Address::ANY).write(address, length) };
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
    match change(fd, |it| it.peer).flatten() {
        Some(peer) => {
            // SAFETY: the caller's contract.
            unsafe { peer.write(address, length) };
            0
        }
        None => to_c(Err(Errno(libc::ENOTCONN))),
    }
}

/// `getsockopt`.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    if (level, option) == (libc::SOL_SOCKET, libc::SO_ERROR) && is_ours(fd) {
        let failed = change(fd, |it| match it.state {
            State::Failed(error) => {
                it.state = State::New;
                Some(error)
            }
            _ => None,
        });
        if let Some(error) = failed.flatten() {
            // SAFETY: the caller's contract: the option is an int.
            unsafe {
                value.cast::<c_int>().write(error);
                *length = size_of::<c_int>() as socklen_t;
            }
            return 0;
        }
    }
    // SAFETY: the caller's contract.
    to_c(unsafe { call!(libc::SYS_getsockopt, fd, level, option, value, length) })
}

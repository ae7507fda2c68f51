//! The table of sockets, and the functions of libc by which they are made and named.

use super::address::{self, Address};
use super::{NETWORK, Network, names, options, wire, with};
use crate::random::{self, Purpose};
use crate::{timers, world};
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use libc::{msghdr, sockaddr, socklen_t};
use pirn_libc::simulated;
use pirn_rt::blocking::fds;
use pirn_rt::blocking::fds::readiness::Interest;
use pirn_rt::sched::simulation;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::vthread;
use std::collections::{BTreeMap, VecDeque};

/// What a socket carries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Stream,
    Datagram,
}

/// What a socket for a stream is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    New,
    Listens,
    Connecting,
    Connected,
}

/// A simulated socket.
pub(super) struct Socket {
    pub(super) node: u32,
    pub(super) domain: c_int,
    pub(super) kind: Kind,
    pub(super) state: State,
    /// The program's descriptors of it.
    pub(super) descriptors: Vec<c_int>,
    /// The number of its open file, by which a descriptor is known that comes with a message.
    file: u64,
    /// The network's end of its pair; negative: a wire has it, or it is closed.
    pub(super) other: c_int,
    /// The wire, and which of its ends this is.
    pub(super) end: Option<(usize, usize)>,
    pub(super) local: Option<Address>,
    pub(super) peer: Option<Address>,
    /// What the program is to be told once.
    pub(super) error: c_int,
    pub(super) options: options::Options,
    /// The name of a listener's Unix socket, in the abstract namespace.
    pub(super) name: Vec<u8>,
    /// The clients in a listener's queue, in the kernel's order: from, to, and the wire.
    pub(super) pending: VecDeque<(Address, Address, usize)>,
}

impl Socket {
    pub(super) fn local(&self) -> Address {
        self.local.unwrap_or(Address::any(self.domain))
    }
}

/// The sockets of a run. They stay in the table when they are closed.
#[derive(Default)]
pub(super) struct Sockets {
    all: Vec<Socket>,
    /// One more than the number of the socket, by descriptor; 0: no socket.
    numbers: Vec<u32>,
    /// Those that have been bound, the last one last.
    bound: BTreeMap<(Kind, u32, u16), Vec<u32>>,
}

impl Sockets {
    pub(super) fn id(&self, fd: c_int) -> Option<u32> {
        let number = self.numbers.get(usize::try_from(fd).ok()?)?;
        number.checked_sub(1)
    }

    pub(super) fn get(&self, id: u32) -> &Socket {
        &self.all[id as usize]
    }

    pub(super) fn get_mut(&mut self, id: u32) -> &mut Socket {
        &mut self.all[id as usize]
    }

    fn by_fd(&mut self, fd: c_int) -> Option<&mut Socket> {
        self.id(fd).map(|id| self.get_mut(id))
    }

    fn add(&mut self, socket: Socket) -> u32 {
        self.all.push(socket);
        (self.all.len() - 1) as u32
    }

    /// Gives a socket a further descriptor.
    fn name(&mut self, fd: c_int, id: u32) {
        let place = fd as usize;
        if self.numbers.len() <= place {
            self.numbers.resize(place + 1, 0);
        }
        self.numbers[place] = id + 1;
        self.get_mut(id).descriptors.push(fd);
    }

    /// Returns the sockets that are reached at an address of a node: those for which `rank` gives
    /// the most.
    pub(super) fn bound(
        &self,
        kind: Kind,
        node: u32,
        to: Address,
        rank: impl Fn(&Socket) -> Option<u32>,
    ) -> Vec<u32> {
        let all = self.bound.get(&(kind, node, to.port));
        let mut best = (0, Vec::new());
        for &id in all.into_iter().flatten() {
            let socket = self.get(id);
            if !socket.local().is_reached_at(to, socket.options.only_v6()) {
                continue;
            }
            match rank(socket) {
                Some(rank) if rank > best.0 || best.1.is_empty() => best = (rank, vec![id]),
                Some(rank) if rank == best.0 => best.1.push(id),
                _ => {}
            }
        }
        best.1
    }

    fn is_free(&self, id: u32, local: Address) -> bool {
        let own = self.get(id);
        let key = (own.kind, own.node, local.port);
        let mut others = self.bound.get(&key).into_iter().flatten();
        others.all(|&other| {
            let other = self.get(other);
            let both = |option| own.options.is_set(option) && other.options.is_set(option);
            let shared = both(libc::SO_REUSEPORT)
                || both(libc::SO_REUSEADDR)
                    && (own.kind == Kind::Datagram || other.state != State::Listens);
            let apart = !other
                .local()
                .is_reached_at(local.as_reached(), other.options.only_v6())
                && !local.is_reached_at(other.local().as_reached(), own.options.only_v6());
            shared || apart
        })
    }

    fn bind(&mut self, id: u32, local: Address) {
        let socket = self.get_mut(id);
        socket.local = Some(local);
        let key = (socket.kind, socket.node, local.port);
        self.bound.entry(key).or_default().push(id);
    }

    fn unbind(&mut self, id: u32) {
        let socket = self.get(id);
        let key = (socket.kind, socket.node, socket.local().port);
        if let Some(ids) = self.bound.get_mut(&key) {
            ids.retain(|it| *it != id);
        }
    }
}

impl Network {
    /// Returns the address of a socket, which is given one if it has none, or a part of one, to
    /// talk to another.
    pub(super) fn complete(&mut self, id: u32, to: Address) -> Result<Address, Errno> {
        if self.sockets.get(id).local.is_none() {
            let any = Address::any(self.sockets.get(id).domain);
            self.bind(id, any)?;
        }
        let socket = self.sockets.get_mut(id);
        let mut local = socket.local();
        if local.is_any() {
            local.host = to.own_for(socket.node);
        }
        if socket.kind == Kind::Stream {
            socket.local = Some(local);
        }
        Ok(local)
    }

    /// Binds a socket; to a free port, if the port is 0.
    fn bind(&mut self, id: u32, wanted: Address) -> Result<(), Errno> {
        let socket = self.sockets.get(id);
        if socket.local.is_some() {
            return Err(Errno(libc::EINVAL));
        }
        let nodes = self.nodes.len();
        if !wanted.is_any() && wanted.node(socket.node, nodes) != Some(socket.node) {
            return Err(Errno(libc::EADDRNOTAVAIL));
        }
        let mut local = wanted;
        if wanted.port == 0 {
            for _ in 0..20_000 {
                self.next_port = if self.next_port >= 60_000 {
                    40_000
                } else {
                    self.next_port + 1
                };
                local.port = self.next_port;
                if self.sockets.is_free(id, local) {
                    break;
                }
            }
        }
        if !self.sockets.is_free(id, local) {
            return Err(Errno(libc::EADDRINUSE));
        }
        self.sockets.bind(id, local);
        Ok(())
    }

    /// Takes the error that a socket has for the program.
    pub(super) fn take_error_of(&mut self, fd: c_int) -> c_int {
        let Some(socket) = self.sockets.by_fd(fd) else {
            return 0;
        };
        match (core::mem::take(&mut socket.error), socket.end) {
            (0, Some((wire, side))) => self.take_error(wire, side),
            (error, _) => error,
        }
    }

    /// Notes that a descriptor is about to be closed.
    fn close(&mut self, fd: c_int) {
        let Some(id) = self.sockets.id(fd) else {
            return;
        };
        self.sockets.numbers[fd as usize] = 0;
        let socket = self.sockets.get_mut(id);
        socket.descriptors.retain(|it| *it != fd);
        if !socket.descriptors.is_empty() {
            return;
        }
        self.nodes[socket.node as usize].sockets -= 1;
        if let Some((wire, side)) = socket.end.filter(|_| socket.options.aborts()) {
            self.aborts(wire, side);
        }
        self.sockets.unbind(id);
        // It may be under way to another descriptor; the kernel knows when the close is done.
        self.after(0, move |net| net.forget(id));
    }

    /// Closes the network's end of a socket that has been closed.
    fn forget(&mut self, id: u32) {
        let socket = self.sockets.get_mut(id);
        if socket.other < 0 || !socket.descriptors.is_empty() {
            return;
        }
        let is_closed = match socket.kind {
            Kind::Stream => sys::events_now(socket.other, 0) & libc::POLLHUP != 0,
            Kind::Datagram => super::udp::is_closed(socket.other),
        };
        if is_closed {
            wire::close(core::mem::replace(&mut socket.other, -1));
        }
    }

    /// Ends the process of a node. Returns the descriptors to close.
    pub(super) fn crash(&mut self, node: u32) -> Vec<c_int> {
        let of_node = self.sockets.all.iter().filter(|it| it.node == node);
        let all: Vec<_> = of_node.flat_map(|it| it.descriptors.clone()).collect();
        all.iter().for_each(|fd| self.close(*fd));
        all
    }

    /// Ends a machine. Returns the descriptors to close.
    pub(super) fn vanish(&mut self, node: u32) -> Vec<c_int> {
        self.nodes[node as usize].is_down = true;
        self.vanish_from_wires(node);
        self.crash(node)
    }

    /// Ends the run: closes what is the network's. Returns the descriptors that the program has
    /// left open.
    pub(super) fn leave(mut self) -> Vec<c_int> {
        self.close_wires();
        let others = self.sockets.all.iter().filter(|it| it.other >= 0);
        others.for_each(|it| wire::close(it.other));
        let all = self.sockets.all.iter();
        all.flat_map(|it| it.descriptors.clone()).collect()
    }
}

/// Returns whether the caller is a thread of the simulation.
pub(super) fn is_inside() -> bool {
    simulation::is_running() && vthread::parkable().is_some()
}

/// Returns whether this is a simulated socket, and the caller a thread of the simulation.
pub(super) fn is_ours(fd: c_int) -> bool {
    let known = |net: &Network| net.sockets.id(fd).is_some();
    is_inside() && NETWORK.lock().as_ref().is_some_and(known)
}

/// Changes a socket.
pub(super) fn change<R>(fd: c_int, f: impl FnOnce(&mut Socket) -> R) -> Option<R> {
    with(|net| net.sockets.by_fd(fd).map(f))
}

pub(super) fn to_c(result: SysResult) -> c_int {
    sys::to_c(result) as c_int
}

/// Returns the number of a descriptor's open file.
fn file(fd: c_int) -> u64 {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: room for the result; zeros are one.
    unsafe {
        libc::fstat(fd, status.as_mut_ptr());
        status.assume_init().st_ino
    }
}

/// Makes a pair of Unix sockets.
fn pair(kind: c_int) -> Result<[c_int; 2], Errno> {
    let mut pair = [0; 2];
    let place = pair.as_mut_ptr();
    // SAFETY: room for two.
    unsafe { call!(libc::SYS_socketpair, libc::AF_UNIX, kind, 0, place) }?;
    Ok(pair)
}

/// Exchanges the open file of a socket of the program's, and keeps flags and timeouts.
fn exchange(fd: c_int, new: c_int) -> SysResult {
    // SAFETY: room for what is read and written.
    unsafe {
        let flags = call!(libc::SYS_fcntl, fd, libc::F_GETFL)?;
        let own = call!(libc::SYS_fcntl, fd, libc::F_GETFD)?;
        call!(libc::SYS_fcntl, new, libc::F_SETFL, flags)?;
        for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            let time: libc::timeval = sys::socket_option(fd, option)?;
            let (place, size) = (&raw const time, size_of::<libc::timeval>());
            call!(
                libc::SYS_setsockopt,
                new,
                libc::SOL_SOCKET,
                option,
                place,
                size
            )?;
        }
        let closes = match own as c_int & libc::FD_CLOEXEC {
            0 => 0,
            _ => libc::O_CLOEXEC,
        };
        let _ = fds::closing(fd);
        call!(libc::SYS_dup3, new, fd, closes)?;
    }
    wire::close(new);
    fds::created(fd);
    fds::timeouts_set(fd);
    let file = file(fd);
    change(fd, |it| it.file = file);
    Ok(0)
}

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
        with(|net| {
            let id = net.sockets.id(fd);
            net.close(new);
            if let Some(id) = id {
                net.sockets.name(new, id);
            }
        });
    }

    fn received(&self, fd: c_int) {
        let file = file(fd);
        with(|net| {
            let found = net.sockets.all.iter().rposition(|it| it.file == file);
            let Some(id) = found.map(|it| it as u32) else {
                return;
            };
            let socket = net.sockets.get(id);
            if socket.descriptors.is_empty() {
                net.nodes[socket.node as usize].sockets += 1;
                if let Some(local) = socket.local {
                    net.sockets.bind(id, local);
                }
            }
            net.sockets.name(fd, id);
        });
    }

    fn closing(&self, fds: RangeInclusive<c_int>) {
        timers::closing(&fds);
        with(|net| {
            let last = *fds.end().min(&(net.sockets.numbers.len() as c_int - 1));
            (*fds.start()..=last).for_each(|fd| net.close(fd));
        });
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
            if change_of(net, fd) == Some(State::New) {
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

fn change_of(net: &mut Network, fd: c_int) -> Option<State> {
    net.sockets.by_fd(fd).map(|it| it.state)
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

/// Returns a socket.
fn new(node: u32, domain: c_int, kind: Kind, fd: c_int, other: c_int) -> Socket {
    Socket {
        node,
        domain,
        kind,
        state: State::New,
        descriptors: Vec::new(),
        file: file(fd),
        other,
        end: None,
        local: None,
        peer: None,
        error: 0,
        options: options::Options::default(),
        name: Vec::new(),
        pending: VecDeque::new(),
    }
}

impl Network {
    fn add(&mut self, fd: c_int, socket: Socket) -> u32 {
        self.close(fd); // Of one that was closed unseen.
        self.nodes[socket.node as usize].sockets += 1;
        let id = self.sockets.add(socket);
        self.sockets.name(fd, id);
        id
    }

    /// Returns whether a node may have another socket.
    fn room_for_socket(&self, node: u32) -> Result<(), Errno> {
        let node = &self.nodes[node as usize];
        match node.sockets < node.most_sockets {
            true => Ok(()),
            false => Err(Errno(libc::EMFILE)),
        }
    }

    /// Returns how many of `length` bytes are transferred, by the seed.
    fn part(&mut self, length: usize) -> Result<usize, Errno> {
        if self.shorts == 0.0 && self.interrupts == 0.0 {
            return Ok(length);
        }
        self.transfers += 1;
        let drawn = |what| random::at(self.seed, Purpose::Fault, what, self.transfers);
        if crate::random::share(drawn(0)) < self.interrupts {
            return Err(Errno(libc::EINTR));
        }
        match crate::random::share(drawn(1)) < self.shorts && length > 1 {
            true => Ok(1 + random::scaled(drawn(2), length as u64 - 1) as usize),
            false => Ok(length),
        }
    }
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

impl Network {
    /// Returns whether no other socket listens there, or all share the port.
    fn may_listen(&self, id: u32, local: Address) -> bool {
        let own = self.sockets.get(id);
        let same = self
            .sockets
            .bound(Kind::Stream, own.node, local.as_reached(), |it| {
                let shares = |it: &Socket| it.options.is_set(libc::SO_REUSEPORT);
                (it.state == State::Listens && !(shares(it) && shares(own))).then_some(0)
            });
        same.is_empty()
    }
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

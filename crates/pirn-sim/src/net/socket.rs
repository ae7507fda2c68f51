//! The table of sockets.

use super::address::Address;
use super::{NETWORK, Network, options, udp, wire, with};
use crate::random::{self, Purpose};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ops::RangeInclusive;
use pirn_rt::blocking::fds::{self, status_flags};
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

    pub(super) fn by_fd(&mut self, fd: c_int) -> Option<&mut Socket> {
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
    pub(super) fn bind(&mut self, id: u32, wanted: Address) -> Result<(), Errno> {
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
            Kind::Datagram => udp::is_closed(socket.other),
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
        let _ = call!(libc::SYS_fstat, fd, status.as_mut_ptr());
        status.assume_init().st_ino
    }
}

/// Makes a pair of Unix sockets.
pub(super) fn pair(kind: c_int) -> Result<[c_int; 2], Errno> {
    let mut pair = [0; 2];
    let place = pair.as_mut_ptr();
    // SAFETY: room for two.
    unsafe { call!(libc::SYS_socketpair, libc::AF_UNIX, kind, 0, place) }?;
    Ok(pair)
}

/// Exchanges the open file of a socket of the program's, and keeps flags and timeouts.
pub(super) fn exchange(fd: c_int, new: c_int) -> SysResult {
    // SAFETY: room for what is read and written.
    unsafe {
        // The program's: the runtime may have lent it `O_NONBLOCK`, for this call of `connect`.
        let flags = call!(libc::SYS_fcntl, fd, libc::F_GETFL)?;
        let flags = status_flags::visible(fd, flags as c_int);
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
/// Returns a socket.
pub(super) fn new(node: u32, domain: c_int, kind: Kind, fd: c_int, other: c_int) -> Socket {
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
    pub(super) fn add(&mut self, fd: c_int, socket: Socket) -> u32 {
        self.close(fd); // Of one that was closed unseen.
        self.nodes[socket.node as usize].sockets += 1;
        let id = self.sockets.add(socket);
        self.sockets.name(fd, id);
        id
    }

    /// Returns whether a node may have another socket.
    pub(super) fn room_for_socket(&self, node: u32) -> Result<(), Errno> {
        let node = &self.nodes[node as usize];
        match node.sockets < node.most_sockets {
            true => Ok(()),
            false => Err(Errno(libc::EMFILE)),
        }
    }

    /// Returns how many of `length` bytes are transferred, by the seed.
    pub(super) fn part(&mut self, length: usize) -> Result<usize, Errno> {
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
impl Network {
    /// Returns whether no other socket listens there, or all share the port.
    pub(super) fn may_listen(&self, id: u32, local: Address) -> bool {
        let own = self.sockets.get(id);
        let same = self
            .sockets
            .bound(Kind::Stream, own.node, local.as_reached(), |it| {
                let shares = |it: &Socket| it.options.is_set(libc::SO_REUSEPORT);
                (it.state == State::Listens && !(shares(it) && shares(own))).then_some(0)
            });
        same.is_empty()
    }

    /// Notes a descriptor that came with a message.
    pub(super) fn adopt(&mut self, fd: c_int) {
        let file = file(fd);
        let found = self.sockets.all.iter().rposition(|it| it.file == file);
        let Some(id) = found.map(|it| it as u32) else {
            return;
        };
        let socket = self.sockets.get(id);
        if socket.descriptors.is_empty() {
            self.nodes[socket.node as usize].sockets += 1;
            if let Some(local) = socket.local {
                self.sockets.bind(id, local);
            }
        }
        self.sockets.name(fd, id);
    }

    /// Notes a duplicate, which takes the place of what had the number.
    pub(super) fn duplicated(&mut self, fd: c_int, new: c_int) {
        let id = self.sockets.id(fd);
        self.close(new);
        if let Some(id) = id {
            self.sockets.name(new, id);
        }
    }

    /// Notes that descriptors are about to be closed.
    pub(super) fn close_all(&mut self, fds: RangeInclusive<c_int>) {
        let last = *fds.end().min(&(self.sockets.numbers.len() as c_int - 1));
        (*fds.start()..=last).for_each(|fd| self.close(fd));
    }
}

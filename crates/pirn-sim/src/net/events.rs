//! What is to happen in the network, by virtual time, and when the carrier looks at what threads
//! have done.

use super::{NETWORK, Network};
use crate::clock;
use core::cmp::Ordering as Order;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use pirn_rt::blocking::fds;
use pirn_rt::sys::call;
use std::collections::BinaryHeap;

/// How often the carrier looks while threads run, in virtual nanoseconds: some hundred points.
const LOOK: u64 = 10_000;

// Relaxed, here and below: only the carrier, and what runs on it, reads or writes them.
/// When the carrier is to look next: at what threads have written, and at the queue.
static NEXT_LOOK: AtomicU64 = AtomicU64::new(0);
/// Whether the carrier has looked since a thread has run, and since the last event.
static HAS_LOOKED: AtomicBool = AtomicBool::new(false);

/// An event.
struct Event {
    at: u64,
    /// Of two at the same time, the one that was made first happens first.
    number: u64,
    happens: Box<dyn FnOnce(&mut Network) + Send>,
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.cmp(other) == Order::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// The first one is the greatest.
    fn cmp(&self, other: &Event) -> Order {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// The queue.
pub(super) struct Events {
    queue: BinaryHeap<Event>,
    made: u64,
}

impl Events {
    pub(super) fn new() -> Events {
        NEXT_LOOK.store(0, Relaxed);
        HAS_LOOKED.store(false, Relaxed);
        Events {
            queue: BinaryHeap::new(),
            made: 0,
        }
    }
}

impl Network {
    /// Lets something happen after a time.
    pub(super) fn after(
        &mut self,
        nanos: u64,
        happens: impl FnOnce(&mut Network) + Send + 'static,
    ) {
        self.at(clock::now().saturating_add(nanos), happens);
    }

    /// Lets something happen at a time.
    pub(super) fn at(&mut self, at: u64, happens: impl FnOnce(&mut Network) + Send + 'static) {
        self.events.made += 1;
        self.events.queue.push(Event {
            at,
            number: self.events.made,
            happens: Box::new(happens),
        });
        NEXT_LOOK.fetch_min(at, Relaxed);
    }

    /// Takes what threads have written, and lets happen what is due. Returns whether the runtime's
    /// descriptors may have events.
    fn work(&mut self) -> bool {
        let mut news = false;
        if !HAS_LOOKED.swap(true, Relaxed) && (fds::any_registered() || !self.wires.is_empty()) {
            news = self.look_at_ends();
        }
        let now = clock::now();
        while let Some(event) = self.events.queue.peek()
            && event.at <= now
        {
            if let Some(event) = self.events.queue.pop() {
                (event.happens)(self);
                news = true;
                HAS_LOOKED.store(false, Relaxed);
            }
        }
        let next = self.events.queue.peek().map_or(u64::MAX, |it| it.at);
        NEXT_LOOK.store(next.min(now + LOOK), Relaxed);
        news
    }

    fn next(&self) -> Option<u64> {
        self.events.queue.peek().map(|it| it.at)
    }
}

/// Returns whether descriptors may have events: looks at the network, if it is time to.
pub(crate) fn is_due() -> bool {
    if clock::now() < NEXT_LOOK.load(Relaxed) {
        return false;
    }
    NETWORK.lock().as_mut().is_some_and(Network::work)
}

/// Notes that a thread runs.
pub(crate) fn thread_runs() {
    HAS_LOOKED.store(false, Relaxed);
}

/// Returns whether the carrier has looked since a thread has run, or the network. Otherwise it
/// looks next time.
pub(crate) fn looked() -> bool {
    let looked = HAS_LOOKED.load(Relaxed);
    if !looked {
        NEXT_LOOK.store(0, Relaxed);
    }
    looked
}

/// Returns when the next event is; `u64::MAX`: never.
pub(crate) fn next_event() -> u64 {
    let network = NETWORK.lock();
    network.as_ref().and_then(Network::next).unwrap_or(u64::MAX)
}

/// The kernel's list of the wires' ends with events, and of the runtime's list: the program's
/// descriptors.
pub(super) mod ends {
    use super::{c_int, call};
    use core::sync::atomic::{AtomicI32, Ordering::Relaxed};
    use libc::epoll_event;
    use pirn_rt::sched::runtime;

    /// The process's, made once: what is closed leaves the list by itself.
    static LIST: AtomicI32 = AtomicI32::new(-1);

    /// The key of the runtime's list.
    pub(in crate::net) const RUNTIMES: u64 = u64::MAX;

    const INTEREST: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;

    fn list() -> c_int {
        let list = LIST.load(Relaxed); // Relaxed: under the network's lock.
        if list >= 0 {
            return list;
        }
        // SAFETY: no pointers.
        let made = unsafe { call!(libc::SYS_epoll_create1, libc::EPOLL_CLOEXEC) };
        let made = made.map_or(-1, |it| it as c_int);
        LIST.store(made, Relaxed); // Relaxed: under the network's lock.
        if let Some(runtime) = runtime::get() {
            let [runtimes, _] = runtime.poller.descriptors();
            control(
                libc::EPOLL_CTL_ADD,
                runtimes,
                RUNTIMES,
                libc::EPOLLIN as u32,
            );
        }
        made
    }

    fn control(command: c_int, end: c_int, key: u64, events: u32) {
        let mut event = epoll_event { events, u64: key };
        let list = list();
        // SAFETY: a complete event.
        let result = unsafe { call!(libc::SYS_epoll_ctl, list, command, end, &raw mut event) };
        assert!(result.is_ok(), "pirn: epoll_ctl: {result:?}");
    }

    /// Adds an end.
    pub(in crate::net) fn add(end: c_int, key: u64) {
        control(libc::EPOLL_CTL_ADD, end, key, INTEREST);
    }

    /// Has the list report when there is room to write, or not any more.
    pub(in crate::net) fn wants_room(end: c_int, key: u64, wants: bool) {
        let room = if wants { libc::EPOLLOUT as u32 } else { 0 };
        control(libc::EPOLL_CTL_MOD, end, key, INTEREST | room);
    }

    /// Returns some of the ends that have had events since they were returned, and the events.
    pub(in crate::net) fn take(events: &mut [epoll_event; 64]) -> usize {
        let list = list();
        let (place, room) = (events.as_mut_ptr(), events.len());
        // SAFETY: so much room is there.
        unsafe { call!(libc::SYS_epoll_pwait, list, place, room, 0, 0, 8) }.unwrap_or(0)
    }
}

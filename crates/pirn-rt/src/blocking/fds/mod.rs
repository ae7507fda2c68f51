//! The state of each file descriptor.
//!
//! A table by number, in chunks made on demand. An entry remembers whether the descriptor is
//! registered with epoll, and whether timeouts are set on it. The entry is trusted only if the
//! descriptor's creation was seen (by an interposed `socket`, `accept`, `pipe`, …); for timeouts,
//! the descriptor must also not share its open file with a duplicate. For any other descriptor the
//! kernel is asked each time.
//!
//! The kernel is asked again after a second whether the program has made a descriptor non-blocking,
//! because the program may do so by an unseen system call (`rustix` makes them inline);
//! see [`status_flags`](status_flags). If a number changes its open file in such a way,
//! [`review`](review) notices later.
//!
//! Descriptors belong to the process, and so does the table. Nothing is tracked before the process
//! has a [runtime](crate::sched::runtime), whose poller reports the events of all descriptors.
//! Nothing is tracked in the child of a fork either: no thread parks there, and the epoll instance
//! is the parent's.
//!
//! The *generation* counts closes: a thread that waits for a descriptor that is closed wakes with
//! `EBADF`, and late events of a closed descriptor are recognised as stale.

use crate::blocking::fds::readiness::{Interest, Readiness};
use crate::lock::{Guard, Lock};
use crate::no_suspend;
use crate::own_vec::OwnVec;
use crate::sched::runtime;
use crate::sys::{self, Errno, SysResult, call};
use crate::time::Deadline;
use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicU32, Ordering};

pub mod other_table;
mod protocol;
pub mod readiness;
pub(crate) mod review;
pub mod status_flags;
mod waiters;

const CHUNK: usize = 1024;
const CHUNKS: usize = 1024;

/// The descriptor's creation was seen, so the flags below tell the truth (unless it is shared).
const KNOWN: u32 = 1;
/// There is, or was, another descriptor for the same open file.
const SHARED: u32 = 2;
/// Pirn has set `O_NONBLOCK` for the moment; the program wants the descriptor to block.
pub(super) const LENT: u32 = 4;
/// `SO_RCVTIMEO` or `SO_SNDTIMEO` is set.
const TIMEOUTS: u32 = 8;
/// epoll reports its events, under the current generation.
const REGISTERED: u32 = 16;

/// The descriptor is a pipe, a socket or the like.
const POLLABLE: u32 = 32;
// 64 is the mark of `review`.
const _: () = assert!(review::UNREVIEWED == 64);
/// The descriptor is a TCP stream: a short read leaves nothing behind.
const STREAM: u32 = 128;
/// A short read may leave something behind for which there will be no event.
const UNEVEN: u32 = 256;
/// A read may wait for more than one byte, by `SO_RCVLOWAT`.
const LOW_WATER: u32 = 512;

/// The entry of one descriptor.
pub struct Entry {
    /// The bits above. Relaxed everywhere: a thread learns of the descriptor from another thread by
    /// synchronisation of the program's own, which orders the accesses.
    pub(super) flags: AtomicU32,
    /// When the kernel last said that the descriptor blocks; see [`status_flags`].
    pub(super) blocks_in: AtomicU32,
    /// Its events, and the threads that wait for them.
    pub readiness: Readiness,
    serial: Lock<()>,
}

type Chunk = [Entry; CHUNK];
static TABLE: [AtomicPtr<Chunk>; CHUNKS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS];

/// Returns the entry of a descriptor; `None` for negative numbers and those beyond the table (a
/// million), and if it has not been made in a [section](no_suspend::is_on): there memory cannot
/// be allocated.
pub fn entry(fd: i32) -> Option<&'static Entry> {
    let number = usize::try_from(fd).ok()?;
    let place = TABLE.get(number / CHUNK)?;
    // Acquire: pairs with the Release in `make_chunk`.
    let mut chunk = place.load(Ordering::Acquire);
    if chunk.is_null() {
        if no_suspend::is_on() {
            return None;
        }
        chunk = make_chunk(place);
    }
    // SAFETY: chunks are never freed.
    Some(unsafe { &(*chunk)[number % CHUNK] })
}

/// Returns the entry, if it has been made.
#[inline]
pub(super) fn existing(fd: i32) -> Option<&'static Entry> {
    if !runtime::is_started() || other_table::is_here() {
        return None; // No thread can wait for a descriptor yet, or for this one.
    }
    let number = usize::try_from(fd).ok()?;
    // Acquire: as in `entry`. SAFETY: as in `entry`.
    unsafe { TABLE.get(number / CHUNK)?.load(Ordering::Acquire).as_ref() }
        .map(|chunk| &chunk[number % CHUNK])
}

/// Returns whether a thread waits for this descriptor.
pub fn is_awaited(fd: i32) -> bool {
    existing(fd).is_some_and(|entry| entry.readiness.is_awaited())
}

#[cold]
fn make_chunk(place: &AtomicPtr<Chunk>) -> *mut Chunk {
    let entries: Vec<Entry> = (0..CHUNK).map(|_| Entry::new(of_unseen())).collect();
    let new: *mut Chunk = Box::into_raw(entries.into_boxed_slice()).cast();
    // Release: publishes the entries. Acquire: sees another thread's entries.
    match place.compare_exchange(
        core::ptr::null_mut(),
        new,
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        Ok(_) => new,
        Err(theirs) => {
            // SAFETY: ours, and unpublished.
            drop(unsafe { Box::from_raw(new) });
            theirs
        }
    }
}

/// Forgets all descriptors, in the child of a fork that has no runtime yet: their open files are
/// shared with the parent, and threads of the parent may have held locks of the entries.
pub(crate) fn after_fork() {
    let made = |place: &&AtomicPtr<Chunk>| !place.load(Ordering::Relaxed).is_null();
    for place in TABLE.iter().filter(made) {
        place.store(core::ptr::null_mut(), Ordering::Relaxed); // Relaxed, all: no thread uses it.
    }
    REGISTERED_COUNT.store(0, Ordering::Relaxed);
    review::after_fork();
}

/// Notes that a pipe, a socket or the like was created by an interposed call.
#[inline]
pub fn created(fd: i32) {
    set_up(fd, KNOWN | POLLABLE);
}

/// Notes that a file of any kind was opened by an interposed call.
#[inline]
pub fn opened(fd: i32) {
    set_up(fd, KNOWN);
}

/// Notes that a descriptor was created whose open file may be shared with others.
#[inline]
pub fn created_shared(fd: i32) {
    set_up(fd, 0);
}

fn set_up(fd: i32, flags: u32) {
    if runtime::is_started()
        && !other_table::is_here()
        && let Some(entry) = entry(fd)
    {
        // A number that is created again was closed before, perhaps unseen.
        entry.begin_life(flags);
    }
}

/// Notes that a duplicate was made of `fd`.
#[inline]
pub fn duplicated(fd: i32, new: i32) {
    let mut inherited = of_unseen() & LOW_WATER;
    if let Some(entry) = existing(fd) {
        // Relaxed: see `Entry::flags`.
        inherited = entry.flags.fetch_or(SHARED, Ordering::Relaxed) & LOW_WATER;
        status_flags::forget(entry);
    }
    set_up(new, inherited);
}

/// Wakes all waiters of a descriptor that is about to be closed.
///
/// Returns the value that [`closed`] needs after the close. Returns `None` if no thread can wait
/// for any descriptor yet: by the time one can, the number may belong to another descriptor, in its
/// first generation.
pub fn closing(fd: i32) -> Option<u32> {
    let runtime = runtime::get().filter(|_| !other_table::is_here())?; // None: as in `existing`.
    let Some(entry) = existing(fd) else {
        return Some(0); // The generation that an entry begins with.
    };
    // Relaxed: see `Entry::flags`.
    if entry.flags.load(Ordering::Relaxed) & REGISTERED != 0 {
        runtime.poller.forget(fd);
    }
    entry.begin_life(0);
    Some(entry.generation())
}

/// Wakes the threads that began to wait for a closed descriptor after [`closing`], which gave
/// `generation`.
fn closed(fd: i32, generation: u32) {
    if let Some(entry) = existing(fd) {
        entry.end_life(generation);
    }
}

/// Closes a descriptor. Its waiters wake, before or after, with `EBADF`.
pub fn close(fd: i32) -> SysResult {
    if is_ours(fd) {
        return Err(CLOSED);
    }
    let life = closing(fd);
    // SAFETY: no pointers; the caller decides whose descriptor it is.
    let result = unsafe { call!(libc::SYS_close, fd) };
    if let Some(life) = life {
        closed(fd, life);
    }
    result
}

/// Closes the descriptors from `first` to `last`, except the runtime's own.
pub fn close_range(first: u32, last: u32, flags: i32) -> SysResult {
    let kernel = |first: u32, last: u32| {
        // SAFETY: no pointers; the caller decides whose descriptors they are.
        unsafe { call!(libc::SYS_close_range, first, last, flags) }
    };
    let closes = flags as u32 & libc::CLOSE_RANGE_CLOEXEC == 0;
    let here = closes && first <= last && !other_table::is_here();
    let Some(runtime) = runtime::get().filter(|_| here) else {
        return kernel(first, last);
    };
    // The numbers, and the generation that each begins unless a thread opens it meanwhile.
    let mut lives = OwnVec::new();
    for fd in numbers(first, last) {
        // A handler must not allocate, and cannot tell the threads that wait.
        if let Some(life) = closing(fd)
            && !no_suspend::is_on()
            && lives.reserve_one().is_ok()
        {
            lives.push((fd, life));
        }
    }
    let mut ours = runtime.poller.descriptors().map(|fd| fd as u32);
    ours.sort_unstable();
    let mut next = Some(first);
    for own in ours.into_iter().filter(|own| (first..=last).contains(own)) {
        if let Some(first) = next.filter(|next| *next < own) {
            kernel(first, own - 1)?;
        }
        next = own.checked_add(1);
    }
    if let Some(first) = next.filter(|next| *next <= last) {
        kernel(first, last)?;
    }
    for &(fd, life) in &*lives {
        closed(fd, life);
    }
    Ok(0)
}

/// Returns whether the descriptor is one of the runtime's own, without which no event arrives.
#[inline]
pub fn is_ours(fd: i32) -> bool {
    let here = runtime::get().filter(|_| !other_table::is_here());
    here.is_some_and(|runtime| runtime.poller.descriptors().contains(&fd))
}

/// Returns the numbers in a range that have an entry and may be closed.
fn numbers(first: u32, last: u32) -> impl Iterator<Item = i32> {
    let range = first as usize..=last as usize;
    let chunks = range.start() / CHUNK..=(range.end() / CHUNK).min(CHUNKS - 1);
    chunks
        // Acquire: as in `entry`.
        .filter(|&chunk| !TABLE[chunk].load(Ordering::Acquire).is_null())
        .flat_map(|chunk| chunk * CHUNK..(chunk + 1) * CHUNK)
        .filter(move |number| range.contains(number))
        .map(|number| number as i32)
        .filter(|&fd| !is_ours(fd))
}

/// Calls `f` for up to `most` descriptors, from number `first` on, that a thread has begun to wait
/// for since their last review. Returns the number to go on with, or `None` at the end.
pub(super) fn review_some(first: u32, mut most: usize, f: impl Fn(i32, &Entry)) -> Option<u32> {
    for fd in numbers(first, u32::MAX) {
        let Some(entry) = existing(fd) else { continue };
        // Read first: most entries stay unchanged.
        if review::is_marked(&entry.flags) {
            if most == 0 {
                return Some(fd as u32);
            }
            most -= 1;
            review::unmark(&entry.flags);
            f(fd, entry);
        }
    }
    None
}

impl Entry {
    fn new(flags: u32) -> Entry {
        Entry {
            flags: AtomicU32::new(flags),
            blocks_in: AtomicU32::new(0),
            readiness: Readiness::new(),
            serial: Lock::new(()),
        }
    }

    /// Ends this life of the descriptor and begins the next.
    fn begin_life(&self, flags: u32) {
        if no_suspend::is_on() {
            return self.begin_unknown_life();
        }
        let next = self.readiness.retire();
        self.set_flags(next, flags);
    }

    /// Ends the life `generation` of a closed descriptor, unless it has ended.
    #[inline]
    pub(super) fn end_life(&self, generation: u32) {
        if !no_suspend::is_on()
            && let Some(next) = self.readiness.retire_from(generation)
        {
            self.set_flags(next, 0);
        }
    }

    /// Sets the flags of the life `generation`, unless it has ended.
    fn set_flags(&self, generation: u32, flags: u32) {
        // Under the lock, so that `register` does not add flags of an earlier life.
        self.readiness.locked(|| {
            if self.generation() == generation {
                // Relaxed: see `Entry::flags`.
                count_registered(self.flags.swap(flags, Ordering::Relaxed), flags);
                status_flags::forget(self);
            }
        });
    }

    /// Begins a life of which nothing is known. Takes no lock, because the code that a signal
    /// handler has interrupted may hold it. Wakes no thread, because that could change a queue
    /// which the interrupted code is changing. So the waiting threads are not told now; the review
    /// that is due for the descriptor stays due, and tells them.
    #[cold]
    fn begin_unknown_life(&self) {
        self.readiness.retire_unseen();
        // Relaxed: see `Entry::flags`.
        let before = self.flags.fetch_and(review::UNREVIEWED, Ordering::Relaxed);
        count_registered(before, 0);
        status_flags::forget(self);
    }

    /// Serialises `accept`, and changes of `O_NONBLOCK`, as long as the result lives. `None` in a
    /// signal handler, which may have interrupted the thread that has the lock.
    #[inline]
    pub fn serialise(&self) -> Option<Guard<'_, ()>> {
        (!no_suspend::in_handler()).then(|| self.serial.lock())
    }

    /// Returns the number of the descriptor's current life.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.readiness.generation()
    }

    /// Returns the current life, and the number of its events of this kind.
    #[inline]
    pub(super) fn since(&self, interest: Interest) -> (u32, u32) {
        (self.generation(), self.readiness.count(interest))
    }

    /// Returns whether a short read leaves nothing behind, until there is an event.
    #[inline]
    pub(super) fn is_stream(&self) -> bool {
        const ALL: u32 = KNOWN | SHARED | STREAM | UNEVEN;
        // Relaxed: see `Entry::flags`. Alone: what `uneven` tells of one number holds for all.
        self.flags.load(Ordering::Relaxed) & ALL == (KNOWN | STREAM)
    }

    /// Returns whether all changes of its flags made through libc are seen here: its creation was
    /// seen, and no other number stands for the same open file.
    #[inline]
    pub(super) fn is_known_and_alone(&self) -> bool {
        // Relaxed: see `Entry::flags`.
        self.flags.load(Ordering::Relaxed) & (KNOWN | SHARED) == KNOWN
    }

    /// Notes that a thread begins to wait. It has joined the waiters, and holds their lock.
    #[inline]
    pub(super) fn note_waiter(&self) {
        // Read first: it is mostly marked.
        if !review::is_marked(&self.flags) {
            review::expect(&self.flags);
        }
    }

    /// Makes sure that epoll reports this descriptor's events. `EPERM`: it cannot, because the
    /// descriptor is always ready (a regular file).
    pub fn register(&self, fd: i32) -> SysResult {
        let flags = self.flags.load(Ordering::Relaxed); // Relaxed: see `Entry::flags`.
        if flags & (KNOWN | REGISTERED) == (KNOWN | REGISTERED) {
            return Ok(0);
        }
        let Some(runtime) = runtime::get() else {
            return Err(Errno(libc::EPERM)); // A test's runtime; the process has none.
        };
        // If it is registered in this life, it is so under this generation.
        let mut renews = flags & REGISTERED == 0;
        loop {
            let generation = self.generation();
            let mut gained = REGISTERED;
            if flags & (KNOWN | REGISTERED) == KNOWN && sys::is_plain_tcp(fd) {
                gained |= STREAM;
            }
            let result = runtime.poller.register_or_renew(fd, generation, renews);
            let is_current = self.readiness.locked(|| {
                let is_current = self.generation() == generation;
                if result.is_ok() && is_current {
                    // Relaxed: see `Entry::flags`.
                    let before = self.flags.fetch_or(gained, Ordering::Relaxed);
                    count_registered(before, before | gained);
                }
                is_current
            });
            if result.is_err() || is_current {
                return result;
            }
            // Another thread has put another file there meanwhile, and may have registered it. If
            // it kept the old generation, its events would be taken for the former file's.
            renews = true;
        }
    }
}

/// The number of descriptors that are registered. It may be negative for a moment.
static REGISTERED_COUNT: AtomicIsize = AtomicIsize::new(0);

/// Counts a change of an entry's flags.
fn count_registered(before: u32, after: u32) {
    let change = isize::from(after & REGISTERED != 0) - isize::from(before & REGISTERED != 0);
    if change != 0 {
        REGISTERED_COUNT.fetch_add(change, Ordering::Relaxed); // Relaxed: statistics only.
    }
}

/// Returns the number of descriptors that are registered with the poller, and the bytes of the
/// table.
#[inline]
pub fn stats() -> (usize, usize) {
    // Relaxed: statistics only; only whether there is a chunk matters.
    let chunks = TABLE
        .iter()
        .filter(|place| !place.load(Ordering::Relaxed).is_null());
    let registered = REGISTERED_COUNT.load(Ordering::Relaxed).max(0);
    (registered as usize, chunks.count() * size_of::<Chunk>())
}

/// The error of waits for descriptors that are closed meanwhile.
pub(crate) const CLOSED: Errno = Errno(libc::EBADF);

/// Returns whether a socket has been shut down for reading, or its peer has for writing.
#[inline]
pub fn is_shut(fd: i32) -> bool {
    existing(fd).is_some_and(|entry| entry.readiness.is_lasting(entry.generation()))
        && sys::events_now(fd, libc::POLLRDHUP) & libc::POLLRDHUP != 0
}

/// Returns whether a descriptor may be a [file](sys::is_file)'s. Cheap if it is known not to
/// be.
#[inline]
pub fn may_be_file(fd: i32) -> bool {
    // Relaxed: see `Entry::flags`.
    let pollable = existing(fd)
        .is_some_and(|entry| entry.flags.load(Ordering::Relaxed) & (POLLABLE | REGISTERED) != 0);
    !pollable && sys::is_file(fd)
}

/// Notes that `SO_RCVTIMEO` or `SO_SNDTIMEO` was set.
pub fn timeouts_set(fd: i32) {
    if let Some(entry) = existing(fd) {
        entry.flags.fetch_or(TIMEOUTS, Ordering::Relaxed); // Relaxed: see `Entry::flags`.
    }
}

/// Notes that a short read may soon leave something behind: a protocol on top of TCP, such as TLS,
/// reads record by record.
pub fn uneven(fd: i32) {
    if let Some(entry) = existing(fd) {
        entry.flags.fetch_or(UNEVEN, Ordering::Relaxed); // Relaxed: see `Entry::flags`.
    }
}

/// Notes that `SO_RCVLOWAT` was set: reads may wait for more than one byte, and fewer than that
/// come without an event. Other numbers may mean the same socket. If the descriptor has no entry,
/// all entries that are made from then on begin with the note.
pub fn low_water_set(fd: i32) {
    let note = |entry: &Entry| {
        // Relaxed: see `Entry::flags`.
        entry.flags.fetch_or(LOW_WATER | UNEVEN, Ordering::Relaxed);
    };
    if existing(fd).is_none() {
        LOW_WATER_BEFORE.store(true, Ordering::Relaxed); // Relaxed: see `Entry::flags`.
    }
    if let Some(entry) = existing(fd) {
        note(entry);
        if !entry.is_known_and_alone() {
            let others = numbers(0, u32::MAX).filter_map(existing);
            others.filter(|it| !it.is_known_and_alone()).for_each(note);
        }
    }
}

/// `SO_RCVLOWAT` was set where there was no entry to note it: before the first thread, say.
static LOW_WATER_BEFORE: AtomicBool = AtomicBool::new(false);

/// Returns the first flags of the entry of a descriptor whose creation was not seen.
pub(super) fn of_unseen() -> u32 {
    // Relaxed: see `Entry::flags`.
    let before = LOW_WATER_BEFORE.load(Ordering::Relaxed);
    if before { LOW_WATER | UNEVEN } else { 0 }
}

/// Notes that a listener has accepted a connection, which has its options.
pub fn accepted(listener: i32, fd: i32) {
    // Relaxed: see `Entry::flags`.
    let options = existing(listener).map_or_else(of_unseen, |it| it.flags.load(Ordering::Relaxed));
    set_up(fd, KNOWN | POLLABLE | options & (UNEVEN | LOW_WATER));
}

/// Returns whether receives may wait for more than one byte, by `SO_RCVLOWAT`.
pub fn may_have_low_water(fd: i32) -> bool {
    existing(fd).is_some_and(Entry::has_low_water)
}

impl Entry {
    /// Returns whether reads may wait for more than one byte, by `SO_RCVLOWAT`.
    #[inline]
    pub(in crate::blocking) fn has_low_water(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & LOW_WATER != 0 // Relaxed: see `Entry::flags`.
    }

    /// Returns the time at which an operation that begins now times out, by the socket option
    /// `SO_RCVTIMEO` or `SO_SNDTIMEO`.
    #[inline]
    pub fn deadline(&self, fd: i32, interest: Interest) -> Deadline {
        Deadline::after_timeout(self.timeout(fd, interest))
    }

    fn timeout(&self, fd: i32, interest: Interest) -> Option<u64> {
        let flags = self.flags.load(Ordering::Relaxed); // Relaxed: see `Entry::flags`.
        if flags & (KNOWN | SHARED | REGISTERED | TIMEOUTS) == (KNOWN | REGISTERED) {
            return None;
        }
        // The first wait also asks for the other option, on behalf of later waits: an unseen call
        // may have set it.
        let (option, other) = match interest {
            Interest::Read => (libc::SO_RCVTIMEO, libc::SO_SNDTIMEO),
            Interest::Write => (libc::SO_SNDTIMEO, libc::SO_RCVTIMEO),
        };
        let nanos = timeout_option(fd, option)?;
        if nanos > 0 || flags & REGISTERED == 0 && timeout_option(fd, other) != Some(0) {
            timeouts_set(fd);
        }
        (nanos > 0).then_some(nanos)
    }
}

/// Returns what [`Entry::deadline`] returns, for any number.
pub fn deadline(fd: i32, interest: Interest) -> Deadline {
    entry(fd).map_or(Deadline::NEVER, |entry| entry.deadline(fd, interest))
}

/// Returns a socket's timeout in nanoseconds; `None` if it is not a socket.
fn timeout_option(fd: i32, option: i32) -> Option<u64> {
    // SAFETY: the kernel gives a `timeval` for timeouts.
    let value: libc::timeval = unsafe { sys::socket_option(fd, option) }.ok()?;
    let seconds = (value.tv_sec as u64).saturating_mul(1_000_000_000);
    Some(seconds.saturating_add(value.tv_usec as u64 * 1000))
}

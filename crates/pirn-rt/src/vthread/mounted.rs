//! Which virtual thread each platform thread carries, for readers outside of the process: debuggers
//! and profilers (`observe/debug_table.rs`).
//!
//! A profiler that works by eBPF knows the id of the platform thread that it has interrupted. The
//! thread pointer that the kernel has saved is of no use to it: the kernel saves it at its own
//! switches, and a switch between virtual threads is not one. So each platform thread that carries
//! has an entry here, at the place that its id gives or at one of the next [`REACH`]:
//!
//! ```text
//!            0               4                8                          64 bytes
//!            +---------------+----------------+------------------+-------+
//!   entry    | platform      | number of the  | record of the    | meter |
//!            | thread's id   | carrier        | mounted thread   |       |
//!            +---------------+----------------+------------------+-------+
//!              0: free                          null: none
//! ```
//!
//! Only that platform thread writes to its entry, which is a cache line of its own: a mount costs
//! one store to it. A reader is either on that platform thread, or takes the entry as a hint. The
//! [meter](Meter) is that of the carrier's CPU time.

use super::cpu_time::Meter;
use super::record::Core;
use crate::sys;
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

/// The number of entries. Platform threads that carry are some tens, but each one that joins a
/// virtual thread may be among them.
const ENTRIES: usize = 1024;
/// The number of places where the entry of a platform thread may be.
const REACH: usize = 16;

/// See the module's documentation.
#[repr(C, align(64))]
struct Entry {
    platform: AtomicU32,
    number: AtomicU32,
    thread: AtomicPtr<Core>,
    meter: Meter,
}

impl Entry {
    const fn new() -> Entry {
        Entry {
            platform: AtomicU32::new(0),
            number: AtomicU32::new(0),
            thread: AtomicPtr::new(ptr::null_mut()),
            meter: Meter::new(),
        }
    }
}

static TABLE: [Entry; ENTRIES] = [const { Entry::new() }; ENTRIES];

/// The entry of those for whom there is no place. It is never said to be anybody's.
static NOBODYS: Entry = Entry::new();

/// Where readers find what.
pub const LAYOUT: [(&str, usize); 6] = [
    ("carriers.count", ENTRIES),
    ("carriers.reach", REACH),
    ("carriers.stride", size_of::<Entry>()),
    ("carriers.tid", offset_of!(Entry, platform)),
    ("carriers.number", offset_of!(Entry, number)),
    ("carriers.thread", offset_of!(Entry, thread)),
];

/// Returns the address of the entries.
#[inline]
pub const fn table() -> *const () {
    (&raw const TABLE).cast()
}

/// Forgets the platform threads of the parent, in the child of a fork that has no runtime yet.
#[inline]
pub fn after_fork() {
    for entry in &TABLE {
        // Relaxed, all: for readers outside.
        if entry.platform.load(Relaxed) != 0 {
            entry.platform.store(0, Relaxed);
            entry.thread.store(ptr::null_mut(), Relaxed);
        }
    }
}

/// What an entry says.
#[derive(Clone, Copy)]
pub struct Carrying {
    pub platform: u32,
    pub number: u32,
    /// Whether a thread is mounted.
    pub busy: bool,
    pub(super) meter: &'static Meter,
}

/// Returns all platform threads that carry, as they are a moment ago.
#[inline]
pub fn all() -> impl Iterator<Item = Carrying> {
    let entries = TABLE.iter().map(|entry| Carrying {
        platform: entry.platform.load(Relaxed), // Relaxed, all three: hints.
        number: entry.number.load(Relaxed),
        busy: !entry.thread.load(Relaxed).is_null(),
        meter: &entry.meter,
    });
    entries.filter(|entry| entry.platform != 0)
}

/// Returns the platform thread of the carrier with this number.
#[inline]
pub fn platform_of(number: u32) -> Option<u32> {
    carrier(number).map(|entry| entry.platform)
}

/// Returns the carrier with this number.
#[inline]
pub fn carrier(number: u32) -> Option<Carrying> {
    all().find(|entry| entry.number == number)
}

/// The entry of a carrier, for as long as it is one.
pub(super) struct Mounted(&'static Entry);

impl Mounted {
    /// Takes an entry for the running platform thread, as the carrier with this number.
    pub(super) fn new(number: u32) -> Mounted {
        // SAFETY: no arguments.
        let platform = unsafe { sys::call!(libc::SYS_gettid) }.unwrap_or(0) as u32;
        let places = (0..REACH).map(|step| &TABLE[(platform as usize + step) % ENTRIES]);
        // Relaxed: a place is one thread's once its id is there, and only that one writes to it.
        let mut free = places.filter(|entry| {
            let id = &entry.platform;
            id.compare_exchange(0, platform, Relaxed, Relaxed).is_ok()
        });
        let entry = free.next().unwrap_or(&NOBODYS);
        entry.number.store(number, Relaxed); // Relaxed: for readers outside.
        entry.meter.reset();
        Mounted(entry)
    }

    /// Notes the thread that is mounted from now on; null: none.
    #[inline(always)]
    pub(super) fn set(&self, thread: *const Core) {
        self.0.thread.store(thread.cast_mut(), Relaxed); // Relaxed: for readers outside.
    }

    /// Returns the meter, if this platform thread has one to itself.
    #[inline]
    pub(super) fn meter(&self) -> Option<&'static Meter> {
        (!ptr::eq(self.0, &NOBODYS)).then_some(&self.0.meter)
    }

    /// Returns the thread that is mounted.
    #[inline]
    pub(super) fn get(&self) -> *const Core {
        self.0.thread.load(Relaxed) // Relaxed: this platform thread's own.
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.set(ptr::null());
        if !ptr::eq(self.0, &NOBODYS) {
            self.0.platform.store(0, Relaxed); // Relaxed: for readers outside.
        }
    }
}

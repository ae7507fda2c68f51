//! The recorder of events: what happened on the carriers, in the last moments or seconds.
//!
//! Each carrier has a [ring](ring) of its own, which it alone writes; platform threads, and signal
//! handlers, write the [shared] one. Old events are overwritten. Readers copy the rings while they
//! are written; none waits for another.
//!
//! While the recorder is off, a place that would write an event costs one load and one branch
//! ([`is_on`]). The rings are made when it is switched on for the first time, and stay. At a switch
//! the same load tells whether CPU time is counted ([`is_watched`], `sched/cpu_time.rs`).
//!
//! This layer knows neither threads nor carriers, only numbers; `sched/recorded.rs` tells it of
//! them.

pub mod carrier_ring;
pub mod kinds;
pub(crate) mod ring;
pub(crate) mod shared;

use crate::arch;
use crate::lock::Lock;
use crate::own_vec::NoMemory;
use crate::sys;
use carrier_ring::{CarrierRing, MOST, Writer};
use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use ring::{Ring, Slot};
use shared::{SharedRing, SharedSlot};

/// The number of events of the shared ring: 384 KiB.
const SHARED: usize = 1 << 13;
/// The least memory of a carrier's ring, in bytes.
pub const LEAST_BYTES: usize = 16 << 10;

/// What a switch does besides: [`EVENTS`], [`CPU_TIME`], [`EXTRA_STATE`]. Relaxed everywhere: a
/// carrier may see a change some switches late.
static ON: AtomicU8 = AtomicU8::new(0);
/// Events are written.
const EVENTS: u8 = 1;
/// The CPU time of threads is counted.
const CPU_TIME: u8 = 2;
/// The GS base and the rights of protection keys are carried (`vthread/extra_state.rs`).
const EXTRA_STATE: u8 = 4;
/// Counts how often the recorder has been switched on. Relaxed everywhere: a carrier that sees the
/// new number late writes its [`STATE`](kinds::STATE) late.
static SESSION: AtomicU32 = AtomicU32::new(0);
/// Whether the clock is the processor's counter; otherwise it counts nanoseconds.
static COUNTER: AtomicBool = AtomicBool::new(false);
/// Made when it is first switched on; never freed.
static RINGS: AtomicPtr<Rings> = AtomicPtr::new(ptr::null_mut());
/// The number of users that want events.
static USERS: Lock<u32> = Lock::new(0);

/// All rings.
pub struct Rings {
    /// By the carriers' numbers.
    pub carriers: Box<[CarrierRing]>,
    pub shared: SharedRing,
    /// What the [clocks] showed before the first event.
    pub begin: [u64; 3],
}

/// Returns whether events are written. The answer may come late.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    ON.load(Relaxed) & EVENTS != 0 // Relaxed: see `ON`.
}

/// Returns whether a switch does anything besides. The answer may come late.
#[inline(always)]
pub(crate) fn is_watched() -> bool {
    ON.load(Relaxed) != 0 // Relaxed: see `ON`.
}

/// Returns whether the CPU time of threads is counted. The answer may come late.
pub(crate) fn counts_cpu_time() -> bool {
    ON.load(Relaxed) & CPU_TIME != 0 // Relaxed: see `ON`.
}

/// Makes carriers count the CPU time of threads from now on. Returns whether they did not before.
pub(crate) fn count_cpu_time() -> bool {
    ON.fetch_or(CPU_TIME, Relaxed) & CPU_TIME == 0 // Relaxed: see `ON`.
}

/// Returns whether a switch carries extra state. The answer may come late.
pub(crate) fn carries_extra_state() -> bool {
    ON.load(Relaxed) & EXTRA_STATE != 0 // Relaxed: see `ON`.
}

/// Makes switches carry extra state from now on.
pub(crate) fn carry_extra_state() {
    ON.fetch_or(EXTRA_STATE, Release); // Release: pairs with the fence in `extra_state::switch`.
}

/// Returns the number of the last session.
fn session() -> u32 {
    SESSION.load(Relaxed) // Relaxed: see `SESSION`.
}

/// Returns the rings, if there are any.
pub fn rings() -> Option<&'static Rings> {
    // Acquire: pairs with the Release in `prepare`. SAFETY: never freed.
    unsafe { RINGS.load(Acquire).as_ref() }
}

/// Makes the rings of this many carriers, unless there are some. Each has at most this many bytes.
///
/// # Errors
/// There is no memory.
pub(crate) fn prepare(carriers: usize, bytes: usize) -> Result<&'static Rings, NoMemory> {
    if let Some(rings) = rings() {
        return Ok(rings);
    }
    let new = Box::into_raw(Box::new(Rings::new(carriers, bytes)?));
    // Release: pairs with the Acquire in `rings`. If another was faster, ours is lost: its memory
    // has not been touched.
    let published = RINGS.compare_exchange(ptr::null_mut(), new, Release, Acquire);
    let first = published.map_or_else(|first| first, |_| new);
    // SAFETY: published, and never freed.
    Ok(unsafe { &*first })
}

impl Rings {
    /// Makes rings that no thread writes yet, for good.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(carriers: usize, bytes: usize) -> Result<Rings, NoMemory> {
        let slots = bytes.max(LEAST_BYTES) / size_of::<Slot>();
        let slots = 1 << slots.ilog2();
        let new_ring = |_| {
            // SAFETY: zeros are valid atomics.
            unsafe { zeroed::<Slot>(slots) }.map(|slots| CarrierRing::new(Ring::new(slots, MOST)))
        };
        let carriers = (0..carriers).map(new_ring).collect::<Result<_, _>>()?;
        // SAFETY: zeros are valid atomics.
        let shared = SharedRing::new(unsafe { zeroed::<SharedSlot>(SHARED) }?);
        COUNTER.store(arch::has_steady_counter(), Relaxed); // Relaxed: before the rings' Release.
        Ok(Rings {
            carriers,
            shared,
            begin: clocks(),
        })
    }
}

/// Maps zeroed memory for this many values, for good.
///
/// # Safety
/// Zeros are valid values of `T`.
unsafe fn zeroed<T>(count: usize) -> Result<&'static [T], NoMemory> {
    let address = sys::map(count * size_of::<T>(), libc::MAP_NORESERVE).map_err(|_| NoMemory)?;
    // SAFETY: a new mapping of this size, which is page-aligned; the caller's contract.
    Ok(unsafe { core::slice::from_raw_parts(address as *const T, count) })
}

/// A reason to write events.
pub struct User(());

impl User {
    /// Switches the recorder on until the last user is gone.
    ///
    /// # Errors
    /// There is no memory for the rings; see [`prepare`].
    pub fn new(carriers: usize, bytes: usize) -> Result<User, NoMemory> {
        prepare(carriers, bytes)?;
        let mut users = USERS.lock();
        *users += 1;
        if *users == 1 {
            SESSION.fetch_add(1, Relaxed); // Relaxed: see `SESSION`.
            carrier_ring::tick();
            ON.fetch_or(EVENTS, Relaxed); // Relaxed: a thread that sees it acquires the rings.
        }
        Ok(User(()))
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let mut users = USERS.lock();
        *users = users.saturating_sub(1);
        if *users == 0 {
            ON.fetch_and(!EVENTS, Relaxed); // Relaxed: see `ON`.
        }
    }
}

/// Switches the recorder off in the child of a fork, which has no carriers.
pub(crate) fn stop() {
    ON.store(0, Relaxed); // Relaxed: there is one thread only.
}

/// Forgets who wanted events, and the rings, which carriers of the parent write.
///
/// # Safety
/// In the child of a fork that has no runtime yet.
pub(crate) unsafe fn after_fork() {
    // SAFETY: the caller's contract.
    unsafe { USERS.renew(0) };
    RINGS.store(ptr::null_mut(), Relaxed); // Relaxed: there is no runtime yet.
}

/// Returns what the clock shows, for stamps.
#[inline(always)]
pub fn clock() -> u64 {
    match is_counter() {
        true => arch::counter(),
        false => sys::now(),
    }
}

/// Returns what three clocks show at about the same time: the clock of stamps, the monotonic one,
/// and the nanoseconds since 1970.
pub fn clocks() -> [u64; 3] {
    let real = sys::clock(libc::CLOCK_REALTIME);
    [clock(), sys::now(), real]
}

/// Returns whether the clock is the processor's counter; otherwise it shows nanoseconds.
#[inline(always)]
pub fn is_counter() -> bool {
    COUNTER.load(Relaxed) // Relaxed: set before there are rings.
}

/// Returns the right to write the ring of the carrier with this number; `None` if it has none.
///
/// # Safety
/// The caller runs on the carrier that has this number and this address, and uses the right on it
/// only. No other carrier ever has its address.
#[cold]
pub(crate) unsafe fn writer(number: u32, carrier: usize) -> Option<Writer> {
    let ring = rings()?.carriers.get(number as usize)?;
    // SAFETY: the caller's contract.
    unsafe { ring.claim(carrier, sys::os_thread_id()) }
}

/// Writes an event from outside of a carrier, or in a signal handler. `mounted` is the thread in
/// which it happens, or 0.
#[cold]
pub fn outside(mounted: u64, kind: u8, payload: u64, detail: u64) {
    let Some(rings) = rings() else { return };
    let first = clock() << 8 | u64::from(kind);
    let tid = u64::from(sys::os_thread_id());
    rings.shared.push([first, payload, detail, mounted, tid]);
}

/// Writes the name of a thread from outside of a carrier: 16 bytes per event.
#[cold]
pub(crate) fn outside_name(id: u64, name: &str) {
    let Some(rings) = rings() else { return };
    let tid = u64::from(sys::os_thread_id());
    for (part, bytes) in name.as_bytes().chunks(16).take(MOST).enumerate() {
        let mut text = [0; 16];
        text[..bytes.len()].copy_from_slice(bytes);
        let text = u128::from_le_bytes(text);
        let place = (part as u64) << 8 | bytes.len() as u64;
        let first = place << 8 | u64::from(kinds::NAME);
        rings
            .shared
            .push([first, id, text as u64, (text >> 64) as u64, tid]);
    }
}

// Rules are the moments at which `pirn-observe` writes down what the rings have. Relaxed, all here:
// a thread may see late that a rule is wanted, and the reader looks again for rules that have
// fired.

/// A thread was runnable for longer than the limit before it ran.
pub const LATENCY_RULE: u8 = 1;
/// A thread has panicked.
pub const PANIC_RULE: u8 = 2;

/// The rules that have fired and have not been taken: bits.
static FIRED: AtomicU8 = AtomicU8::new(0);
/// The rules that a thread waits for: bits.
static WANTED: AtomicU8 = AtomicU8::new(0);
/// The last thread for which a rule has fired.
static THREAD: AtomicU64 = AtomicU64::new(0);
/// How long a thread may be runnable, in ticks of the recorder's clock.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets the rules to wait for, and the limit of [`LATENCY_RULE`].
pub fn want_rules(rules: u8, limit: u64) {
    WANTED.store(rules, Relaxed);
    LIMIT.store(limit, Relaxed);
}

/// Notes that a thread has waited for its turn this long.
#[inline(always)]
pub(crate) fn note_latency(thread: u64, ticks: u64) {
    if ticks > LIMIT.load(Relaxed) {
        fire(LATENCY_RULE, thread);
    }
}

/// Notes that a rule has been met.
#[cold]
pub(crate) fn fire(rule: u8, thread: u64) {
    if WANTED.load(Relaxed) & rule != 0 {
        THREAD.store(thread, Relaxed); // Relaxed: statistics only.
        FIRED.fetch_or(rule, Relaxed);
    }
}

/// Takes the rules that have fired, and the last thread for which one has fired.
pub fn take_fired() -> Option<(u8, u64)> {
    if FIRED.load(Relaxed) == 0 {
        return None;
    }
    Some((FIRED.swap(0, Relaxed), THREAD.load(Relaxed)))
}

#[cfg(test)]
mod tests;

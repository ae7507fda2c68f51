//! The ring of one carrier: when to read the clock, and which thread is mounted.
//!
//! Reading the clock takes 8 ns, as long as half a switch. So while events follow each other faster
//! than [`FAST`], only one of [`BATCH`] reads it; the others repeat its stamp, and a reader of
//! the recording spreads them. At any speed, the clock then takes a twentieth of the time at most.
//!
//! A batch must not hide a thread that computes: its run would be attributed to another thread of
//! the same batch. So an observer of the recorder advances [`TICK`] every millisecond, which ends
//! all batches. And a batch ends where the order of events on two carriers would be lost: at the
//! mount of a thread that was elsewhere, or that was woken later than the stamp says.

use super::kinds;
use super::ring::{Ring, Words};
use super::{clock, session};
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// Advanced every millisecond while a reader observes the recorder.
static TICK: AtomicU32 = AtomicU32::new(0);

/// The most events with one stamp.
const BATCH: u32 = 16;
/// Events that are closer together than this share stamps: ticks of the clock, so about 200 ns.
const FAST: u64 = 512;
/// After this many slots comes a [`STATE`](kinds::STATE).
const STATE_EVERY: u64 = 4096;
/// The most slots of one event: a name.
pub(super) const MOST: usize = 8;
/// The most bytes of a name.
const NAME_BYTES: usize = BYTES_PER_TEXT * (MOST - 1);
const BYTES_PER_TEXT: usize = 15;

/// Ends all batches.
pub fn tick() {
    TICK.fetch_add(1, Relaxed); // Relaxed: a carrier may end its batch a little late.
}

/// See the module's documentation.
pub struct CarrierRing {
    pub ring: Ring,
    /// The address of the carrier that writes; 0 as long as no carrier does.
    owner: AtomicUsize,
    /// The kernel's id of the owner's platform thread; 0 without an owner.
    pub tid: AtomicU32,
    /// The last stamp.
    stamp: Cell<u64>,
    /// The tick at the last look at the clock.
    tick: Cell<u32>,
    /// The number of events that may still use the stamp.
    left: Cell<u32>,
    /// The number of events that might use the stamp when it was new.
    allotted: Cell<u32>,
    /// From this index on, a `STATE` is due.
    state_due: Cell<u64>,
    /// The session of the last `STATE`.
    session: Cell<u32>,
}

// SAFETY: only the owner touches the cells: `claim` gives access to no other.
unsafe impl Sync for CarrierRing {}

impl CarrierRing {
    pub(super) fn new(ring: Ring) -> CarrierRing {
        CarrierRing {
            ring,
            owner: AtomicUsize::new(0),
            tid: AtomicU32::new(0),
            stamp: Cell::new(0),
            tick: Cell::new(0),
            left: Cell::new(0),
            allotted: Cell::new(0),
            state_due: Cell::new(0),
            session: Cell::new(0),
        }
    }

    /// Returns the right to write the ring, if this is the first carrier that asks, or the same
    /// again. A carrier is known by its address.
    ///
    /// # Safety
    /// The caller runs on this carrier, and no other carrier ever has its address. The right is
    /// used on this carrier only.
    pub(super) unsafe fn claim(&'static self, carrier: usize, tid: u32) -> Option<Writer> {
        // Relaxed: only the owner itself concludes anything from it.
        match self.owner.compare_exchange(0, carrier, Relaxed, Relaxed) {
            Ok(_) => self.tid.store(tid, Relaxed), // Relaxed: statistics only.
            Err(owner) if owner == carrier => {}
            Err(_) => return None,
        }
        Some(Writer(self))
    }
}

/// A carrier's right to write its ring.
#[derive(Clone, Copy)]
pub(crate) struct Writer(&'static CarrierRing);

impl Writer {
    /// Writes an event of one slot. `mounted` is the thread that is mounted while the event
    /// happens; if the event is a switch, the thread that leaves.
    #[inline(always)]
    pub(crate) fn push(self, mounted: u64, kind: u8, payload: u64) {
        let first = self.first(mounted, kind);
        self.0.ring.push(&[[first, payload]]);
    }

    /// Writes an event with a detail.
    #[inline(always)]
    pub(crate) fn push_with(self, mounted: u64, kind: u8, payload: u64, detail: u64) {
        let first = self.first(mounted, kind);
        let detail = [u64::from(kinds::DETAIL), detail];
        self.0.ring.push(&[[first, payload], detail]);
    }

    /// Writes the name of the thread or scope with this id.
    #[cold]
    pub(crate) fn name(self, id: u64, name: &str) {
        let mut slots = [[u64::from(kinds::TEXT), 0]; MOST];
        let bytes = &name.as_bytes()[..name.len().min(NAME_BYTES)];
        slots[0] = [(bytes.len() as u64) << 8 | u64::from(kinds::NAME), id];
        let texts = bytes.chunks(BYTES_PER_TEXT);
        let used = 1 + texts.len();
        for (slot, text) in slots[1..].iter_mut().zip(texts) {
            *slot = in_words(text);
        }
        self.0.ring.push(&slots[..used]);
    }

    /// Makes the next event read the clock, which orders it behind all that has happened before.
    #[inline(always)]
    pub(crate) fn read_clock(self) {
        self.0
            .allotted
            .set(self.0.allotted.get() - self.0.left.get());
        self.0.left.set(0);
    }

    /// Returns the last stamp.
    pub(crate) fn last_stamp(self) -> u64 {
        self.0.stamp.get()
    }

    /// Returns the first word of an event.
    #[inline(always)]
    fn first(self, mounted: u64, kind: u8) -> u64 {
        let left = self.0.left.get();
        if left > 0 && self.0.tick.get() == TICK.load(Relaxed) {
            self.0.left.set(left - 1); // Relaxed above: see `tick`.
        } else {
            self.stamp(mounted);
        }
        self.0.stamp.get() << 8 | u64::from(kind)
    }

    /// Reads the clock, and decides how many events may use its stamp.
    #[inline(never)]
    fn stamp(self, mounted: u64) {
        let this = self.0;
        let now = clock();
        let events = u64::from(this.allotted.get() - this.left.get() + 1);
        let fast = now.wrapping_sub(this.stamp.get()) < FAST * events;
        let allotted = if fast { BATCH - 1 } else { 0 };
        this.allotted.set(allotted);
        this.left.set(allotted);
        this.tick.set(TICK.load(Relaxed)); // Relaxed: see `tick`.
        this.stamp.set(now);
        if this.session.get() != session() || this.ring.head() >= this.state_due.get() {
            this.session.set(session());
            this.state_due.set(this.ring.head() + STATE_EVERY);
            this.ring
                .push(&[[now << 8 | u64::from(kinds::STATE), mounted]]);
        }
    }
}

/// Returns a `TEXT` slot with up to 15 bytes.
fn in_words(text: &[u8]) -> Words {
    let mut bytes = [0; 16];
    bytes[0] = kinds::TEXT;
    bytes[1..=text.len()].copy_from_slice(text);
    let (first, second) = bytes.split_at(8);
    [first, second].map(|half| {
        half.iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte))
    })
}

//! The rings' contents as a stream of bytes, which `crates/pirn-events` reads.
//!
//! ```text
//!   "PIRNEVTS"  version: 4 bytes  section  section  …
//!
//!   section     tag: 4 bytes, length of the rest: 4 bytes, and then
//!   PROCESS     pid 4, carriers 4, counter 4 (1: stamps are ticks, 0: nanoseconds), length of the
//!               program's path 4, path, reason
//!   CLOCK       stamp 8, monotonic nanoseconds 8, nanoseconds since 1970 8
//!   CARRIER     number 4, tid 4, index of the first slot 8, slots lost before it 8, slots 16 each
//!   OUTSIDE     events lost 8, events 40 each
//!   PLACE       address 8, line 4, column 4, file
//!   SCOPE       id 8, parent 8, owner 8, name: of the scopes that are open at the end
//!   END         events lost 8
//!   NAME        id 8, name: of the threads that are alive at the end
//!   MOUNTED     number of a carrier 4, id 8: the thread that is mounted at the end
//! ```
//!
//! All numbers are little-endian. There may be sections of other tags, to be skipped, and several
//! of each; sections of one ring are in order. At least two `CLOCK`s make time of stamps. A stream
//! without `END` is incomplete.

use crate::hooks::hooks;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pirn_rt::recorder::carrier_ring::CarrierRing;
use pirn_rt::recorder::{self, Rings, kinds};
use pirn_rt::stack::region;
use pirn_rt::vthread::table;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::panic::Location;

/// The number of events that all recordings have lost. What was overwritten before a recording of
/// what is kept began is not among them: that is what keeping the last events means.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Returns the number of events that all recordings have lost, see [`LOST`].
pub fn lost() -> u64 {
    LOST.load(Relaxed) // Relaxed: statistics only.
}

const MAGIC: &[u8; 8] = b"PIRNEVTS";
const VERSION: u32 = 1;

const PROCESS: u32 = 1;
const CLOCK: u32 = 2;
const CARRIER: u32 = 3;
const OUTSIDE: u32 = 4;
const PLACE: u32 = 5;
const SCOPE: u32 = 6;
const END: u32 = 7;
const NAME: u32 = 8;
const MOUNTED: u32 = 9;

/// The number of slots copied at once.
const SLOTS: usize = 4096;

/// Writes the rings to `out`, from where it left off to where they are.
pub(super) struct Stream<'a> {
    rings: &'static Rings,
    out: &'a mut dyn Write,
    /// The next index of each carrier's ring, and of the shared one.
    next: Vec<u64>,
    outside: u64,
    from: From,
    lost: u64,
    buffer: Box<[[u64; 2]]>,
    /// The kind of each carrier's last slot.
    before: Vec<u8>,
    /// The addresses of the places that were seen.
    places: BTreeSet<u64>,
}

/// Where a stream begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// With all that is kept.
    Oldest,
    Now,
}

impl Stream<'_> {
    /// Begins a stream. The reader shows the `reason`.
    pub(super) fn begin<'a>(
        rings: &'static Rings,
        out: &'a mut dyn Write,
        from: From,
        reason: &str,
    ) -> io::Result<Stream<'a>> {
        let start = |head: u64| if from == From::Now { head } else { 0 };
        let mut stream = Stream {
            rings,
            out,
            next: rings
                .carriers
                .iter()
                .map(|c| start(c.ring.head()))
                .collect(),
            outside: start(rings.shared.head()),
            from,
            lost: 0,
            buffer: vec![[0; 2]; SLOTS].into(),
            before: vec![0; rings.carriers.len()],
            places: BTreeSet::new(),
        };
        stream.out.write_all(MAGIC)?;
        stream.out.write_all(&VERSION.to_le_bytes())?;
        let program = std::env::current_exe().unwrap_or_default();
        let program = program.as_os_str().as_bytes();
        let mut head = Vec::new();
        let numbers = [
            std::process::id(),
            rings.carriers.len() as u32,
            u32::from(recorder::is_counter()),
            program.len() as u32,
        ];
        numbers.iter().for_each(|n| head.extend(n.to_le_bytes()));
        stream.section(PROCESS, &[&head, program, reason.as_bytes()])?;
        stream.clock(rings.begin)?;
        stream.clock(recorder::clocks())?;
        Ok(stream)
    }

    /// Writes the events since the last call.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        let rings = self.rings;
        for (number, carrier) in rings.carriers.iter().enumerate() {
            // Up to the head as it is now: the writer may be faster than `out`.
            let head = carrier.ring.head();
            while self.next[number] < head {
                self.carrier(number, carrier)?;
            }
        }
        self.shared()?;
        self.clock(recorder::clocks())?;
        self.out.flush()
    }

    /// Ends the stream.
    pub(super) fn end(mut self) -> io::Result<()> {
        for (number, carrier) in self.rings.carriers.iter().enumerate() {
            if carrier.tid.load(Relaxed) != 0 {
                self.carrier(number, carrier)?; // At least its platform thread.
            }
        }
        for address in core::mem::take(&mut self.places) {
            // SAFETY: the events with places have the addresses of static ones.
            let place = unsafe { &*(address as *const Location<'static>) };
            let head = [place.line().to_le_bytes(), place.column().to_le_bytes()].concat();
            let address = address.to_le_bytes();
            self.section(PLACE, &[&address, &head, place.file().as_bytes()])?;
        }
        self.threads()?;
        for scope in (hooks().scopes)() {
            let numbers = [
                scope.id,
                scope.parent.unwrap_or(0),
                scope.owner.unwrap_or(0),
            ];
            let head = numbers.map(u64::to_le_bytes).concat();
            let name = scope.name.unwrap_or_default();
            self.section(SCOPE, &[&head, name.as_bytes()])?;
        }
        self.section(END, &[&self.lost.to_le_bytes()])?;
        self.out.flush()
    }

    /// Writes the names of threads, and those that are mounted.
    fn threads(&mut self) -> io::Result<()> {
        /// Longer names are cut off.
        const LONGEST: usize = 120;
        let mut result = Ok(());
        let mut name = Vec::with_capacity(LONGEST);
        region::for_each_open(|slot| {
            name.clear();
            // The end of the thread waits meanwhile: nothing is allocated.
            let seen = table::look(slot, |core| {
                core.with_name(|it| name.extend(it.unwrap_or_default().bytes().take(LONGEST)));
                (core.id().to_le_bytes(), core.carrier_number())
            });
            if let Some((id, carrier)) = seen
                && result.is_ok()
            {
                result = self.thread(&id, &name, carrier);
            }
        });
        result
    }

    fn thread(&mut self, id: &[u8], name: &[u8], carrier: Option<u32>) -> io::Result<()> {
        if !name.is_empty() {
            self.section(NAME, &[id, name])?;
        }
        match carrier {
            Some(carrier) => self.section(MOUNTED, &[&carrier.to_le_bytes(), id]),
            None => Ok(()),
        }
    }

    /// Counts events that were overwritten before they were read, from the index `next` on.
    fn note_lost(&mut self, count: u64, next: u64) {
        self.lost += count;
        if self.from == From::Now || next > 0 {
            LOST.fetch_add(count, Relaxed); // Relaxed: statistics only.
        }
    }

    /// Writes some slots of a carrier.
    fn carrier(&mut self, number: usize, carrier: &CarrierRing) -> io::Result<()> {
        let copied = carrier.ring.copy(self.next[number], &mut self.buffer);
        let next = self.next[number];
        let lost = copied.first - next;
        self.next[number] = copied.first + copied.count as u64;
        self.note_lost(lost, next);
        let mut bytes = Vec::with_capacity(24 + 16 * copied.count);
        let ids = [number as u32, carrier.tid.load(Relaxed)]; // Relaxed: statistics only.
        ids.iter().for_each(|id| bytes.extend(id.to_le_bytes()));
        bytes.extend(copied.first.to_le_bytes());
        bytes.extend(lost.to_le_bytes());
        let before = &mut self.before[number];
        for words in &self.buffer[..copied.count] {
            if *before == kinds::SPAWN && words[0] as u8 == kinds::DETAIL && words[1] != 0 {
                self.places.insert(words[1]);
            }
            *before = words[0] as u8;
            words
                .iter()
                .for_each(|word| bytes.extend(word.to_le_bytes()));
        }
        self.section(CARRIER, &[&bytes])
    }

    /// Writes the events from outside of carriers.
    fn shared(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        let places = &mut self.places;
        let (next, missing) = self.rings.shared.for_each(self.outside, |event| {
            if event[0] as u8 == kinds::SPAWN && event[2] != 0 {
                places.insert(event[2]);
            }
            event
                .iter()
                .for_each(|word| bytes.extend(word.to_le_bytes()));
        });
        self.note_lost(missing, self.outside);
        self.outside = next;
        if bytes.is_empty() && missing == 0 {
            return Ok(());
        }
        self.section(OUTSIDE, &[&missing.to_le_bytes(), &bytes])
    }

    fn clock(&mut self, clocks: [u64; 3]) -> io::Result<()> {
        self.section(CLOCK, &[&clocks.map(u64::to_le_bytes).concat()])
    }

    fn section(&mut self, tag: u32, parts: &[&[u8]]) -> io::Result<()> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        self.out.write_all(&tag.to_le_bytes())?;
        self.out.write_all(&(bytes as u32).to_le_bytes())?;
        parts.iter().try_for_each(|part| self.out.write_all(part))
    }
}

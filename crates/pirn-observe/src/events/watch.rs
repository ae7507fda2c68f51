//! Finding threads that keep their carriers: processors that are held and do not switch.

use core::sync::atomic::Ordering::Relaxed;
use pirn_rt::recorder::{self, kinds};
use pirn_rt::runtime::Runtime;
use pirn_rt::sys;

/// A turn that is longer than this is an event.
const LONG_NS: u64 = 10_000_000;

/// The last look at the processors.
pub(super) struct Watch {
    runtime: &'static Runtime,
    seen: Vec<Seen>,
}

#[derive(Clone, Default)]
struct Seen {
    tick: u32,
    since: u64,
    noted: bool,
    reported: bool,
}

/// A platform thread that has not switched for long.
pub(super) struct Stuck {
    pub(super) tid: u32,
    pub(super) nanos: u64,
}

impl Watch {
    pub(super) fn new(runtime: &'static Runtime) -> Watch {
        Watch {
            runtime,
            seen: vec![Seen::default(); runtime.processors.count()],
        }
    }

    /// Looks at all processors. Returns one that has been kept for longer than the limit, once for
    /// each time.
    pub(super) fn look(&mut self, limit_ns: u64) -> Option<Stuck> {
        let now = sys::now();
        let mut found = None;
        for processor in self.runtime.processors.used() {
            let seen = &mut self.seen[processor.index];
            // Relaxed: hints.
            let tick = processor.tick.load(Relaxed);
            let tid = processor.holder.load(Relaxed);
            if tid == 0 || tick != seen.tick || seen.since == 0 {
                *seen = Seen {
                    tick,
                    since: now,
                    ..Seen::default()
                };
                continue;
            }
            let nanos = now - seen.since;
            if nanos > LONG_NS && !seen.noted {
                seen.noted = true;
                recorder::outside(0, kinds::STUCK, nanos, u64::from(tid));
            }
            if nanos > limit_ns && !seen.reported {
                seen.reported = true;
                found = Some(Stuck { tid, nanos });
            }
        }
        found
    }
}

//! Looking at one thread.
//!
//! A thread that is parked is claimed meanwhile, which delays its wake by about two microseconds.
//! Nothing is allocated under the claim: the thread may wait for a lock of the program's allocator.

use super::unwind::{Frames, Unwinder};
use super::works_for::WorksFor;
use crate::waits::Noted;
use pirn_dump::{End, State};
use pirn_rt::arch;
use pirn_rt::sched::sample::Registers;
use pirn_rt::stack::Slot;
use pirn_rt::vthread::record::Phase;
use pirn_rt::vthread::record::Place;
use pirn_rt::vthread::{Core, table};

/// Longer names are cut off.
const LONGEST_NAME: usize = 4096;

/// What was seen of a thread, but for its frames, its name and what it works for, which the
/// [`Walker`] has.
pub(super) struct Seen {
    pub(super) slot: Slot,
    pub(super) id: u64,
    pub(super) state: State,
    /// What it waits for, if it is parked.
    pub(super) noted: Option<Noted>,
    pub(super) place: Place,
    /// The id of its scope; 0: none.
    pub(super) scope: u64,
    pub(super) mounts: u32,
    pub(super) interrupted: bool,
    pub(super) carrier: Option<u32>,
    pub(super) named: bool,
    /// How much of its stack it uses, if its frames were read.
    pub(super) stack_bytes: Option<u32>,
    /// It was stopped in its code.
    pub(super) exact: bool,
}

/// See the module's documentation.
pub(super) struct Walker {
    pub(super) unwinder: Unwinder,
    /// The frames of the thread that was seen last.
    pub(super) frames: Frames,
    /// Its name.
    name: Vec<u8>,
    /// What it works for, if its frames were read.
    pub(super) works_for: WorksFor,
}

impl Walker {
    pub(super) fn new() -> Walker {
        Walker {
            unwinder: Unwinder::new(),
            frames: Frames::new(),
            name: Vec::with_capacity(LONGEST_NAME),
            works_for: WorksFor::new(),
        }
    }

    /// Returns the name of the thread that was seen last.
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Looks at the thread in a slot, if there is one.
    pub(super) fn look(&mut self, slot: Slot) -> Option<Seen> {
        let mut seen = table::walk(slot, |core, parked| self.see(core, slot, parked))?;
        if seen.stack_bytes.is_none() {
            self.look_closer(&mut seen);
        }
        Some(seen)
    }

    /// Looks at it again, with what is loaded now.
    pub(super) fn look_anew(&mut self, slot: Slot) -> Option<Seen> {
        self.unwinder = Unwinder::new();
        self.look(slot)
    }

    /// Notes what there is to see of a thread. `still`: it is off its stack, and stays so.
    pub(super) fn see(&mut self, core: &Core, slot: Slot, still: bool) -> Seen {
        self.name.clear();
        let named = core.with_name(|name| {
            let bytes = name.unwrap_or_default().as_bytes();
            self.name
                .extend_from_slice(&bytes[..bytes.len().min(LONGEST_NAME)]);
            name.is_some()
        });
        self.forget_stack();
        let mut seen = Seen {
            slot,
            id: core.id(),
            state: match core.phase() {
                _ if still => State::Waiting,
                Phase::Running => State::Running,
                Phase::Terminated => State::Ended,
                // Woken, or not quite parked yet.
                Phase::New | Phase::Runnable | Phase::Waiting => State::Runnable,
            },
            noted: None,
            place: core.place(),
            scope: core.scope(),
            mounts: core.mounts(),
            interrupted: core.wait.is_interrupted(),
            carrier: core.carrier_number(),
            named,
            stack_bytes: None,
            exact: false,
        };
        if still {
            seen.noted = Some(Noted::of(core));
            seen.stack_bytes = self.unwind_saved(core, slot);
        }
        seen
    }

    /// Forgets what stood on the stack that was read last.
    pub(super) fn forget_stack(&mut self) {
        self.frames.clear(End::Lost);
        self.works_for.clear();
    }

    /// Reads the stack of a thread that is off it. Returns how much of it is used.
    pub(super) fn unwind_saved(&mut self, core: &Core, slot: Slot) -> Option<u32> {
        let (stack, sp) = (slot.frames(), core.continuation.saved().addr());
        if !stack.contains(&sp) {
            return None; // On a stack that the program has made.
        }
        // SAFETY: there is a thread, so the runtime has started, and the handler is in place.
        let registers = unsafe { arch::saved_registers(sp) }?;
        let [pc, sp_after, bp] = registers;
        let registers = Registers {
            pc,
            sp: sp_after,
            bp,
        };
        self.unwinder
            .unwind(registers, stack.clone(), &mut self.frames);
        self.works_for.read(slot);
        Some((stack.end - sp) as u32)
    }
}

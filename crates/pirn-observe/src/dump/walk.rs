//! Looking at one thread.
//!
//! A parked thread is claimed meanwhile, which delays its wake by about two microseconds. Nothing
//! is allocated under the claim: the thread may wait for a lock of the program's allocator.
//!
//! A mounted thread cannot be claimed: a signal [stops](current_stack) its carrier while the stack
//! is read. A carrier that is blocked in the kernel stands still by itself, and a signal would end
//! some calls; then the registers in `/proc` are used, unless the kernel restarts the call. A
//! runnable thread, in whatever queue it is, is [held](pirn_rt::vthread::state::MountFlags): a
//! carrier that comes to mount it waits.

use super::unwind::{Frames, Unwinder};
use crate::hooks::hooks;
use crate::waits::Noted;
use pirn_dump::{End, State};
use pirn_rt::arch;
use pirn_rt::sched;
use pirn_rt::sched::carrier;
use pirn_rt::sched::current_stack::{self, Registers};
use pirn_rt::sched::os_thread::{self, Blocked, InKernel};
use pirn_rt::stack::{Slot, region};
use pirn_rt::sys;
use pirn_rt::vthread::record::{self, Place};
use pirn_rt::vthread::{Core, table};

/// Longer names are cut off.
const LONGEST_NAME: usize = 4096;

/// What the walker has seen of a thread, except the frames, the name and what the thread works for,
/// which the [`Walker`] keeps.
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
    /// The thread was stopped in its code.
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
        let mut seen = sched::inspect(slot, |core, parked| self.see(core, slot, parked))?;
        if seen.stack_bytes.is_none() {
            self.look_closer(&mut seen);
        }
        Some(seen)
    }

    /// Looks at the thread in a slot again, after reading anew which libraries are loaded.
    pub(super) fn look_anew(&mut self, slot: Slot) -> Option<Seen> {
        self.unwinder = Unwinder::new();
        self.look(slot)
    }

    /// Describes a thread. `still`: the thread is parked, and is not resumed during this call, so
    /// that its stack can be read.
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
            state: match core.state() {
                _ if still => State::Waiting,
                record::State::Running => State::Running,
                record::State::Terminated => State::Ended,
                // Woken, or parked since.
                _ => State::Runnable,
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
            lr: 0, // The function that has switched has put it on the stack.
        };
        self.unwinder
            .unwind(registers, stack.clone(), &mut self.frames);
        self.works_for.read(slot);
        Some((stack.end - sp) as u32)
    }
}

/// A thread that is in the middle of a switch is looked at this often.
const LOOKS: u32 = 3;

/// Calls that the kernel begins again after our handler: a thread in them may be interrupted.
const RESTARTED: [i64; 12] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_openat,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_flock,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// The thread whose stack was read.
pub(super) struct Stopped {
    /// The thread's id, if it is still known.
    pub(super) id: Option<u64>,
    sp: usize,
}

/// A thread that no carrier mounts until this is dropped.
struct Held<'a>(&'a Core);

impl<'a> Held<'a> {
    /// `None` if it is being mounted.
    fn new(core: &'a Core) -> Option<Held<'a>> {
        core.mount_flags.hold().then_some(Held(core))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.mount_flags.release();
    }
}

/// How a platform thread is made to stand still.
enum Way {
    Signal,
    /// The thread is blocked, and the kernel says where.
    Blocked(Registers),
}

impl Walker {
    /// Reads the stack of a thread that could not be claimed, if that is possible.
    pub(super) fn look_closer(&mut self, seen: &mut Seen) {
        match (seen.state, seen.carrier) {
            (State::Running, Some(number)) => {
                let Some(platform) = carrier::platform_of(number) else {
                    return;
                };
                let stopped = self.stop(platform);
                if let Some(stopped) = stopped.filter(|s| s.id == Some(seen.id)) {
                    seen.exact = true;
                    seen.stack_bytes = Some((seen.slot.frames().end - stopped.sp) as u32);
                } else {
                    self.forget_stack();
                }
            }
            (State::Runnable, _) => {
                if let Some(held) = self.hold(seen) {
                    *seen = held;
                }
            }
            _ => {}
        }
    }

    /// Looks at a runnable thread again, while no carrier mounts it.
    fn hold(&mut self, seen: &Seen) -> Option<Seen> {
        let (slot, id) = (seen.slot, seen.id);
        let asked = table::look(slot, |core| core.id() == id && core.mount_flags.ask());
        if asked != Some(true) {
            return None;
        }
        if sys::barrier_in_every_thread().is_err() {
            table::look(slot, |core| core.mount_flags.withdraw());
            return None;
        }
        let look = |core: &Core, parked| {
            if core.id() != id {
                return None; // It has ended, and another has its slot.
            }
            let held = Held::new(core);
            let mut seen = self.see(core, slot, parked);
            if held.is_some() && core.is_off_stack() {
                seen.state = State::Runnable;
                seen.stack_bytes = self.unwind_saved(core, slot);
            }
            Some(seen)
        };
        sched::inspect(slot, look).flatten()
    }

    /// Reads the stack that a platform thread is on, if that is a virtual thread's.
    pub(super) fn stop(&mut self, platform: u32) -> Option<Stopped> {
        (0..LOOKS).find_map(|_| match way_to(platform)? {
            Way::Signal => current_stack::with(platform, |registers| self.read(registers))?,
            Way::Blocked(registers) => {
                let stopped = self.read(registers);
                match os_thread::in_kernel(platform) {
                    Some(InKernel::Blocked(now)) if self::registers(&now) == registers => {}
                    _ => {
                        self.frames.end = End::Unsure;
                        self.works_for.clear();
                    }
                }
                stopped
            }
        })
    }

    /// Reads a stack whose thread stands still. Neither allocates nor waits.
    fn read(&mut self, registers: Registers) -> Option<Stopped> {
        self.forget_stack();
        if arch::in_switch(registers.pc) {
            return None;
        }
        let slot = region::slot_at(registers.sp)?;
        let stack = slot.frames();
        if !stack.contains(&registers.sp) {
            return None;
        }
        self.unwinder.unwind(registers, stack, &mut self.frames);
        self.works_for.read(slot);
        Some(Stopped {
            id: table::look(slot, |core| core.id()),
            sp: registers.sp,
        })
    }
}

/// Returns how to make a platform thread stand still; `None` if there is no way.
fn way_to(platform: u32) -> Option<Way> {
    let signal = (hooks().stop_signal)();
    let by_signal = signal.works.then_some(Way::Signal);
    match os_thread::in_kernel(platform)? {
        InKernel::Running => by_signal,
        InKernel::Blocked(blocked) => {
            let call = blocked.call;
            let restarts = call.is_none_or(|call| RESTARTED.contains(&call)) && signal.restarts;
            let by_signal = by_signal.filter(|_| restarts);
            Some(by_signal.unwrap_or(Way::Blocked(registers(&blocked))))
        }
    }
}

/// Returns the registers of a blocked thread. The kernel does not tell the frame pointer, nor where
/// a function returns to that has not put it on the stack: its callers are not found.
fn registers(blocked: &Blocked) -> Registers {
    Registers {
        pc: blocked.from,
        sp: blocked.stack_pointer,
        bp: 0,
        lr: 0,
    }
}

// Annotations. The thread stands still while its annotations are read, on its stack. A thread that
// is blocked in a system call may go on at any time: then the result is dropped. So any address may
// be invalid, and all is read by instructions that may fail.

/// An annotation on a thread's stack: the address of its text, the number of its bytes, and the
/// address of the outer annotation, or 0.
pub const ANNOTATION_WORDS: usize = 3;
/// The most names that are read, from the innermost on.
const MOST_ANNOTATIONS: usize = 8;
/// Longer names are cut off.
const LONGEST_ANNOTATION: usize = 256;

/// What a thread works for, as its annotations say.
pub(super) struct WorksFor {
    /// The names, innermost first, and how long each is.
    names: Box<[([u8; LONGEST_ANNOTATION], usize); MOST_ANNOTATIONS]>,
    len: usize,
}

impl WorksFor {
    pub(super) fn new() -> WorksFor {
        WorksFor {
            names: Box::new([([0; LONGEST_ANNOTATION], 0); MOST_ANNOTATIONS]),
            len: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Reads what the thread in a slot works for. The thread has run. Neither allocates nor waits.
    pub(super) fn read(&mut self, slot: Slot) {
        self.len = 0;
        let mut head = word((hooks().annotations)(slot.tp()));
        while let Some(at) = head.filter(|&at| at != 0 && self.len < MOST_ANNOTATIONS) {
            let words: [_; ANNOTATION_WORDS] = core::array::from_fn(|index| word(at + index * 8));
            let [Some(text), Some(len), outer] = words else {
                return;
            };
            let (bytes, kept) = &mut self.names[self.len];
            *kept = len.min(LONGEST_ANNOTATION);
            if copy(text, &mut bytes[..*kept]).is_none() {
                return;
            }
            self.len += 1;
            head = outer;
        }
    }

    /// Returns the names, outermost first.
    pub(super) fn texts(&self) -> Vec<String> {
        let text = |(bytes, len): &([u8; LONGEST_ANNOTATION], usize)| {
            let first = bytes[..*len].utf8_chunks().next();
            first.map_or_else(String::new, |chunk| chunk.valid().to_owned())
        };
        self.names[..self.len].iter().rev().map(text).collect()
    }
}

/// Reads a word, if there is memory at the address.
fn word(address: usize) -> Option<usize> {
    sys::fetch_u64(address).ok().map(|word| word as usize)
}

/// Copies bytes, if there is memory at the address.
fn copy(mut address: usize, bytes: &mut [u8]) -> Option<()> {
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for chunk in words {
        *chunk = word(address)?.to_ne_bytes();
        address += 8;
    }
    for byte in rest {
        *byte = sys::fetch_u8(address).ok()?;
        address += 1;
    }
    Some(())
}

/// How far ahead records are fetched; stacks half as far.
const AHEAD: usize = 16;

/// Fetches what the walk will need soon: with a million threads nothing of them is in a cache, and
/// three lines are needed one after the other (entry, record, stack).
///
/// ```text
///   slot:   now       ... 8 before ...       16 before
///           is walked     its stack,         its record
///                         which the record   is fetched
///                         says, is fetched
/// ```
///
/// The slots that are to be walked next are in a ring.
pub(super) struct Prefetch {
    ring: [Option<Slot>; AHEAD],
    /// The place of the oldest, where the next one goes.
    place: usize,
}

impl Prefetch {
    pub(super) const fn new() -> Prefetch {
        Prefetch {
            ring: [None; AHEAD],
            place: 0,
        }
    }

    /// Adds a slot. Returns the one to walk now.
    pub(super) fn push(&mut self, slot: Option<Slot>) -> Option<Slot> {
        if let Some(slot) = slot {
            table::fetch_record(slot);
        }
        if let Some(half) = self.ring[(self.place + AHEAD / 2) % AHEAD] {
            table::fetch_stack(half);
        }
        let due = core::mem::replace(&mut self.ring[self.place], slot);
        self.place = (self.place + 1) % AHEAD;
        due
    }

    /// Returns the slots that are left, in order.
    pub(super) fn rest(mut self) -> impl Iterator<Item = Slot> {
        (0..AHEAD).filter_map(move |_| self.push(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_comes_out_once_and_in_order() {
        for count in [0, 1, AHEAD as u32, 100] {
            let mut prefetch = Prefetch::new();
            let slots = (0..count).map(|number| Slot((1 << 25) + number));
            let mut out: Vec<Slot> = slots
                .clone()
                .filter_map(|it| prefetch.push(Some(it)))
                .collect();
            out.extend(prefetch.rest());
            assert!(out.into_iter().eq(slots));
        }
    }
}

//! Threads that cannot be claimed: those that are mounted, and those that are about to be.
//!
//! A mounted thread's platform thread is had to [stand still](standing) while the stack is read. If
//! it is blocked in the kernel, it stands still by itself, and a signal would end some calls: then
//! the kernel's own word about it must do, unless the call is one that begins again. A runnable
//! thread, in whatever queue it is, is [held](pirn_rt::vthread::state::AtMount): a carrier that
//! comes to mount it waits.

use super::walk::{Seen, Walker};
use crate::hooks::hooks;
use pirn_dump::{End, State};
use pirn_rt::arch;
use pirn_rt::sched::os_thread::{self, Blocked, InKernel};
use pirn_rt::sched::sample::Registers;
use pirn_rt::sched::standing;
use pirn_rt::stack::{Slot, region};
use pirn_rt::sys;
use pirn_rt::vthread::{Core, table};

/// A thread that is in the middle of a switch is looked at again, so often.
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

/// Whose stack was read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopped {
    slot: Slot,
    /// The thread's id, if it is still known.
    id: Option<u64>,
    sp: usize,
}

impl Stopped {
    /// Returns the thread's id.
    pub(super) fn thread(self) -> Option<u64> {
        self.id
    }
}

/// A thread that has been asked for, and that nobody mounts until this is dropped.
struct Held<'a>(&'a Core);

impl<'a> Held<'a> {
    /// `None` if it is being mounted.
    fn new(core: &'a Core) -> Option<Held<'a>> {
        core.at_mount.hold().then_some(Held(core))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.at_mount.release();
    }
}

/// How a platform thread can be had to stand still.
enum Way {
    Signal,
    /// It is blocked, and the kernel says where.
    Blocked(Registers),
}

impl Walker {
    /// Reads the stack of a thread that could not be claimed, if that is possible.
    pub(super) fn look_closer(&mut self, seen: &mut Seen) {
        match (seen.state, seen.carrier) {
            (State::Running, Some(number)) => {
                let Some(platform) = table::platform_of(number) else {
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

    /// Looks at a runnable thread again, while nobody mounts it.
    fn hold(&mut self, seen: &Seen) -> Option<Seen> {
        let (slot, id) = (seen.slot, seen.id);
        let asked = table::look(slot, |core| core.id() == id && core.at_mount.ask());
        if asked != Some(true) {
            return None;
        }
        if sys::barrier_in_every_thread().is_err() {
            table::look(slot, |core| core.at_mount.withdraw());
            return None;
        }
        let look = |core: &Core, parked| {
            if core.id() != id {
                return None; // It has ended, and another has its slot.
            }
            let held = Held::new(core);
            let mut seen = self.see(core, slot, parked);
            if held.is_some() && core.is_runnable() {
                seen.state = State::Runnable;
                seen.stack_bytes = self.unwind_saved(core, slot);
            }
            Some(seen)
        };
        table::walk(slot, look).flatten()
    }

    /// Reads the stack that a platform thread is on, if that is a virtual thread's.
    pub(super) fn stop(&mut self, platform: u32) -> Option<Stopped> {
        (0..LOOKS).find_map(|_| match way_to(platform)? {
            Way::Signal => standing::with(platform, |registers| self.read(registers))?,
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
            slot,
            id: table::look(slot, |core| core.id()),
            sp: registers.sp,
        })
    }
}

/// Returns how to have a platform thread stand still; `None` if there is no way.
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

/// Returns the registers of a blocked thread. The kernel does not tell the frame pointer.
fn registers(blocked: &Blocked) -> Registers {
    Registers {
        pc: blocked.from,
        sp: blocked.stack_pointer,
        bp: 0,
    }
}

//! Unwinding stacks by the unwind information of the code on them, as a debugger does: frame
//! pointers are kept by few functions.
//!
//! Nothing here allocates, and only the stack is read, in its bounds. What it says is checked
//! later, once per different stack ([`Unwinder::check`]): where there is no unwind information, the
//! library that does the work guesses that there is a frame pointer.

use super::modules::{Bytes, Modules, Tables};
use core::ops::Range;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{
    ExplicitModuleSectionInfo, FrameAddress, MustNotAllocateDuringUnwind, Unwinder as _,
};
use pirn_dump::End;
use pirn_rt::arch;
use pirn_rt::sched::sample::Registers;

/// The most frames of a stack that are read.
pub(super) const MOST_FRAMES: usize = 200;

type Policy = MustNotAllocateDuringUnwind;

/// See the module's documentation.
pub(super) struct Unwinder {
    pub(super) modules: Modules,
    rules: UnwinderX86_64<Bytes, Policy>,
    cache: CacheX86_64<Policy>,
}

/// A stack that has been read: program counters, innermost first.
pub(super) struct Frames {
    pub(super) counters: [u64; MOST_FRAMES],
    pub(super) len: usize,
    pub(super) end: End,
    /// The frames before this one are not of the code that was interrupted, whose own address is
    /// that of the instruction that runs next. 0: none is.
    pub(super) interrupted: usize,
}

impl Frames {
    pub(super) const fn new() -> Frames {
        Frames {
            counters: [0; MOST_FRAMES],
            len: 0,
            end: End::Lost,
            interrupted: 0,
        }
    }

    /// Empties it. It ends as it says until more is read.
    pub(super) fn clear(&mut self, end: End) {
        (self.len, self.end, self.interrupted) = (0, end, 0);
    }

    /// Returns the frames.
    pub(super) fn counters(&self) -> &[u64] {
        &self.counters[..self.len]
    }
}

impl Unwinder {
    /// Returns an unwinder for what is loaded now.
    pub(super) fn new() -> Unwinder {
        let modules = Modules::loaded();
        let mut rules = UnwinderX86_64::new();
        for module in &modules.all {
            if let Some(tables) = &module.tables {
                let (start, end) = (module.code.start as u64, module.code.end as u64);
                let sections = sections(tables, module.bias);
                let bias = module.bias as u64;
                let module = framehop::Module::new(String::new(), start..end, bias, sections);
                rules.add_module(module);
            }
        }
        Unwinder {
            modules,
            rules,
            cache: CacheX86_64::new_in(),
        }
    }

    /// Reads the stack in `stack` of a thread that goes on with these registers.
    pub(super) fn unwind(&mut self, from: Registers, stack: Range<usize>, frames: &mut Frames) {
        frames.clear(End::Lost);
        let stack = from.sp.max(stack.start)..stack.end;
        let mut read =
            |address: u64| match stack.contains(&(address as usize)) && address.is_multiple_of(8) {
                // SAFETY: a part of a slot that is in use. Read by an instruction, so that no
                // sanitizer objects.
                true => Ok(unsafe { arch::fetch_u64(address as usize) }.value),
                false => Err(()),
            };
        let mut registers = UnwindRegsX86_64::new(from.pc as u64, from.sp as u64, from.bp as u64);
        let mut address = FrameAddress::InstructionPointer(from.pc as u64);
        while frames.len < MOST_FRAMES {
            frames.counters[frames.len] = address.address();
            frames.len += 1;
            let next = self
                .rules
                .unwind_frame(address, &mut registers, &mut self.cache, &mut read);
            let next = match next {
                Ok(Some(next)) => next,
                // Frames of code whose unwind information is not known may seem to be the last.
                Ok(None) if arch::is_in_call_as_pthread(address.address() as usize) => {
                    frames.end = End::Complete;
                    return;
                }
                Ok(None) | Err(_) => return,
            };
            if arch::is_outermost(next as usize) {
                frames.end = End::Complete;
                return;
            }
            address = match arch::is_preempted(frames.counters[frames.len - 1] as usize) {
                true => {
                    frames.interrupted = frames.len;
                    FrameAddress::InstructionPointer(next)
                }
                false => match FrameAddress::from_return_address(next) {
                    Some(next) => next,
                    None => return,
                },
            };
        }
        frames.end = End::TooDeep;
    }

    /// Cuts a stack off behind the first frame without unwind information.
    pub(super) fn check(&self, frames: &mut Frames) {
        let lost = |at: &usize| {
            let exact = *at == 0 || *at == frames.interrupted;
            let counter = frames.counters[*at] as usize - usize::from(!exact);
            self.modules.function_at(counter).is_none()
        };
        if let Some(at) = (0..frames.len).find(lost) {
            (frames.len, frames.end) = (at + 1, End::Lost);
        }
    }
}

/// Describes a module for the library: addresses there are those of the file.
fn sections(tables: &Tables, bias: usize) -> ExplicitModuleSectionInfo<Bytes> {
    let range = |start: usize, bytes: &Bytes| {
        let start = (start - bias) as u64;
        Some(start..start + bytes.len() as u64)
    };
    ExplicitModuleSectionInfo {
        base_svma: 0,
        eh_frame_svma: range(tables.frames_at, &tables.frames),
        eh_frame: Some(tables.frames.clone()),
        eh_frame_hdr_svma: range(tables.index_at, &tables.index),
        eh_frame_hdr: Some(tables.index.clone()),
        ..Default::default()
    }
}

//! Unwinding stacks by the unwind information of the code on them, as a debugger does: frame
//! pointers are kept by few functions.
//!
//! Nothing here allocates, and only the stack is read, in its bounds. What it says is checked
//! later, once per different stack ([`Unwinder::check`]): where there is no unwind information, the
//! library that does the work guesses that there is a frame pointer.
//!
//! The unwind information is read in memory: the files may have been replaced. The part of a
//! library is copied, because the library may be closed while a stack is read; the program stays.

use core::ops::{Deref, Range};
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MustNotAllocateDuringUnwind,
    Unwinder as _, UnwinderNative,
};
use pirn_dump::End;
use pirn_rt::arch;
use pirn_rt::glibc::objects::{self, Object};
use pirn_rt::sched::current_stack::Registers;
use std::sync::Arc;

/// The most frames of a stack that are read.
pub(super) const MOST_FRAMES: usize = 200;

type Policy = MustNotAllocateDuringUnwind;

/// See the module's documentation.
pub(super) struct Unwinder {
    pub(super) modules: Modules,
    rules: UnwinderNative<Bytes, Policy>,
    cache: CacheNative<Policy>,
}

/// A stack that has been read: program counters, innermost first.
pub(super) struct Frames {
    pub(super) counters: [u64; MOST_FRAMES],
    pub(super) len: usize,
    pub(super) end: End,
    /// The frames before this one are not of the code that was interrupted, whose own address is
    /// the instruction that runs next. 0: no code was interrupted.
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

    /// Forgets the frames. `end` is the end of the stack until a frame is read.
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
        let mut rules = UnwinderNative::new();
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
            cache: CacheNative::new_in(),
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
        let highest = self.rules.max_known_code_address();
        let from = [from.pc, from.sp, from.bp, from.lr].map(|word| word as u64);
        let mut registers = crate::arch::registers(from, highest);
        let mut address = FrameAddress::InstructionPointer(from[0]);
        while frames.len < MOST_FRAMES {
            frames.counters[frames.len] = address.address();
            frames.len += 1;
            let is_preempted = arch::is_preempted(address.address() as usize);
            let kept = match is_preempted {
                true => interrupted(registers.sp(), &mut read),
                false => None,
            };
            let next = match kept {
                Some(from) => {
                    registers = crate::arch::registers(from, highest);
                    Ok(Some(from[0]))
                }
                None => {
                    self.rules
                        .unwind_frame(address, &mut registers, &mut self.cache, &mut read)
                }
            };
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
            address = match is_preempted {
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
            let counter = frames.counters[*at] as usize;
            self.modules
                .function_at(counter - usize::from(!exact))
                .is_none()
                && !arch::is_preempted(counter)
        };
        if let Some(at) = (0..frames.len).find(lost) {
            (frames.len, frames.end) = (at + 1, End::Lost);
        }
    }
}

/// Returns the registers of the code that has been made to call the trampoline, whose stack pointer
/// was `sp` when it called its body. `None`: the trampoline's unwind information says them.
fn interrupted(sp: u64, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<[u64; 4]> {
    let places = arch::INTERRUPTED.get(..4)?;
    let mut registers = [0; 4];
    for (register, (_, at)) in registers.iter_mut().zip(places) {
        *register = read(sp + *at as u64).ok()?;
    }
    Some(registers)
}

/// Describes a module for the library: addresses there are the ones in the file.
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

/// A part of a loaded file.
#[derive(Clone)]
pub(super) enum Bytes {
    /// Of the program, which stays.
    There(&'static [u8]),
    Copied(Arc<[u8]>),
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::There(&[])
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::There(bytes) => bytes,
            Bytes::Copied(bytes) => bytes,
        }
    }
}

/// The unwind information of a file, and its addresses in the process.
#[derive(Clone)]
pub(super) struct Tables {
    /// `.eh_frame_hdr`: functions in the order of their addresses.
    pub(super) index: Bytes,
    pub(super) index_at: usize,
    /// `.eh_frame`, and what follows it.
    pub(super) frames: Bytes,
    pub(super) frames_at: usize,
}

/// A piece of code of the program or a library.
pub(super) struct Module {
    /// As the dynamic linker found it; empty for the program.
    pub(super) path: Vec<u8>,
    pub(super) build_id: Vec<u8>,
    /// What to subtract from an address to get the file's own.
    pub(super) bias: usize,
    pub(super) code: Range<usize>,
    /// Where the code is in the file.
    pub(super) offset: u64,
    pub(super) tables: Option<Tables>,
}

/// See the module's documentation.
pub(super) struct Modules {
    /// In the order of their addresses.
    pub(super) all: Vec<Module>,
    /// How many objects had been loaded and unloaded.
    changes: u64,
}

impl Modules {
    /// Returns what is loaded now.
    pub(super) fn loaded() -> Modules {
        let mut modules = Modules {
            all: Vec::new(),
            changes: changes(),
        };
        objects::find_in(|object| {
            modules.add(&object);
            None::<()>
        });
        modules.all.sort_by_key(|module| module.code.start);
        modules
    }

    /// Returns whether something else may be loaded by now.
    pub(super) fn are_old(&self) -> bool {
        changes() != self.changes
    }

    fn add(&mut self, object: &Object<'_>) {
        let tables = Tables::of(object);
        for (code, offset) in object.code() {
            self.all.push(Module {
                path: object.name().to_bytes().to_vec(),
                build_id: object.build_id().unwrap_or_default().to_vec(),
                bias: object.base(),
                code,
                offset,
                tables: tables.clone(),
            });
        }
    }

    /// Returns the function that an address is in, according to the unwind information.
    pub(super) fn function_at(&self, address: usize) -> Option<Range<usize>> {
        let after = self.all.partition_point(|m| m.code.start <= address);
        let module = &self.all[after.checked_sub(1)?];
        let tables = module.tables.as_ref()?;
        let inside = module.code.contains(&address);
        inside.then(|| tables.function_at(address)).flatten()
    }
}

fn changes() -> u64 {
    objects::find_in(|object| Some(object.changes())).unwrap_or(0)
}

/// The beginning of an index: version 1, and the encodings that all linkers use (DW_EH_PE_…): where
/// `.eh_frame` is, as a distance from here; the number of entries; entries of two distances from
/// the index.
const HEAD: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// The place of the first entry.
const ENTRIES: usize = 12;

impl Tables {
    fn of(object: &Object<'_>) -> Option<Tables> {
        let index = object.unwind_index_bytes()?;
        let index_at = index.as_ptr().addr();
        if index.get(..4)? != HEAD {
            return None;
        }
        let frames_at = (index_at + 4).wrapping_add_signed(word(index, 4)? as isize);
        let frames = object.bytes_from(frames_at)?;
        let stays = object.name().is_empty();
        let bytes = |bytes: &[u8]| match stays {
            // SAFETY: the program's own file is never unloaded.
            true => Bytes::There(unsafe { &*core::ptr::from_ref(bytes) }),
            false => Bytes::Copied(bytes.into()),
        };
        Some(Tables {
            index: bytes(index),
            index_at,
            frames: bytes(frames),
            frames_at,
        })
    }

    fn function_at(&self, address: usize) -> Option<Range<usize>> {
        let count = word(&self.index, 8)? as u32 as usize;
        let count = count.min((self.index.len() - ENTRIES) / 8);
        let at = |entry: usize, field: usize| {
            let distance = word(&self.index, ENTRIES + entry * 8 + field).unwrap_or(0);
            self.index_at.wrapping_add_signed(distance as isize)
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            match at(middle, 0) <= address {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let entry = low.checked_sub(1)?;
        let (start, description) = (at(entry, 0), at(entry, 4));
        let end = start
            + self
                .length_of(description, start)
                .unwrap_or(usize::MAX - start);
        (address < end).then_some(start..end)
    }

    /// Returns the length of the function that an entry of `.eh_frame` describes, if that is
    /// encoded in the usual way.
    fn length_of(&self, description: usize, start: usize) -> Option<usize> {
        let at = description.checked_sub(self.frames_at)?;
        let distance = word(&self.frames, at + 8)?;
        let described = (description + 8).wrapping_add_signed(distance as isize);
        let length = word(&self.frames, at + 12)? as u32 as usize;
        (described == start).then_some(length)
    }
}

/// Returns the number of four bytes at this place.
fn word(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(i32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn somewhere() -> usize {
        let here = somewhere as *const () as usize;
        core::hint::black_box(here)
    }

    #[test]
    fn functions_of_the_program_and_of_libraries_are_found() {
        let modules = Modules::loaded();
        for start in [
            somewhere(),
            libc::strtol as *const () as usize,
            libc::qsort as *const () as usize,
        ] {
            let function = modules.function_at(start + 1).unwrap();
            assert_eq!(function.start, start);
            assert!(function.end - start < 1 << 16);
            assert_eq!(modules.function_at(start), Some(function));
        }
        assert_eq!(modules.function_at(0), None);
        assert_eq!(modules.function_at((&raw const modules).addr()), None);
    }

    #[test]
    fn the_program_has_no_path_and_an_id() {
        let modules = Modules::loaded();
        let here = somewhere();
        let program = modules.all.iter().find(|m| m.code.contains(&here)).unwrap();
        assert!(program.path.is_empty());
        assert!(!program.build_id.is_empty());
        assert!(!modules.are_old());
    }
}

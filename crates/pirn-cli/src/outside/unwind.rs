//! Reading stacks by the unwind information in the files of the program and its libraries.

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Unwinder as _,
    UnwinderNative,
};
use object::{Object, ObjectSection};
use pirn_dump::{End, Stack};
use pirn_observe::arch::registers;

use super::core_file::Registers;
use super::modules::{Loaded, Modules};

/// The most frames of a stack that are kept.
const MOST_FRAMES: usize = 200;
/// The functions that the runtime defines in libc's place are looked for in this many frames.
const RUNTIME_FRAMES: usize = 32;

/// See the module's documentation.
pub struct Unwinder {
    pub modules: Modules,
    rules: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    /// The functions that the program defines for its libraries, among them the functions of libc
    /// that pirn defines anew. Ranges of addresses, sorted.
    exported: Vec<(u64, u64)>,
    /// Addresses that calls return to: of the outermost frame; behind which one was interrupted.
    pub outermost: Option<u64>,
    pub preempted: Option<u64>,
    /// Where the registers of interrupted code are, from the stack pointer of the frame of
    /// `preempted` on, in the order of [`registers`]; if its unwind information does not say it.
    pub interrupted: Option<[u64; 4]>,
}

/// The bytes of a stack, from an address on.
pub struct Bytes {
    pub start: u64,
    pub bytes: Vec<u8>,
}

impl Unwinder {
    pub fn new(modules: Modules) -> Unwinder {
        let mut rules = UnwinderNative::new();
        let mut exported = Vec::new();
        for loaded in &modules.0 {
            if let Some(sections) = sections(loaded) {
                let module = &loaded.module;
                let (addresses, bias) = (module.start..module.end, module.bias);
                rules.add_module(framehop::Module::new(
                    String::new(),
                    addresses,
                    bias,
                    sections,
                ));
            }
            if loaded.file.debug_table().is_some() {
                let bias = loaded.module.bias;
                let own = loaded.file.exported().into_iter();
                exported.extend(own.map(|(start, len)| {
                    let start = start.wrapping_add(bias);
                    (start, start.wrapping_add(len))
                }));
            }
        }
        exported.sort_unstable();
        Unwinder {
            modules,
            rules,
            cache: CacheNative::new(),
            exported,
            outermost: None,
            preempted: None,
            interrupted: None,
        }
    }

    /// Reads the stack of a thread that goes on with these registers. `exact`: it was interrupted
    /// there; otherwise it has called the runtime.
    pub fn unwind(&mut self, from: Registers, stack: &Bytes, exact: bool) -> Stack {
        let mut read = |address: u64| {
            let at = address.checked_sub(stack.start).ok_or(())? as usize;
            let word = stack.bytes.get(at..).and_then(|rest| rest.first_chunk());
            word.map(|bytes| u64::from_le_bytes(*bytes)).ok_or(())
        };
        let highest = self.rules.max_known_code_address();
        let mut now = registers([from.pc, from.sp, from.bp, from.lr], highest);
        let mut address = FrameAddress::InstructionPointer(from.pc);
        let (mut frames, mut end, mut interrupted) = (Vec::new(), End::TooDeep, None);
        while frames.len() < MOST_FRAMES {
            frames.push(address.address());
            let known = self.modules.at(address.address()).is_some();
            let is_preempted = self.preempted == Some(address.address());
            let kept = self
                .interrupted
                .filter(|_| is_preempted)
                .and_then(|places| {
                    let words = places.map(|at| read(now.sp().wrapping_add(at)));
                    words
                        .iter()
                        .all(Result::is_ok)
                        .then(|| words.map(Result::unwrap_or_default))
                });
            let next = match kept {
                Some(kept) => {
                    now = registers(kept, highest);
                    Ok(Some(kept[0]))
                }
                None => {
                    let (rules, cache) = (&self.rules, &mut self.cache);
                    rules.unwind_frame(address, &mut now, cache, &mut read)
                }
            };
            let Ok(Some(next)) = next else {
                // Its frame says that it has no caller, or nothing is known of it.
                end = if known && next == Ok(None) {
                    End::Complete
                } else {
                    End::Lost
                };
                break;
            };
            if self.outermost == Some(next) {
                end = End::Complete;
                break;
            }
            address = match FrameAddress::from_return_address(next) {
                _ if is_preempted => {
                    interrupted = Some(frames.len());
                    FrameAddress::InstructionPointer(next)
                }
                Some(next) => next,
                None => {
                    end = End::Lost;
                    break;
                }
            };
        }
        self.stack(frames, end, exact, interrupted)
    }

    fn stack(
        &self,
        mut frames: Vec<u64>,
        end: End,
        exact: bool,
        interrupted: Option<usize>,
    ) -> Stack {
        if let Some(first) = interrupted {
            // How the runtime has interrupted it is not the thread's doing.
            frames.drain(..first.min(frames.len()));
        }
        let exact_first = exact || interrupted.is_some();
        let is_exported = |frame: &u64| {
            let after = self.exported.partition_point(|(start, _)| start < frame);
            after > 0 && *frame <= self.exported[after - 1].1
        };
        let mut first = frames
            .iter()
            .take(if exact_first { 0 } else { RUNTIME_FRAMES });
        let runtime_frames = first.position(is_exported).unwrap_or(0) as u32;
        Stack {
            frames,
            exact_first,
            end,
            runtime_frames,
        }
    }
}

/// Returns the unwind information of a module's file.
fn sections(loaded: &Loaded) -> Option<ExplicitModuleSectionInfo<Vec<u8>>> {
    let elf = loaded.file.elf()?;
    let section = |name| {
        let section = elf.section_by_name(name)?;
        let start = section.address();
        Some((start..start + section.size(), section.data().ok()?.to_vec()))
    };
    let (frames_at, frames) = section(".eh_frame").unzip();
    let (index_at, index) = section(".eh_frame_hdr").unzip();
    Some(ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: elf
            .section_by_name(".text")
            .map(|s| s.address()..s.address() + s.size()),
        eh_frame_svma: frames_at,
        eh_frame: frames,
        eh_frame_hdr_svma: index_at,
        eh_frame_hdr: index,
        ..Default::default()
    })
}

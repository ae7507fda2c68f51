//! The different stacks of a dump.
//!
//! Most threads have the stack of another thread, frame by frame: that is found by one look into a
//! table. What is new is checked, and compared as people see it, without the runtime's own frames:
//! there are several ways through the runtime into the same wait.

use super::unwind::{Frames, MOST_FRAMES, Unwinder};
use crate::hooks::hooks;
use pirn_dump::{End, Stack};
use std::collections::HashMap;

/// Interposed functions are looked for in this many frames.
const RUNTIME_FRAMES: usize = 32;
/// When so many bytes of frames are kept, only the first of further stacks are.
const MOST_BYTES: usize = 32 << 20;
const FEW_FRAMES: usize = 8;

/// See the module's documentation.
pub(super) struct Stacks {
    pub(super) all: Vec<Stack>,
    /// Stacks as they were read, with a word that says how: their numbers.
    read: HashMap<Box<[u64]>, u32>,
    /// Stacks as they are shown.
    shown: HashMap<Box<[u64]>, u32>,
    /// The addresses of all interposed functions, sorted.
    interposed: Vec<usize>,
    bytes: usize,
}

impl Stacks {
    pub(super) fn new() -> Stacks {
        Stacks {
            all: Vec::new(),
            read: HashMap::new(),
            shown: HashMap::new(),
            interposed: (hooks().interposed)(),
            bytes: 0,
        }
    }

    /// Returns the number of a stack. `exact`: the first frame is that of the instruction that runs
    /// next, of a thread that was stopped; otherwise of one that has left its stack.
    ///
    /// `None`: there is code on it that is not known, and something has been loaded since it was
    /// looked what there is. The frames beyond that code are missing, or wrong.
    pub(super) fn number(
        &mut self,
        frames: &mut Frames,
        exact: bool,
        unwinder: &Unwinder,
    ) -> Option<u32> {
        let is_right = |frames: &Frames| frames.end != End::Lost || !unwinder.modules.are_old();
        self.number_if(frames, exact, unwinder, is_right)
    }

    /// The same, whatever has been loaded.
    pub(super) fn number_as_it_is(
        &mut self,
        frames: &mut Frames,
        exact: bool,
        unwinder: &Unwinder,
    ) -> Option<u32> {
        self.number_if(frames, exact, unwinder, |_| true)
    }

    /// Returns the number of a stack that is known, or is as it should be when it has been checked.
    fn number_if(
        &mut self,
        frames: &mut Frames,
        exact: bool,
        unwinder: &Unwinder,
        is_right: impl FnOnce(&Frames) -> bool,
    ) -> Option<u32> {
        let mut key = [0; MOST_FRAMES + 1];
        key[..frames.len].copy_from_slice(frames.counters());
        key[frames.len] = frames.end as u64 | u64::from(exact) << 8;
        let key = &key[..frames.len + 1];
        if let Some(&number) = self.read.get(key) {
            return Some(number);
        }
        unwinder.check(frames);
        if !is_right(frames) {
            return None;
        }
        if self.bytes > MOST_BYTES && frames.len > FEW_FRAMES {
            (frames.len, frames.end) = (FEW_FRAMES, End::TooDeep);
        }
        let number = self.number_as_shown(frames, exact, unwinder);
        if self.bytes <= MOST_BYTES {
            self.bytes += size_of_val(key);
            self.read.insert(key.into(), number);
        }
        Some(number)
    }

    fn number_as_shown(&mut self, frames: &Frames, exact: bool, unwinder: &Unwinder) -> u32 {
        let stack = self.stack(frames, exact, unwinder);
        let hidden = stack.runtime_frames as usize;
        let mut key = stack.frames[hidden..].to_vec();
        if let Some(first) = key
            .first_mut()
            .filter(|_| hidden == 0 && !stack.exact_first)
        {
            // The switch is in two places of a function.
            let function = unwinder.modules.function_at(*first as usize);
            *first = function.map_or(*first, |function| function.start as u64);
        }
        key.push(stack.end as u64 | u64::from(stack.exact_first) << 8 | u64::from(hidden > 0) << 9);
        let key = key.into_boxed_slice();
        if let Some(&number) = self.shown.get(&key) {
            return number;
        }
        let number = self.all.len() as u32;
        self.bytes += size_of_val(&*key) + size_of_val(&*stack.frames);
        self.all.push(stack);
        self.shown.insert(key, number);
        number
    }

    fn stack(&self, frames: &Frames, exact: bool, unwinder: &Unwinder) -> Stack {
        if frames.interrupted > 0 {
            // How the runtime has interrupted it is not the thread's doing.
            return Stack {
                frames: frames.counters()[frames.interrupted.min(frames.len)..].to_vec(),
                exact_first: true,
                end: frames.end,
                runtime_frames: 0,
            };
        }
        let interposed = |counter: &u64| {
            let function = unwinder.modules.function_at(*counter as usize - 1);
            function.is_some_and(|f| self.interposed.binary_search(&f.start).is_ok())
        };
        let mut first = frames.counters().iter().take(RUNTIME_FRAMES);
        let hidden = match exact {
            true => None,
            false => first.position(interposed),
        };
        Stack {
            frames: frames.counters().to_vec(),
            exact_first: exact,
            end: frames.end,
            runtime_frames: hidden.unwrap_or(0) as u32,
        }
    }
}

//! The lint for deep stacks: one has been used nearly to its end.
//!
//! The kernel knows which pages have been touched. Each look asks about some of the slots that are
//! open, so the cost of a look does not grow with the number of threads.

use super::report::Report;
use super::{Context, Look};
use crate::config::lints::Lint;
use pirn_rt::stack::depth::{self, NearlyFull};
use pirn_rt::vthread::label::Label;
use pirn_rt::vthread::residents;
use std::collections::HashSet;

/// The slots per look: about 0.3 ms.
const PER_LOOK: usize = 1024;
/// The most slots that are remembered.
const MOST: usize = 4096;

/// See the module's documentation.
pub(super) struct Stacks {
    percent: usize,
    /// Where the next look goes on.
    next: u32,
    /// The slots that have been reported.
    known: HashSet<u32>,
}

impl Stacks {
    pub(super) fn new(percent: u64) -> Stacks {
        Stacks {
            percent: percent as usize,
            next: 0,
            known: HashSet::new(),
        }
    }
}

impl Look for Stacks {
    fn look(&mut self, context: &mut Context<'_>) {
        let Stacks {
            percent,
            next,
            known,
        } = self;
        depth::nearly_full(*percent, next, PER_LOOK, |stack| {
            if known.len() < MOST && known.insert(stack.slot.0) {
                let thread = residents::look(stack.slot, Label::of);
                let text = text(&stack, thread.as_ref());
                let place = (stack.user, stack.size);
                let mut report = Report::new(Lint::DeepStack, place, text);
                report.threads = thread.iter().map(|thread| thread.id).collect();
                context.reporter.report(report);
            }
        });
    }
}

fn text(stack: &NearlyFull, thread: Option<&Label>) -> String {
    let (used, size) = (stack.used >> 10, stack.size >> 10);
    let whose = match (thread, stack.user) {
        (Some(thread), Some(user)) => format!("that of virtual thread {thread}, which runs {user}"),
        (Some(thread), None) => format!("that of virtual thread {thread}"),
        (None, Some(user)) => format!("that of a thread that ran {user}"),
        (None, None) => "that of a virtual thread".into(),
    };
    format!(
        "{used} KiB of a stack of {size} KiB have been used, {whose} (or of one that had the stack \
         before it). A little more would overflow it and end the program: set Builder::stack_size \
         for such threads, or raise PIRN_STACK_SIZE"
    )
}

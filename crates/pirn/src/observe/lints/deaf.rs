//! The lint for members that do not hear: their scope has been cancelled, which interrupts them,
//! and they are still in the wait that they were in then.
//!
//! A member that has been mounted since is not meant: it has heard, and needs time to end. Nor is
//! one that joins a scope of its own, which is cancelled, too: that scope's members are.

use super::report::Report;
use super::{Context, Look, waits};
use crate::config::lints::Lint;
use crate::scope::tree::{self, Cancelled, WaitingMember};
use pirn_rt::vthread::awaited::Kind;
use std::fmt::Write;

/// The most scopes per look.
const MOST: usize = 256;

/// See the module's documentation.
pub(super) struct Deaf {
    limit: u64,
    known: Vec<Known>,
}

/// A cancelled scope.
struct Known {
    id: u64,
    /// Members that have been in one wait for all the time, by id, and how often each was mounted.
    members: Vec<(u64, u32)>,
    /// For how long.
    waited: u64,
    reported: bool,
}

/// Returns the members that wait for others than members.
fn waiting(scope: &Cancelled) -> impl Iterator<Item = &WaitingMember> {
    let members = scope.waiting.iter().flatten();
    members.filter(|member| member.awaits.kind() != Kind::Scope)
}

impl Deaf {
    pub(super) fn new(limit: u64) -> Deaf {
        Deaf {
            limit,
            known: Vec::new(),
        }
    }

    /// Takes note of a scope, `step` ns after the last look. Returns what is known about it now.
    fn note(&mut self, scope: &Cancelled, step: u64) -> Known {
        let members: Vec<_> = waiting(scope).map(|m| (m.label.id, m.mounts)).collect();
        let place = self.known.iter().position(|known| known.id == scope.id);
        let before = place.map(|place| self.known.swap_remove(place));
        let still = |before: &Known| {
            let both = members
                .iter()
                .filter(|&member| before.members.contains(member));
            both.copied().collect::<Vec<_>>()
        };
        match before.map(|before| (still(&before), before)) {
            Some((members, before)) if !members.is_empty() => Known {
                members,
                waited: before.waited + step,
                ..before
            },
            _ => Known {
                id: scope.id,
                members,
                waited: 0,
                reported: false,
            },
        }
    }
}

impl Look for Deaf {
    fn look(&mut self, context: &mut Context<'_>) {
        let mut scopes = Vec::with_capacity(MOST);
        tree::cancelled(&mut scopes);
        let mut all = Vec::with_capacity(scopes.len());
        for scope in &scopes {
            let mut known = self.note(scope, context.step);
            if known.waited >= self.limit && !known.reported {
                known.reported = true;
                context.reporter.report(report(scope, &known));
            }
            all.push(known);
        }
        self.known = all; // without those that have ended
    }
}

fn report(scope: &Cancelled, known: &Known) -> Report {
    let name = scope.name.as_deref().unwrap_or_default();
    let named = match name {
        "" => String::new(),
        name => format!(" {name:?}"),
    };
    let mut text = format!(
        "scope #{}{named} of thread {} has been cancelled for {:.1} s, and {} of its members have \
         not ended. These do not hear the interrupt:",
        scope.id,
        scope.owner,
        known.waited as f64 / 1e9,
        scope.running,
    );
    let is_known = |m: &&WaitingMember| known.members.contains(&(m.label.id, m.mounts));
    let mut kinds = Vec::new();
    for (number, member) in waiting(scope).filter(is_known).enumerate() {
        let comma = if number > 0 { "," } else { "" };
        let what = waits::describe(member.awaits);
        // Writing to a string does not fail.
        let _ = write!(text, "{comma} {} waits for {what}", member.label);
        kinds.push(member.awaits.kind() as u8);
    }
    text += ". The scope ends when they do: wait in a way that hears interrupts \
             (docs/structured-concurrency.md), or end the wait by thread::on_interrupt";
    kinds.dedup();
    let mut report = Report::new(Lint::DeafMember, (name, kinds), text);
    report.threads = known.members.iter().map(|&(id, _)| id).collect();
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use pirn_rt::vthread::awaited::Awaited;
    use pirn_rt::vthread::label::Label;

    fn scope(members: &[(u64, u32)]) -> Cancelled {
        let mut waiting = [None; _];
        for (place, &(id, mounts)) in waiting.iter_mut().zip(members) {
            *place = Some(WaitingMember {
                label: Label::new(id, None),
                mounts,
                awaits: Awaited::at(Kind::Mutex, 64),
            });
        }
        Cancelled {
            id: 3,
            name: Some("orders".into()),
            owner: Label::new(1, Some("main")),
            waiting,
            running: members.len(),
        }
    }

    #[test]
    fn only_members_that_have_not_moved_are_deaf() {
        let mut deaf = Deaf::new(10);
        let mut note = |members: &[(u64, u32)]| {
            let known = deaf.note(&scope(members), 10);
            let result = (known.waited, known.members.clone());
            deaf.known.push(known);
            result
        };
        assert_eq!(note(&[(5, 1), (6, 1)]), (0, vec![(5, 1), (6, 1)]));
        assert_eq!(note(&[(5, 2), (6, 1)]), (10, vec![(6, 1)]), "5 has moved");
        assert_eq!(note(&[(6, 1)]), (20, vec![(6, 1)]));
        assert_eq!(note(&[(7, 1)]), (0, vec![(7, 1)]), "another one");
    }

    #[test]
    fn the_line_names_scope_owner_members_and_waits() {
        let scope = scope(&[(5, 1)]);
        let known = Deaf::new(1).note(&scope, 0);
        let report = report(&scope, &known);
        let head = "scope #3 \"orders\" of thread #1 \"main\" has been cancelled";
        assert!(report.text.starts_with(head), "{}", report.text);
        let deaf = "interrupt: #5 waits for a pthread mutex at 0x40. ";
        assert!(report.text.contains(deaf), "{}", report.text);
        assert_eq!(report.threads, [5]);
    }
}

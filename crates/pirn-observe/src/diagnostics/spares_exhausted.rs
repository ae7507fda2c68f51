//! Exhausted spare carriers: all carriers are stuck, and other threads wait.

use super::in_kernel;
use super::report::Report;
use crate::findings::Kind;
use pirn_rt::runtime::Runtime;
use pirn_rt::sched::os_thread::Blocked;
use std::fmt::Write;

/// Explains that no spare carrier could be added for `wanting` ns.
pub(super) fn explain(runtime: &Runtime, wanting: u64) -> Option<Report> {
    let stuck: Vec<_> = runtime.stuck.episodes().collect();
    let blocked = stuck.iter().filter(|episode| episode.blocked);
    let places: Vec<Blocked> = blocked.filter_map(|e| in_kernel::place(e.holder)).collect();
    if places.len() < stuck.len() && runtime.settings.spares == 0 {
        return None; // The operator has chosen that threads which compute keep the others waiting.
    }
    let text = text(stuck.len(), &places, wanting, &Spares::of(runtime));
    Some(Report::new(Kind::SparesExhausted, (), text))
}

/// The spare carriers that there are, and may be.
struct Spares {
    in_use: usize,
    most: usize,
}

impl Spares {
    fn of(runtime: &Runtime) -> Spares {
        Spares {
            in_use: runtime.spares_in_use.count(),
            most: runtime.settings.spares,
        }
    }
}

/// Returns the text about `count` carriers, some of which are blocked in the kernel, with the place
/// where most of those are.
fn text(count: usize, places: &[Blocked], wanting: u64, spares: &Spares) -> String {
    let seconds = wanting as f64 / 1e9;
    let mut text = match places.len() == count {
        true => format!("all {count} carriers have been blocked in the kernel for {seconds:.1} s"),
        false => format!(
            "all {count} carriers have been stuck for {seconds:.1} s: {} blocked in the kernel, {} \
             computing where they cannot be preempted",
            places.len(),
            count - places.len(),
        ),
    };
    let number = |place: &Blocked| places.iter().filter(|p| same(p, place)).count();
    // Writing to a string does not fail.
    let _ = match places.iter().max_by_key(|place| number(place)) {
        Some(place) => write!(
            text,
            ", {} of them in {}, called from {}",
            number(place),
            in_kernel::name(place.call),
            in_kernel::origin(place.from)
        ),
        None => Ok(()),
    };
    text += "; other threads wait";
    let _ = match spares.in_use < spares.most {
        true => write!(
            text,
            ", and no further spare carrier could be started: memory or platform threads have run \
             out"
        ),
        false => write!(
            text,
            ". PIRN_SPARE_CARRIERS={} is the most there may be; raise it, or end what blocks them",
            spares.most
        ),
    };
    if !places.is_empty() {
        text += ". Calls that are not made through libc's functions are not seen: see \
                 docs/limits.md, \"System calls made without libc\"";
    }
    text
}

fn same(one: &Blocked, other: &Blocked) -> bool {
    (one.call, one.from) == (other.call, other.from)
}

#[cfg(test)]
mod tests;

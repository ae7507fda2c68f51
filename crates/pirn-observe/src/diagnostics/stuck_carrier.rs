//! Stuck carriers: which thread holds one, since when, where, and its stack.
//!
//! The monitor has found the carrier stuck some time ago; it may go on while it is looked at. So
//! its processor's count of switches is compared before and after: if it has changed, there is
//! nothing to say. Nothing here stops the carrier for longer than its stack is read.

use super::in_kernel;
use super::report::Report;
use super::settings::Trace;
use crate::dump::stop_for_read::{self, StoppedStack};
use crate::findings::Kind;
use core::sync::atomic::Ordering::Relaxed;
use pirn_rt::runtime::Runtime;
use pirn_rt::sched::os_thread;
use pirn_rt::sched::os_thread::Blocked;
use pirn_rt::sched::stuck::Episode;
use pirn_rt::stack::region;
use pirn_rt::sys;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::identity::Label;
use pirn_rt::vthread::record::{Core, Phase};
use pirn_rt::vthread::table;

/// Explains what a processor is stuck in, if it still is.
pub(super) fn explain(runtime: &Runtime, episode: &Episode, trace: Trace) -> Option<Report> {
    let is_there = || {
        let processor = runtime.processors.used().get(episode.processor);
        let tick = processor.map(|processor| processor.tick.load(Relaxed)); // Relaxed: compared only.
        tick == Some(episode.tick)
    };
    let place = match episode.blocked {
        // Without a place it runs again, or is stopped.
        true => Some(in_kernel::place(episode.holder).filter(|_| is_asleep(episode.holder))?),
        false => None,
    };
    let name = os_thread::name(episode.holder).unwrap_or_default();
    let thread = mounted(place.as_ref(), &name);
    let stack = Stack::of(episode.holder, trace, is_there);
    if !is_there() {
        return None;
    }
    let mut text = text(episode, thread.as_ref(), &name, place.as_ref(), trace);
    stack.describe(&mut text);
    let key = (place.map(|place| (place.call, place.from)), episode.blocked);
    let mut report = Report::new(Kind::StuckCarrier, key, text);
    report.threads = thread.iter().map(|thread| thread.id).collect();
    Some(report)
}

/// Returns whether a thread sleeps, rather than being stopped by a signal or a debugger.
fn is_asleep(id: u32) -> bool {
    matches!(os_thread::state_of(id), Some(b'S' | b'D'))
}

/// Returns the virtual thread that is mounted on the platform thread of this name.
fn mounted(place: Option<&Blocked>, name: &str) -> Option<Label> {
    // Blocked in the kernel, it is where its stack pointer is.
    let slot = place.and_then(|place| region::slot_at(place.stack_pointer));
    if let Some(slot) = slot {
        return table::look(slot, Label::of);
    }
    let carrier: u32 = name.strip_prefix("pirn-carrier-")?.parse().ok()?;
    let is_there =
        |core: &Core| core.phase() == Phase::Running && core.carrier_number() == Some(carrier);
    let mut found = None;
    region::for_each_open(|slot| {
        if found.is_none() {
            let label = table::look(slot, |core| is_there(core).then(|| Label::of(core)));
            found = label.flatten();
        }
    });
    found
}

fn text(
    episode: &Episode,
    thread: Option<&Label>,
    name: &str,
    place: Option<&Blocked>,
    trace: Trace,
) -> String {
    let thread = thread.map_or_else(
        || "a virtual thread".into(),
        |t| format!("virtual thread {t}"),
    );
    let holder = format!("{name:?} (tid {})", episode.holder);
    let (seconds, since) = (episode.ns as f64 / 1e9, time_of_day(episode.ns));
    let doing = match place {
        Some(place) => format!(
            "blocked in the kernel, in {}, called from {}",
            in_kernel::describe(place),
            in_kernel::origin(place.from)
        ),
        None => "computing where it cannot be preempted (inside libc, in no_preemption, or with \
                 PIRN_PREEMPT=0)"
            .into(),
    };
    let advice = match (place.is_some(), trace) {
        (true, Trace::Line) => {
            "make it through libc's functions, which Pirn sees, or on a platform thread \
             (docs/limits.md: \"System calls made without libc\", and \"Scheduling\" for those of \
             libc that hold a carrier); PIRN_TRACE_STUCK=short shows the stack"
        }
        (true, _) => "docs/limits.md, \"System calls made without libc\"",
        (false, Trace::Line) => "PIRN_TRACE_STUCK=short shows the stack",
        (false, _) => "docs/limits.md, \"Scheduling\"",
    };
    format!(
        "{thread} has held carrier {holder} for {seconds:.3} s, since {since}: {doing}; {advice}"
    )
}

/// The frames of the program that are shown in short.
const SHORT: usize = 8;

/// On a machine under load, the thread may not run just when it is to stand still: that is tried
/// for so long, while the thread is stuck, with these pauses.
const PATIENCE_NS: u64 = 3_000_000_000;
const PAUSE_NS: u64 = 2_000_000;

/// The stack of the thread, as far as it is wanted.
struct Stack {
    most: usize,
    caught: Option<StoppedStack>,
}

impl Stack {
    /// Reads the stack of the virtual thread that is on a platform thread, which stands still for
    /// some microseconds. Tries it again while `is_there` says that it is still that thread.
    fn of(holder: u32, trace: Trace, is_there: impl Fn() -> bool) -> Stack {
        let most = match trace {
            Trace::Line => 0,
            Trace::Short => SHORT,
            Trace::Full => usize::MAX,
        };
        let end = Deadline::after_nanos(PATIENCE_NS);
        let again = || {
            sys::nap(PAUSE_NS);
            is_there() && !end.has_passed()
        };
        let caught = (most > 0)
            .then(|| stop_for_read::stack_of(holder, again))
            .flatten();
        Stack { most, caught }
    }

    /// Appends it, one frame per line. Finding the names may take a while.
    fn describe(self, text: &mut String) {
        let mut lines = Vec::new();
        match self.caught {
            // Writing to memory does not fail.
            Some(caught) => drop(caught.write(self.most, "    ", &mut lines)),
            None if self.most > 0 => lines.extend(b"    (its stack could not be read)\n"),
            None => return,
        }
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(&lines));
    }
}

/// Returns the time of day, in UTC, `ago` ns ago.
fn time_of_day(ago: u64) -> String {
    let millis = sys::clock(libc::CLOCK_REALTIME).saturating_sub(ago) / 1_000_000;
    let [hours, minutes] = [millis / 3_600_000 % 24, millis / 60_000 % 60];
    let [seconds, millis] = [millis / 1000 % 60, millis % 1000];
    format!("{hours:02}:{minutes:02}:{seconds:02}.{millis:03} UTC")
}

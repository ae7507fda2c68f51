//! Stuck carriers: which thread holds one, since when, where, and its stack. And exhausted spare
//! carriers: all carriers are stuck, and other threads wait.
//!
//! The monitor has found the carrier stuck some time ago, and the carrier may go on while the
//! reporter looks at it. So the reporter compares its processor's count of switches before and
//! after, and reports nothing if the count has changed. Nothing here stops the carrier for longer
//! than its stack is read.

use super::report::Report;
use super::settings::Trace;
use crate::dump::{ThreadStack, stack_on};
use crate::findings::Kind;
use core::ffi::{CStr, c_void};
use core::sync::atomic::Ordering::Relaxed;
use pirn_rt::arch::legacy;
use pirn_rt::sched::os_thread::{self, Blocked, InKernel};
use pirn_rt::sched::runtime::Runtime;
use pirn_rt::sched::stuck::Episode;
use pirn_rt::stack::region;
use pirn_rt::sys;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::identity::Label;
use pirn_rt::vthread::record::Core;
use pirn_rt::vthread::table;
use std::fmt::{Display, Write};

/// Explains what a processor is stuck in, if it still is.
pub(super) fn explain_stuck(runtime: &Runtime, episode: &Episode, trace: Trace) -> Option<Report> {
    let is_there = || {
        let processor = runtime.processors.used().get(episode.processor);
        let tick = processor.map(|processor| processor.tick.load(Relaxed)); // Relaxed: compared only.
        tick == Some(episode.tick)
    };
    let place = match episode.blocked {
        // A thread without a place runs again, or is stopped.
        true => Some(place(episode.holder).filter(|_| is_asleep(episode.holder))?),
        false => None,
    };
    let name = os_thread::name(episode.holder).unwrap_or_default();
    let thread = mounted(place.as_ref(), &name);
    let stack = Stack::of(episode.holder, trace, is_there);
    if !is_there() {
        return None;
    }
    let mut text = stuck_text(episode, thread.as_ref(), &name, place.as_ref(), trace);
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
    // If it is blocked in the kernel, its stack pointer tells its slot.
    let slot = place.and_then(|place| region::slot_at(place.stack_pointer));
    if let Some(slot) = slot {
        return table::look(slot, Label::of);
    }
    let carrier: u32 = name.strip_prefix("pirn-carrier-")?.parse().ok()?;
    let is_there = |core: &Core| core.carrier_number() == Some(carrier);
    let mut found = None;
    region::for_each_open(|slot| {
        if found.is_none() {
            let label = table::look(slot, |core| is_there(core).then(|| Label::of(core)));
            found = label.flatten();
        }
    });
    found
}

fn stuck_text(
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
            describe(place),
            origin(place.from)
        ),
        None => "computing where it cannot be preempted (inside libc, in no_preemption, or with \
                 PIRN_PREEMPT=0)"
            .into(),
    };
    let advice = match (place.is_some(), trace) {
        (true, Trace::Line) => {
            "make it through libc's functions, which Pirn sees, or on a platform thread \
             (docs/limits.md: \"System calls made without libc\", and \"Scheduling\" for functions of \
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

/// How long the reporter retries to read the stack of a thread that is stuck. On a machine under
/// load, the kernel may not run the thread at the moment when it must stand still to be read.
const PATIENCE_NS: u64 = 3_000_000_000;
/// The pause between two attempts.
const PAUSE_NS: u64 = 2_000_000;

/// The stack of a stuck thread, for its report.
struct Stack {
    /// The maximum number of the program's frames that the report shows.
    most: usize,
    caught: Option<ThreadStack>,
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
        let caught = (most > 0).then(|| stack_on(holder, again)).flatten();
        Stack { most, caught }
    }

    /// Appends the stack, one frame per line. Finding the names may take a while.
    fn describe(self, text: &mut String) {
        let frames = match self.caught {
            Some(stack) => stack.frames(),
            None if self.most > 0 => vec!["(its stack could not be read)".into()],
            None => return,
        };
        // Writing to a string does not fail.
        let mut line = |line: &dyn Display| {
            let _ = write!(text, "\n    {line}");
        };
        frames.iter().take(self.most).for_each(|frame| line(frame));
        if frames.len() > self.most {
            line(&format_args!("and {} more", frames.len() - self.most));
        }
        text.push('\n');
    }
}

/// Returns the time of day, in UTC, `ago` ns ago.
fn time_of_day(ago: u64) -> String {
    let millis = sys::clock(libc::CLOCK_REALTIME).saturating_sub(ago) / 1_000_000;
    let [hours, minutes] = [millis / 3_600_000 % 24, millis / 60_000 % 60];
    let [seconds, millis] = [millis / 1000 % 60, millis % 1000];
    format!("{hours:02}:{minutes:02}:{seconds:02}.{millis:03} UTC")
}

/// Explains that no spare carrier could be added for `wanting` ns.
pub(super) fn explain_exhausted(runtime: &Runtime, wanting: u64) -> Option<Report> {
    let stuck: Vec<_> = runtime.stuck.episodes().collect();
    let blocked = stuck.iter().filter(|episode| episode.blocked);
    let places: Vec<Blocked> = blocked.filter_map(|e| place(e.holder)).collect();
    if places.len() < stuck.len() && runtime.settings.spares == 0 {
        return None; // The operator has chosen that threads which compute keep the others waiting.
    }
    let text = exhausted_text(stuck.len(), &places, wanting, &Spares::of(runtime));
    Some(Report::new(Kind::SparesExhausted, (), text))
}

/// The number of spare carriers in use, and the maximum.
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
fn exhausted_text(count: usize, places: &[Blocked], wanting: u64, spares: &Spares) -> String {
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
    let call = |place: &Blocked| (place.call, place.from);
    let number = |place: &Blocked| places.iter().filter(|it| call(it) == call(place)).count();
    // Writing to a string does not fail.
    let _ = match places.iter().max_by_key(|place| number(place)) {
        Some(place) => write!(
            text,
            ", {} of them in {}, called from {}",
            number(place),
            name(place.call),
            origin(place.from)
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

/// Returns where a thread of this process is blocked, if it is, and the kernel says so.
pub(super) fn place(id: u32) -> Option<Blocked> {
    match os_thread::in_kernel(id)? {
        InKernel::Running => None,
        InKernel::Blocked(blocked) => Some(blocked),
    }
}

/// Returns the call in words, with its descriptor if it has one.
pub(super) fn describe(blocked: &Blocked) -> String {
    let mut text = name(blocked.call);
    if blocked.call.is_some_and(takes_descriptor) {
        let fd = blocked.first as i32;
        // Writing to a string does not fail.
        let _ = write!(text, " on descriptor {fd}");
        // Whatever a path contains, it stays on one line.
        if let Ok(target) = std::fs::read_link(format!("/proc/self/fd/{fd}")) {
            let _ = write!(text, " ({})", target.to_string_lossy().escape_debug());
        }
    }
    text
}

/// Returns the object that an address is in, and the function or the offset in it.
pub(super) fn origin(address: usize) -> String {
    // SAFETY: all zeros is a valid `Dl_info`; dladdr takes any address.
    let info = unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(address as *const c_void, &mut info);
        info
    };
    let text = |pointer: *const libc::c_char| {
        // SAFETY: dladdr gives strings of the loaded object, or null.
        (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy())
    };
    let Some(object) = text(info.dli_fname) else {
        return format!("{address:#x}");
    };
    match text(info.dli_sname) {
        Some(function) => format!("{function} in {object}"),
        None => format!("{object}+{:#x}", address - info.dli_fbase as usize),
    }
}

/// The system calls that may block, and whether their first argument is a descriptor.
const CALLS: [(i64, &str, bool); 26] = [
    (libc::SYS_accept, "accept", true),
    (libc::SYS_accept4, "accept4", true),
    (libc::SYS_clock_nanosleep, "clock_nanosleep", false),
    (libc::SYS_connect, "connect", true),
    (libc::SYS_epoll_pwait, "epoll_pwait", true),
    (libc::SYS_epoll_pwait2, "epoll_pwait2", true),
    (legacy::EPOLL_WAIT, "epoll_wait", true),
    (libc::SYS_fcntl, "fcntl", true),
    (libc::SYS_flock, "flock", true),
    (libc::SYS_fsync, "fsync", true),
    (libc::SYS_futex, "futex", false),
    (libc::SYS_io_uring_enter, "io_uring_enter", true),
    (libc::SYS_nanosleep, "nanosleep", false),
    (libc::SYS_openat, "openat", false),
    (legacy::POLL, "poll", false),
    (libc::SYS_ppoll, "ppoll", false),
    (libc::SYS_pselect6, "pselect6", false),
    (libc::SYS_read, "read", true),
    (libc::SYS_readv, "readv", true),
    (libc::SYS_recvfrom, "recvfrom", true),
    (libc::SYS_recvmsg, "recvmsg", true),
    (libc::SYS_sendmsg, "sendmsg", true),
    (libc::SYS_sendto, "sendto", true),
    (libc::SYS_wait4, "wait4", false),
    (libc::SYS_write, "write", true),
    (libc::SYS_writev, "writev", true),
];

fn takes_descriptor(call: i64) -> bool {
    CALLS.iter().any(|&(number, _, fd)| number == call && fd)
}

/// Returns the name of a system call that may block.
pub(super) fn name(call: Option<i64>) -> String {
    match call {
        None => "a page fault".into(),
        Some(call) => match CALLS.iter().find(|(number, ..)| *number == call) {
            Some((_, name, _)) => (*name).into(),
            None => format!("the system call {call}"),
        },
    }
}

#[cfg(test)]
mod tests;

//! The OS thread that stands for virtual threads where the kernel must know one that lasts: as the
//! owner of robust mutexes that other processes share, and as the target of timers whose signals
//! are for one thread (`SIGEV_THREAD_ID`), as profilers make them. It is started when it is first
//! needed.
//!
//! Such a timer is made for the stand-in, with a signal and a value of the runtime's; the stand-in
//! waits for the signal, and sends the program's on:
//!
//! ```text
//!   program   timer_create(signal S, value V, virtual thread T)
//!   kernel    a timer for the stand-in, with the signal of preemption and the value K
//!   ENTRIES   K: S, V, T
//!   stand-in  takes the signal, looks K up, sends S with V to T
//! ```
//!
//! Carriers do not block the signal of preemption. So no such signal for the process stays pending,
//! which the stand-in could take. If the stand-in takes one that is not a timer's, it sends it back
//! to the process.

use crate::identity::{self, Whose};
use crate::registry::interposed;
use crate::signals::{delivery, process_wide, sending};
use crate::{simulated, virtual_thread};
use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use libc::{clockid_t, pid_t, sigevent, siginfo_t, sigval, timer_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::arch;
use pirn_rt::glibc::symbols::real;
use pirn_rt::lock::Lock;
use pirn_rt::sanitizer::valgrind;
use pirn_rt::sched::preempt;
use pirn_rt::stack::Slot;
use pirn_rt::sys::{self, Errno, SignalInfo, call};
use pirn_rt::vthread::signals::bit;
use pirn_rt::vthread::{Core, start_helper, table};

interposed! {
    family "Timers that signal a thread" for Scaling;

    Own by hand {
        timer_create: "with `SIGEV_THREAD_ID`, by a helper", timer_delete,
    }
}

/// See the module's documentation.
#[derive(Clone, Copy)]
pub(crate) struct StandIn {
    /// The kernel's id.
    pub(crate) id: u32,
    /// Its thread pointer.
    pub(crate) tp: usize,
}

/// The id of the stand-in, or one of these.
static ID: AtomicU32 = AtomicU32::new(NONE);
const NONE: u32 = 0;
const STARTING: u32 = u32::MAX;
static TP: AtomicUsize = AtomicUsize::new(0);

/// A timer for a virtual thread.
struct Entry {
    key: usize,
    /// As libc or the kernel calls it.
    timer: usize,
    signal: c_int,
    value: usize,
    thread: Slot,
    /// What tells the thread from the next one in its slot.
    number: u64,
}

static ENTRIES: Lock<Vec<Entry>> = Lock::new(Vec::new());
static KEYS: AtomicUsize = AtomicUsize::new(1);

/// The key of the timer whose signal the helper is about to send on; 0: none.
static PASSING: AtomicUsize = AtomicUsize::new(0);

/// Begins anew, in the child of a fork, which has neither the thread nor the timers.
pub(crate) fn after_fork() {
    ID.store(NONE, SeqCst);
    PASSING.store(0, SeqCst);
    // SAFETY: the threads that may have held it are gone.
    unsafe { ENTRIES.renew(Vec::new()) };
}

/// Returns the stand-in.
///
/// # Errors
/// `EAGAIN`: there is no memory, or no OS thread, for the stand-in.
pub(crate) fn get() -> Result<StandIn, Errno> {
    let mut round = 0;
    loop {
        match ID.compare_exchange(NONE, STARTING, SeqCst, SeqCst) {
            Ok(_) if start_helper("pirn-stand-in", 64 << 10, run).is_err() => {
                ID.store(NONE, SeqCst);
                return Err(Errno(libc::EAGAIN));
            }
            Ok(_) | Err(STARTING) => sys::back_off(round),
            Err(id) => {
                let tp = TP.load(SeqCst);
                return Ok(StandIn { id, tp });
            }
        }
        round += 1;
    }
}

/// Returns the virtual thread that a timer is to signal, or `None`: the timer is the kernel's.
fn target(event: &sigevent) -> Option<Result<pid_t, Errno>> {
    let id = event.sigev_notify_thread_id;
    if event.sigev_notify != libc::SIGEV_THREAD_ID || id <= 0 {
        return None;
    }
    if !(1..=64).contains(&event.sigev_signo) {
        return None; // The kernel refuses it.
    }
    match identity::find(id) {
        Ok(Whose::Virtual(_)) => Some(Ok(id)),
        Ok(Whose::Kernels) => identity::of_own_carrier(id).map(Ok),
        Err(_) => Some(Err(Errno(libc::EINVAL))), // As the kernel has it.
    }
}

/// Makes a timer by `make`, which returns what it is called.
fn create(
    event: &sigevent,
    thread: Result<pid_t, Errno>,
    make: impl FnOnce(&mut sigevent) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let (id, helper) = (thread?, get()?);
    let number_in = |slot| identity::visit(slot, Some(id), Core::id).map(|number| (slot, number));
    let found = Slot::of_tid(id.cast_unsigned()).and_then(number_in);
    let (thread, number) = found.ok_or(Errno(libc::EINVAL))?; // As the kernel has it.
    let key = KEYS.fetch_add(1, Relaxed); // Relaxed: a number.
    let mut own = *event;
    own.sigev_notify_thread_id = helper.id.cast_signed();
    own.sigev_signo = preempt::SIGNAL;
    own.sigev_value = sigval {
        sival_ptr: core::ptr::without_provenance_mut(key),
    };
    let timer = make(&mut own)?;
    // It has not been set yet, so there is no signal.
    ENTRIES.lock().push(Entry {
        key,
        timer,
        signal: event.sigev_signo,
        value: event.sigev_value.sival_ptr.addr(),
        thread,
        number,
    });
    Ok(timer)
}

/// Forgets a timer. As natively, it sends no signal after that.
fn forget(timer: usize) {
    let mut entries = ENTRIES.lock();
    let Some(place) = entries.iter().position(|entry| entry.timer == timer) else {
        return;
    };
    let key = entries.swap_remove(place).key;
    drop(entries);
    let mut round = 0;
    while PASSING.load(SeqCst) == key {
        sys::back_off(round);
        round += 1;
    }
    if virtual_thread().is_some() {
        delivery::at_once();
    }
}

#[libc_fn]
pub unsafe fn timer_create(clock: clockid_t, event: *mut sigevent, timer: *mut timer_t) -> c_int {
    let simulated = [clock as usize, event.addr(), timer.addr()];
    if let Some(result) = simulated::call(libc::SYS_timer_create, simulated) {
        if result.is_ok() {
            let number = timer.cast::<u32>().read(); // As the kernel writes it.
            timer.write(core::ptr::without_provenance_mut(number as usize));
        }
        return sys::to_c(result) as c_int;
    }
    let make = |event: *mut sigevent| {
        real!(
            fn timer_create(clock: clockid_t, event: *mut sigevent, timer: *mut timer_t) -> c_int
        )
    };
    let Some(event) = event.as_ref() else {
        return make(event);
    };
    let Some(thread) = target(event) else {
        return make(core::ptr::from_ref(event).cast_mut());
    };
    let made = create(event, thread, |event| match make(event) {
        // SAFETY: libc has written it.
        0 => Ok(unsafe { *timer }.addr()),
        _ => Err(Errno(sys::errno())),
    });
    sys::to_c(made.map(|_| 0)) as c_int
}

#[libc_fn]
pub unsafe fn timer_delete(timer: timer_t) -> c_int {
    if let Some(result) = simulated::call(libc::SYS_timer_delete, [timer.addr()]) {
        return sys::to_c(result) as c_int;
    }
    let result = libcs!();
    if result == 0 {
        forget(timer.addr());
    }
    result
}

/// Makes or forgets a timer for a system call by number, where timers are small numbers. Returns
/// `None` if the kernel must make the call.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn by_number(number: c_long, a: [usize; 6]) -> Option<c_long> {
    let [clock, event, timer, ..] = a;
    match number {
        libc::SYS_timer_delete => {
            forget(clock); // The first argument.
            None
        }
        libc::SYS_timer_create if event != 0 => {
            // SAFETY: the caller's contract.
            let event = unsafe { &*(event as *const sigevent) };
            let made = create(event, target(event)?, |event| {
                let event = &raw mut *event;
                // SAFETY: the caller's contract.
                unsafe { call!(libc::SYS_timer_create, clock, event, timer)? };
                sys::fetch_u32(timer).map(|timer| timer as usize)
            });
            Some(sys::to_c(made.map(|_| 0)) as c_long)
        }
        _ => None,
    }
}

/// Takes the signals of timers, for ever: the code of the stand-in.
fn run() {
    valgrind::note_platform_thread();
    sys::block_only(!0);
    TP.store(arch::thread_pointer(), SeqCst);
    ID.store(sys::os_thread_id(), SeqCst);
    let (set, for_ever) = (bit(preempt::SIGNAL), 0);
    loop {
        let mut info = SignalInfo::new(0, 0, 0, 0);
        let (set, place) = (&raw const set, &raw mut info);
        // SAFETY: the kernel reads eight bytes, and writes an information.
        match unsafe { call!(libc::SYS_rt_sigtimedwait, set, place, for_ever, 8) } {
            Ok(_) => pass_on(info),
            Err(Errno(libc::EINTR)) => {}
            Err(error) => process_wide::cannot_take(error),
        }
    }
}

/// Sends the signal of the program that the signal of a timer stands for.
fn pass_on(info: SignalInfo) {
    // SAFETY: of the same size and layout.
    let as_c = |info| unsafe { core::mem::transmute::<SignalInfo, siginfo_t>(info) };
    if info.code() != libc::SI_TIMER {
        return sending::to_process(&as_c(info));
    }
    let entries = ENTRIES.lock();
    let found = entries.iter().find(|entry| entry.key == info.value());
    let found = found.map(|entry| {
        PASSING.store(entry.key, SeqCst);
        let info = info.instead(entry.signal, entry.value);
        (entry.thread, entry.number, info)
    });
    drop(entries);
    if let Some((slot, number, info)) = found {
        // It may have ended, or have no room for one more.
        let post = |thread: &Core| sending::post(thread, &as_c(info), false);
        table::visit(slot, |thread| (thread.id() == number).then(|| post(thread)));
    }
    PASSING.store(0, SeqCst);
}

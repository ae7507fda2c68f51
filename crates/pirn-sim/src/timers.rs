//! Timers of the program in virtual time: `timerfd`, `timer_create`, `setitimer`, `alarm`.
//!
//! Each timer that is set has a thread of its node, which sleeps until it is due. A simulated
//! `timerfd` is an `eventfd`, to which this thread writes the number of expirations: so reading it
//! and waiting for it are the kernel's and the runtime's own. A signal goes to the thread that has
//! made the timer. The kernel would choose one of the process.

use crate::kernel::{refuse, simulated};
use crate::{clock, world};
use core::ffi::{c_int, c_long, c_uint};
use core::ops::RangeInclusive;
use libc::{itimerspec, itimerval, pthread_t, sigevent, sigval, timer_t, timeval};
use pirn_rt::blocking::fds;
use pirn_rt::glibc::symbols::real;
use pirn_rt::lock::Lock;
use pirn_rt::sys::{self, SysResult, call};
use pirn_rt::time;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What happens when a timer is due.
#[derive(Clone, Copy)]
enum Action {
    Nothing,
    /// The number of expirations is written here.
    Write(c_int),
    /// A thread gets a signal with a value.
    Signal(pthread_t, c_int, usize),
    /// A new thread calls a function with a value.
    Call(extern "C" fn(sigval), usize),
}

struct Timer {
    node: u32,
    clock: c_int,
    action: Action,
    setting: Mutex<Setting>,
    changed: Condvar,
}

#[derive(Default)]
struct Setting {
    /// When it is due; 0: it is not set.
    due: u64,
    interval: u64,
    has_thread: bool,
    gone: bool,
}

/// What names a timer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Descriptor(c_int),
    Number(usize),
    /// The timer of `setitimer` and `alarm`, of a node.
    Alarm(u32),
}

static TIMERS: Lock<BTreeMap<Key, Arc<Timer>>> = Lock::new(BTreeMap::new());

/// Above the numbers of the kernel, and below the addresses by which glibc calls some timers.
const FIRST_NUMBER: usize = 1 << 20;

fn find(key: Key) -> Option<Arc<Timer>> {
    TIMERS.lock().get(&key).cloned()
}

/// Returns whether there is a `timerfd`.
pub(crate) fn are_used() -> bool {
    let is_descriptor = |key: &Key| matches!(key, Key::Descriptor(_));
    TIMERS.lock().keys().any(is_descriptor)
}

/// Ends a run.
pub(crate) fn end() {
    forget(|_, _| true);
}

/// Forgets the timers of a node, whose process has ended.
pub(crate) fn crash(node: u32) {
    forget(|_, timer| timer.node == node);
}

/// Forgets timers, whose threads never go on. Closes their descriptors.
fn forget(which: impl Fn(&Key, &Timer) -> bool) {
    let mut gone = Vec::new();
    TIMERS.lock().retain(|key, timer| {
        let goes = which(key, timer);
        if goes {
            if let Key::Descriptor(fd) = key {
                gone.push(*fd);
            }
            if let Action::Write(fd) = timer.action {
                gone.push(fd);
            }
        }
        !goes
    });
    gone.sort_unstable();
    gone.dedup(); // A duplicate's timer is the same.
    for fd in gone {
        let _ = fds::close(fd);
    }
}

/// Notes a duplicate of a descriptor.
pub(crate) fn duplicated(fd: c_int, new: c_int) {
    if let Some(timer) = find(Key::Descriptor(fd)) {
        TIMERS.lock().insert(Key::Descriptor(new), timer);
    }
}

/// Notes that descriptors are about to be closed.
pub(crate) fn closing(fds: &RangeInclusive<c_int>) {
    let timers = TIMERS.lock();
    let closes = |key: &&Key| matches!(key, Key::Descriptor(fd) if fds.contains(fd));
    let keys: Vec<_> = timers.keys().filter(closes).copied().collect();
    drop(timers);
    for key in keys {
        delete(key);
    }
}

/// Takes away a name of a timer, which ends with the last one.
fn delete(key: Key) -> Option<()> {
    let mut timers = TIMERS.lock();
    let timer = timers.remove(&key)?;
    let has_others = timers.values().any(|it| Arc::ptr_eq(it, &timer));
    drop(timers);
    if !has_others {
        timer.lock().gone = true;
        timer.changed.notify_one();
        if let Action::Write(fd) = timer.action {
            let _ = fds::close(fd);
        }
    }
    Some(())
}

/// Makes a system call on timers. `None`: it is the kernel's.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn call(number: c_long, a: [usize; 6]) -> Option<SysResult> {
    let key = match number {
        libc::SYS_timerfd_create => return Some(create_descriptor(a[0] as c_int, a[1] as c_int)),
        // SAFETY: the caller's contract, here and below.
        libc::SYS_timer_create => return unsafe { create(a) },
        // SAFETY: the caller's contract.
        libc::SYS_setitimer => return unsafe { set_alarm(a) },
        // SAFETY: the caller's contract.
        libc::SYS_getitimer => return unsafe { get_alarm(a) },
        libc::SYS_timerfd_settime | libc::SYS_timerfd_gettime => Key::Descriptor(a[0] as c_int),
        libc::SYS_timer_settime | libc::SYS_timer_gettime | libc::SYS_timer_getoverrun => {
            Key::Number(a[0])
        }
        libc::SYS_timer_delete => return delete(Key::Number(a[0])).map(|()| Ok(0)),
        _ => return None,
    };
    let timer = find(key)?;
    Some(match number {
        libc::SYS_timer_getoverrun => Ok(0),
        libc::SYS_timerfd_settime | libc::SYS_timer_settime => {
            // `TFD_TIMER_ABSTIME` and `TIMER_ABSTIME` are 1.
            // SAFETY: the caller's contract.
            unsafe {
                timer.set(
                    a[1] & 1 != 0,
                    a[2] as *const itimerspec,
                    a[3] as *mut itimerspec,
                )
            }
        }
        _ => {
            // SAFETY: the caller's contract.
            unsafe { (a[1] as *mut itimerspec).write(timer.left()) };
            Ok(0)
        }
    })
}

fn create_descriptor(clock: c_int, flags: c_int) -> SysResult {
    // SAFETY: no pointers. Both kinds have the same flags.
    let fd = unsafe { call!(libc::SYS_eventfd2, 0, flags)? } as c_int;
    // The program may close its own, and open something else there. SAFETY: no pointers.
    let own = unsafe { call!(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, 0)? } as c_int;
    fds::created(own);
    add(Key::Descriptor(fd), clock, Action::Write(own));
    Ok(fd as usize)
}

fn add(key: Key, clock: c_int, action: Action) -> Arc<Timer> {
    let timer = Arc::new(Timer {
        node: world::own_node(),
        clock,
        action,
        setting: Mutex::default(),
        changed: Condvar::new(),
    });
    TIMERS.lock().insert(key, Arc::clone(&timer));
    timer
}

/// `timer_create`, which writes a number.
///
/// # Safety
/// As for the system call, with room for what libc writes.
unsafe fn create([clock, event, place, ..]: [usize; 6]) -> Option<SysResult> {
    // SAFETY: no arguments.
    let own = unsafe { libc::pthread_self() };
    // SAFETY: the caller's contract: null or an event.
    let event = unsafe { (event as *const sigevent).as_ref() };
    let action = match event {
        None => Action::Signal(own, libc::SIGALRM, 0),
        Some(event) => {
            let value = event.sigev_value.sival_ptr.addr();
            match event.sigev_notify {
                libc::SIGEV_NONE => Action::Nothing,
                libc::SIGEV_SIGNAL => Action::Signal(own, event.sigev_signo, value),
                libc::SIGEV_THREAD => {
                    const UNION: usize = core::mem::offset_of!(sigevent, sigev_notify_thread_id);
                    let place = core::ptr::from_ref(event).cast::<extern "C" fn(sigval)>();
                    // SAFETY: the caller's contract: the function is at this place of the union.
                    Action::Call(unsafe { place.byte_add(UNION).read() }, value)
                }
                _ => {
                    return refuse(
                        "timer_create with SIGEV_THREAD_ID in a simulation: use SIGEV_SIGNAL, \
                         in the thread that takes the signal",
                    );
                }
            }
        }
    };
    let number = {
        let timers = TIMERS.lock();
        let last = timers.range(..=Key::Number(usize::MAX)).next_back();
        match last {
            Some((Key::Number(last), _)) => last + 1,
            _ => FIRST_NUMBER,
        }
    };
    add(Key::Number(number), clock as c_int, action);
    // SAFETY: the caller's contract.
    unsafe { (place as *mut u32).write(number as u32) };
    Some(Ok(0))
}

impl Timer {
    fn lock(&self) -> MutexGuard<'_, Setting> {
        self.setting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time left, and the interval.
    fn left(&self) -> itimerspec {
        let setting = self.lock();
        let left = match setting.due {
            0 => 0,
            due => due.saturating_sub(clock::now()).max(1), // 0 is not set.
        };
        itimerspec {
            it_interval: time::timespec(setting.interval),
            it_value: time::timespec(left),
        }
    }

    /// Sets the timer.
    ///
    /// # Safety
    /// As for `timer_settime`.
    unsafe fn set(
        self: &Arc<Timer>,
        absolute: bool,
        new: *const itimerspec,
        old: *mut itimerspec,
    ) -> SysResult {
        let new = [
            sys::fetch_timespec(new.cast()),
            sys::fetch_timespec(new.cast::<libc::timespec>().wrapping_add(1)),
        ];
        let [interval, value] = [sys::nanos(&new[0]?), sys::nanos(&new[1]?)];
        let before = self.left();
        let now = clock::now();
        let due = match value {
            0 => 0,
            value if absolute => now + value.saturating_sub(time::clock(self.clock)),
            value => now.saturating_add(value),
        };
        let mut setting = self.lock();
        (setting.due, setting.interval) = (due, interval);
        let starts = due > 0 && !setting.has_thread;
        setting.has_thread |= starts;
        drop(setting);
        if let Action::Write(fd) = self.action {
            take_all(fd);
        }
        match starts {
            true => {
                let timer = Arc::clone(self);
                drop(std::thread::spawn(move || timer.run()));
            }
            false => self.changed.notify_one(),
        }
        if !old.is_null() {
            // SAFETY: the caller's contract.
            unsafe { old.write(before) };
        }
        Ok(0)
    }

    /// What the timer's thread does.
    fn run(&self) {
        let mut setting = self.lock();
        while !setting.gone {
            let now = clock::now();
            setting = match setting.due {
                0 => self.changed.wait(setting),
                due if due > now => {
                    let left = Duration::from_nanos(due - now);
                    let waited = self.changed.wait_timeout(setting, left);
                    Ok(waited.unwrap_or_else(PoisonError::into_inner).0)
                }
                due => {
                    let expirations = 1 + (now - due).checked_div(setting.interval).unwrap_or(0);
                    setting.due = match setting.interval {
                        0 => 0,
                        interval => due + expirations * interval,
                    };
                    drop(setting);
                    self.expire(expirations);
                    Ok(self.lock())
                }
            }
            .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn expire(&self, expirations: u64) {
        match self.action {
            Action::Nothing => {}
            Action::Write(fd) => {
                // SAFETY: eight bytes.
                let _ = unsafe { call!(libc::SYS_write, fd, &raw const expirations, 8) };
            }
            Action::Signal(thread, signal, value) => {
                let value = sigval {
                    sival_ptr: core::ptr::without_provenance_mut(value),
                };
                // SAFETY: a thread of this run, which may have ended. Its memory stays.
                let _ = unsafe { libc::pthread_sigqueue(thread, signal, value) };
            }
            Action::Call(function, value) => {
                let value = Value(sigval {
                    sival_ptr: core::ptr::with_exposed_provenance_mut(value),
                });
                drop(std::thread::spawn(move || {
                    let value = value;
                    function(value.0);
                }));
            }
        }
    }
}

/// What the program's function gets, which may be a pointer.
struct Value(sigval);

// SAFETY: the program passes it to a function that it lets run on any thread.
unsafe impl Send for Value {}

/// Takes the expirations that have not been read.
fn take_all(fd: c_int) {
    let mut entry = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let (mut count, now) = (0_u64, time::timespec(0));
    // SAFETY: an entry; eight bytes. No other thread reads between the calls.
    unsafe {
        if call!(libc::SYS_ppoll, &raw mut entry, 1, &raw const now, 0, 0) == Ok(1) {
            let _ = call!(libc::SYS_read, fd, &raw mut count, 8);
        }
    }
}

/// `setitimer`.
///
/// # Safety
/// As for the system call.
unsafe fn set_alarm([which, new, old, ..]: [usize; 6]) -> Option<SysResult> {
    if which as c_int != libc::ITIMER_REAL {
        return refuse(
            "setitimer of CPU time in a simulation: use ITIMER_REAL, which is in virtual time",
        );
    }
    let key = Key::Alarm(world::own_node());
    let timer = find(key).unwrap_or_else(|| {
        // SAFETY: no arguments.
        let own = unsafe { libc::pthread_self() };
        add(
            key,
            libc::CLOCK_MONOTONIC,
            Action::Signal(own, libc::SIGALRM, 0),
        )
    });
    // SAFETY: the caller's contract: null or a value.
    let new = unsafe { (new as *const itimerval).as_ref() };
    let of_micros = |it: timeval| libc::timespec {
        tv_sec: it.tv_sec,
        tv_nsec: it.tv_usec * 1000,
    };
    let new = itimerspec {
        it_interval: of_micros(new.map_or(ZERO, |it| it.it_interval)),
        it_value: of_micros(new.map_or(ZERO, |it| it.it_value)),
    };
    let before = timer.left();
    // SAFETY: a value; no room is asked for.
    let result = unsafe { timer.set(false, &raw const new, core::ptr::null_mut()) };
    if result.is_ok() && old != 0 {
        // SAFETY: the caller's contract.
        unsafe { (old as *mut itimerval).write(in_micros(before)) };
    }
    Some(result)
}

const ZERO: timeval = timeval {
    tv_sec: 0,
    tv_usec: 0,
};

fn in_micros(it: itimerspec) -> itimerval {
    let value = |it: libc::timespec| timeval {
        tv_sec: it.tv_sec,
        tv_usec: (it.tv_nsec + 999) / 1000, // What is left is not 0.
    };
    itimerval {
        it_interval: value(it.it_interval),
        it_value: value(it.it_value),
    }
}

/// `getitimer`.
///
/// # Safety
/// As for the system call.
unsafe fn get_alarm([which, place, ..]: [usize; 6]) -> Option<SysResult> {
    let timer = find(Key::Alarm(world::own_node())).filter(|_| which as c_int == libc::ITIMER_REAL);
    let left = timer.map_or(
        itimerval {
            it_interval: ZERO,
            it_value: ZERO,
        },
        |it| in_micros(it.left()),
    );
    // SAFETY: the caller's contract.
    unsafe { (place as *mut itimerval).write(left) };
    Some(Ok(0))
}

/// Defines functions that are system calls in a simulation, and libc's elsewhere.
macro_rules! calls {
    ($($name:ident($($arg:ident: $type:ty),*) = $number:ident;)*) => { $(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for libc's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            let mut args = [0; 6];
            for (place, arg) in args.iter_mut().zip([$($arg as usize),*]) {
                *place = arg;
            }
            // SAFETY: the caller's contract.
            unsafe {
                match simulated(libc::$number, args) {
                    Some(result) => sys::to_c(result) as c_int,
                    None => real!(fn $name($($arg: $type),*) -> c_int),
                }
            }
        }
    )* };
}

calls! {
    timerfd_settime(fd: c_int, flags: c_int, new: *const itimerspec, old: *mut itimerspec)
        = SYS_timerfd_settime;
    timerfd_gettime(fd: c_int, to: *mut itimerspec) = SYS_timerfd_gettime;
    timer_settime(timer: timer_t, flags: c_int, new: *const itimerspec, old: *mut itimerspec)
        = SYS_timer_settime;
    timer_gettime(timer: timer_t, to: *mut itimerspec) = SYS_timer_gettime;
    timer_getoverrun(timer: timer_t) = SYS_timer_getoverrun;
    setitimer(which: c_int, new: *const itimerval, old: *mut itimerval) = SYS_setitimer;
    getitimer(which: c_int, to: *mut itimerval) = SYS_getitimer;
}

/// `alarm`.
#[unsafe(no_mangle)]
pub extern "C" fn alarm(seconds: c_uint) -> c_uint {
    let value = timeval {
        tv_sec: seconds.into(),
        tv_usec: 0,
    };
    let new = itimerval {
        it_interval: ZERO,
        it_value: value,
    };
    let mut old = new;
    // SAFETY: values.
    unsafe { setitimer(libc::ITIMER_REAL, &raw const new, &raw mut old) };
    // As libc does: not 0 if there was one.
    let rounds = i64::from(
        old.it_value.tv_usec >= 500_000 || old.it_value.tv_sec == 0 && old.it_value.tv_usec > 0,
    );
    (old.it_value.tv_sec + rounds) as c_uint
}

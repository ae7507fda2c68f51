//! Timers of C's, clocks of CPU time, devices of random numbers and signals, by the seed.

mod common;

use common::{alike, passes};
use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, zeroed};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use core::time::Duration;
use pirn_sim::Report;
use pirn_sim::net::node;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// Runs the test with some seeds.
fn always(test: fn()) {
    (0..20).for_each(|seed| drop(passes(alike(seed, test))));
}

/// Returns the first words of the calls that were refused.
fn refused(report: &Report) -> Vec<&str> {
    let refused = report.refused.iter();
    refused
        .map(|it| it.split(" in a simulation").next().unwrap())
        .collect()
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}

fn itimerspec(value: Duration, interval: Duration) -> libc::itimerspec {
    libc::itimerspec {
        it_interval: timespec(interval),
        it_value: timespec(value),
    }
}

const HOUR: Duration = Duration::from_secs(3600);
const NEVER: Duration = Duration::ZERO;

/// Checks that a time is this one, but for what the code takes.
fn about(time: Duration, expected: Duration) {
    let latest = expected + Duration::from_millis(1);
    assert!(
        (expected..latest).contains(&time),
        "{time:?}, not {expected:?}"
    );
}

/// A `timerfd`.
struct TimerFd(c_int);

impl TimerFd {
    fn new(flags: c_int) -> TimerFd {
        // SAFETY: no pointers.
        TimerFd(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })
    }

    fn set(&self, value: Duration, interval: Duration) {
        let new = itimerspec(value, interval);
        // SAFETY: a value.
        let result = unsafe { libc::timerfd_settime(self.0, 0, &raw const new, null_mut()) };
        assert_eq!(result, 0);
    }

    fn left(&self) -> Duration {
        // SAFETY: room for the answer.
        let left = unsafe {
            let mut left: libc::itimerspec = zeroed();
            assert_eq!(libc::timerfd_gettime(self.0, &raw mut left), 0);
            left.it_value
        };
        Duration::new(left.tv_sec as u64, left.tv_nsec as u32)
    }

    /// Returns the number of expirations; `None`: none yet, for a descriptor that does not wait.
    fn read(&self) -> Option<u64> {
        let mut count = 0_u64;
        // SAFETY: eight bytes.
        let read = unsafe { libc::read(self.0, (&raw mut count).cast(), 8) };
        (read == 8).then_some(count)
    }

    fn poll(&self, timeout: c_int) -> bool {
        let mut entry = libc::pollfd {
            fd: self.0,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: an entry.
        unsafe { libc::poll(&raw mut entry, 1, timeout) == 1 }
    }
}

impl Drop for TimerFd {
    fn drop(&mut self) {
        // SAFETY: its own.
        unsafe { libc::close(self.0) };
    }
}

#[test]
fn a_timerfd_is_in_virtual_time() {
    always(|| {
        let timer = TimerFd::new(libc::TFD_CLOEXEC);
        let begin = Instant::now();
        timer.set(24 * HOUR, NEVER);
        about(24 * HOUR - timer.left(), Duration::ZERO);
        assert!(!timer.poll(1000));
        assert_eq!(timer.read(), Some(1));
        about(begin.elapsed(), 24 * HOUR);
        assert_eq!(timer.left(), NEVER);

        timer.set(HOUR, HOUR);
        thread::sleep(3 * HOUR + HOUR / 2);
        assert_eq!(timer.read(), Some(3));
        assert!(timer.poll(-1));
        assert_eq!(timer.read(), Some(1));
        about(begin.elapsed(), 28 * HOUR);
    });
}

#[test]
fn a_timerfd_that_is_set_again_forgets_what_it_was() {
    always(|| {
        let timer = TimerFd::new(libc::TFD_NONBLOCK);
        timer.set(HOUR, HOUR);
        thread::sleep(2 * HOUR);
        timer.set(HOUR, NEVER);
        assert_eq!(timer.read(), None);
        thread::sleep(HOUR / 2);
        timer.set(NEVER, NEVER);
        thread::sleep(2 * HOUR);
        assert_eq!(timer.read(), None);
        // SAFETY: no pointers.
        let other = TimerFd(unsafe { libc::dup(timer.0) });
        other.set(HOUR, NEVER);
        drop(timer);
        thread::sleep(2 * HOUR);
        assert_eq!(other.read(), Some(1));
    });
}

#[test]
fn a_timerfd_is_waited_for_with_others() {
    always(|| {
        let (first, second) = (TimerFd::new(0), TimerFd::new(0));
        second.set(2 * HOUR, NEVER);
        first.set(HOUR, NEVER);
        // SAFETY: events that are there.
        unsafe {
            let epoll = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            for timer in [&first, &second] {
                let mut event = libc::epoll_event {
                    events: (libc::EPOLLIN | libc::EPOLLONESHOT) as u32,
                    u64: timer.0 as u64,
                };
                libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, timer.0, &raw mut event);
            }
            for timer in [&first, &second] {
                let mut event: libc::epoll_event = zeroed();
                assert_eq!(libc::epoll_wait(epoll, &raw mut event, 1, -1), 1);
                let which = event.u64;
                assert_eq!(which, timer.0 as u64);
            }
            libc::close(epoll);
        }
    });
}

/// What handlers and functions of timers have counted: of one test at a time.
static COUNTED: AtomicUsize = AtomicUsize::new(0);
static VALUE: AtomicUsize = AtomicUsize::new(0);

fn counting() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn count(_: c_int) {
    COUNTED.fetch_add(1, SeqCst);
}

fn handle(signal: c_int, handler: extern "C" fn(c_int)) {
    COUNTED.store(0, SeqCst);
    // SAFETY: a handler that only counts.
    unsafe { libc::signal(signal, handler as *const c_void as usize) };
}

fn timer_create(event: &mut libc::sigevent) -> libc::timer_t {
    let mut timer = MaybeUninit::uninit();
    // SAFETY: an event, and room for the timer.
    unsafe {
        assert_eq!(
            libc::timer_create(libc::CLOCK_MONOTONIC, event, timer.as_mut_ptr()),
            0
        );
        timer.assume_init()
    }
}

fn timer_set(timer: libc::timer_t, value: Duration, interval: Duration) {
    let new = itimerspec(value, interval);
    // SAFETY: a timer and a value.
    let set = unsafe { libc::timer_settime(timer, 0, &raw const new, null_mut()) };
    assert_eq!(set, 0);
}

#[test]
fn a_timer_calls_a_function_signals_or_does_nothing() {
    let _one = counting();
    extern "C" fn function(value: libc::sigval) {
        COUNTED.fetch_add(1, SeqCst);
        VALUE.store(value.sival_ptr.addr(), SeqCst);
    }
    always(|| {
        handle(libc::SIGUSR1, count);
        // SAFETY: numbers and null pointers.
        let mut event: libc::sigevent = unsafe { zeroed() };
        event.sigev_value.sival_ptr = core::ptr::without_provenance_mut(7);
        event.sigev_notify = libc::SIGEV_THREAD;
        let union = core::mem::offset_of!(libc::sigevent, sigev_notify_thread_id);
        let place = (&raw mut event).cast::<extern "C" fn(libc::sigval)>();
        // SAFETY: the place of the function.
        unsafe { place.byte_add(union).write(function) };
        let timer = timer_create(&mut event);
        timer_set(timer, HOUR, HOUR);
        thread::sleep(4 * HOUR + HOUR / 2);
        // SAFETY: a timer.
        unsafe {
            assert_eq!(libc::timer_getoverrun(timer), 0);
            assert_eq!(libc::timer_delete(timer), 0);
        }
        thread::sleep(2 * HOUR);
        assert_eq!((COUNTED.swap(0, SeqCst), VALUE.load(SeqCst)), (4, 7));

        // SAFETY: numbers and null pointers.
        let mut event: libc::sigevent = unsafe { zeroed() };
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGUSR1;
        let begin = Instant::now();
        timer_set(timer_create(&mut event), HOUR, NEVER);
        let (day, mut left) = (timespec(24 * HOUR), timespec(NEVER));
        // SAFETY: times.
        let slept = unsafe { libc::nanosleep(&raw const day, &raw mut left) };
        assert_eq!(slept, -1);
        about(begin.elapsed(), HOUR);
        assert_eq!(COUNTED.load(SeqCst), 1);

        event.sigev_notify = libc::SIGEV_NONE;
        let timer = timer_create(&mut event);
        timer_set(timer, HOUR, NEVER);
        thread::sleep(HOUR / 4);
        // SAFETY: a timer, and room for the answer.
        let left = unsafe {
            let mut left: libc::itimerspec = zeroed();
            assert_eq!(libc::timer_gettime(timer, &raw mut left), 0);
            left.it_value
        };
        let left = Duration::new(left.tv_sec as u64, left.tv_nsec as u32);
        about(HOUR - left, HOUR / 4);
    });
}

#[test]
fn alarms_come_in_virtual_time() {
    let _one = counting();
    always(|| {
        handle(libc::SIGALRM, count);
        // SAFETY: values.
        unsafe {
            assert_eq!(libc::alarm(3600), 0);
            thread::sleep(HOUR / 2);
            assert_eq!(libc::alarm(60), 1800);
            let begin = Instant::now();
            assert_eq!(libc::sleep(100), 40);
            about(begin.elapsed(), Duration::from_secs(60));
            let each = |seconds| libc::timeval {
                tv_sec: seconds,
                tv_usec: 0,
            };
            let mut timer = libc::itimerval {
                it_interval: each(10),
                it_value: each(10),
            };
            setitimer(libc::ITIMER_REAL, &raw const timer, null_mut());
            thread::sleep(Duration::from_secs(35)); // `std` goes on after each.
            getitimer(libc::ITIMER_REAL, &raw mut timer);
            assert_eq!(timer.it_value.tv_sec, 4);
            assert_eq!(libc::alarm(0), 5);
        }
        assert_eq!(COUNTED.load(SeqCst), 4);
    });
}

unsafe extern "C" {
    fn setitimer(which: c_int, new: *const libc::itimerval, old: *mut libc::itimerval) -> c_int;
    fn getitimer(which: c_int, to: *mut libc::itimerval) -> c_int;
    fn arc4random() -> u32;
    fn arc4random_uniform(bound: u32) -> u32;
}

#[test]
fn clocks_of_cpu_time_are_virtual() {
    always(|| {
        let read = |clock| {
            let mut time = timespec(NEVER);
            // SAFETY: room for a time.
            assert_eq!(unsafe { libc::clock_gettime(clock, &raw mut time) }, 0);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        };
        let clocks = [
            libc::CLOCK_PROCESS_CPUTIME_ID,
            libc::CLOCK_THREAD_CPUTIME_ID,
        ];
        let before = clocks.map(read);
        thread::sleep(HOUR);
        for (clock, before) in clocks.into_iter().zip(before) {
            about(before, Duration::ZERO);
            about(read(clock) - before, HOUR);
        }
        // SAFETY: room for the answers; a time.
        unsafe {
            let mut ticks: libc::tms = zeroed();
            let now = libc::times(&raw mut ticks);
            assert_eq!(ticks.tms_utime, 360_000);
            let mut usage: libc::rusage = zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
            assert_eq!(usage.ru_utime.tv_sec, 3600);
            let hour = timespec(HOUR);
            let clock = libc::CLOCK_PROCESS_CPUTIME_ID;
            assert_eq!(
                libc::clock_nanosleep(clock, 0, &raw const hour, null_mut()),
                0
            );
            assert_eq!(libc::times(null_mut()) - now, 360_000);
        }
    });
}

#[test]
fn random_numbers_of_devices_are_by_the_seed() {
    let seen = |seed| {
        let place = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&place);
        passes(alike(seed, move || {
            let mut bytes = [0; 40];
            for (path, part) in ["/dev/urandom", "/dev/random"]
                .iter()
                .zip(bytes.chunks_mut(16))
            {
                File::open(path).unwrap().read_exact(part).unwrap();
            }
            // SAFETY: no pointers.
            unsafe {
                bytes[32..36].copy_from_slice(&arc4random().to_ne_bytes());
                bytes[36..].copy_from_slice(&arc4random_uniform(1 << 31).to_ne_bytes());
                assert!(arc4random_uniform(7) < 7);
            }
            let mut seen = seen.lock().unwrap();
            if let Some(before) = seen.last() {
                assert_eq!(before, &bytes);
            }
            seen.push(bytes);
        }));
        let seen = place.lock().unwrap();
        seen[0]
    };
    let [one, other] = [1, 2].map(seen);
    assert!((0..5).all(|part| one[part * 8..][..8] != other[part * 8..][..8]));
}

#[test]
fn signals_that_a_program_sends_itself_are_by_the_seed() {
    let _one = counting();
    always(|| {
        handle(libc::SIGUSR1, count);
        // SAFETY: no pointers; a thread that runs.
        unsafe {
            assert_eq!(libc::raise(libc::SIGUSR1), 0);
            assert_eq!(libc::kill(libc::getpid(), libc::SIGUSR1), 0);
        }
        assert_eq!(COUNTED.load(SeqCst), 2);
        let woken = Arc::new(AtomicU32::new(0));
        let sleeper = {
            let woken = Arc::clone(&woken);
            thread::spawn(move || {
                let day = timespec(24 * HOUR);
                // SAFETY: a time.
                unsafe { libc::nanosleep(&raw const day, null_mut()) };
                woken.store(1, SeqCst);
            })
        };
        let id = std::os::unix::thread::JoinHandleExt::as_pthread_t(&sleeper);
        thread::sleep(HOUR);
        // SAFETY: it has not been joined.
        unsafe { libc::pthread_kill(id, libc::SIGUSR1) };
        thread::sleep(HOUR);
        assert_eq!((COUNTED.load(SeqCst), woken.load(SeqCst)), (3, 1));
        sleeper.join().unwrap();
    });
}

#[test]
fn what_cannot_be_by_the_seed_is_refused() {
    let report = alike(1, || {
        let child = std::process::Command::new("true").output().unwrap_err();
        assert_eq!(child.kind(), ErrorKind::Unsupported);
        // SAFETY: no pointers but to values.
        unsafe {
            assert_eq!(libc::fork(), -1);
            assert_eq!(libc::system(c"true".as_ptr()), -1);
            let mut ring = [0_u8; 120];
            assert_eq!(
                libc::syscall(libc::SYS_io_uring_setup, 1, ring.as_mut_ptr()),
                -1
            );
            let timer: libc::itimerval = zeroed();
            assert_eq!(
                setitimer(libc::ITIMER_PROF, &raw const timer, null_mut()),
                -1
            );
            let mut set: libc::sigset_t = zeroed();
            libc::sigaddset(&raw mut set, libc::SIGUSR2);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, null_mut());
            assert_eq!(libc::kill(libc::getpid(), libc::SIGUSR2), -1);
            assert_eq!(create_platform(), libc::ENOSYS);
        }
    });
    let report = passes(report);
    assert_eq!(
        refused(&report),
        [
            "a child process",
            "io_uring_setup",
            "setitimer of CPU time",
            "kill of the own process",
            "a platform thread",
        ]
    );
}

/// Tries to make a platform thread.
fn create_platform() -> c_int {
    extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
        null_mut()
    }
    unsafe extern "C" {
        fn pirn_create_platform(
            thread: *mut libc::pthread_t,
            attributes: *const libc::pthread_attr_t,
            routine: extern "C" fn(*mut c_void) -> *mut c_void,
            argument: *mut c_void,
        ) -> c_int;
    }
    let mut thread = MaybeUninit::uninit();
    // SAFETY: room for the thread.
    unsafe { pirn_create_platform(thread.as_mut_ptr(), null(), nothing, null_mut()) }
}

#[test]
fn timers_of_a_node_go_with_it() {
    let _one = counting();
    always(|| {
        handle(libc::SIGUSR1, count);
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let before = open();
        let crashed = node("crashed", || {
            let timer = TimerFd::new(0);
            timer.set(HOUR, HOUR);
            loop {
                timer.read();
                COUNTED.fetch_add(1, SeqCst);
            }
        });
        thread::sleep(HOUR / 2);
        crashed.crash();
        assert_eq!(open(), before);
        let own = TimerFd::new(0);
        own.set(4 * HOUR, NEVER);
        assert_eq!(own.read(), Some(1));
        assert_eq!(COUNTED.load(SeqCst), 0);
    });
}

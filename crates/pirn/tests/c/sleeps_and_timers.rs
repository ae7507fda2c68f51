//! The C sleeps, and event and timer descriptors, on virtual threads.

use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::time::{Duration, Instant};

use crate::common::sys::{self, check, timespec};
use crate::common::{block_then, crowd, many, most_carriers, on_virtual, watched};
use pirn::thread;

const SHORT: Duration = Duration::from_millis(20);

/// Asserts that `sleep` lasts at least [`SHORT`], on many threads at once.
fn lasts(sleep: impl Fn() + Sync) {
    crowd(|_| {
        let begin = Instant::now();
        sleep();
        assert!(begin.elapsed() >= SHORT);
    });
}

/// Returns the current time of `clock`.
fn now(clock: libc::clockid_t) -> Duration {
    let mut time = timespec(Duration::ZERO);
    // SAFETY: `time` is valid for writes.
    check(unsafe { libc::clock_gettime(clock, &mut time) }).unwrap();
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[watched]
fn nanosleep_lasts() {
    lasts(|| {
        // SAFETY: the request is valid, the remainder is not wanted.
        check(unsafe { libc::nanosleep(&timespec(SHORT), ptr::null_mut()) }).unwrap();
    });
}

#[watched]
fn usleep_lasts() {
    lasts(|| {
        // SAFETY: touches no memory.
        check(unsafe { libc::usleep(SHORT.as_micros() as u32) }).unwrap();
    });
}

#[watched]
fn sleep_lasts() {
    lasts(|| {
        // SAFETY: touches no memory.
        assert_eq!(unsafe { libc::sleep(1) }, 0);
    });
}

#[watched]
fn clock_nanosleep_for_a_while() {
    for clock in [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME] {
        lasts(|| {
            // SAFETY: the request is valid, the remainder is not wanted.
            let error =
                unsafe { libc::clock_nanosleep(clock, 0, &timespec(SHORT), ptr::null_mut()) };
            assert_eq!(error, 0);
        });
    }
}

#[watched]
fn clock_nanosleep_until_a_time() {
    let sleep_until = |clock, until| {
        let (request, absolute) = (timespec(until), libc::TIMER_ABSTIME);
        // SAFETY: the request is valid; there is no remainder of an absolute sleep.
        unsafe { libc::clock_nanosleep(clock, absolute, &request, ptr::null_mut()) }
    };
    for clock in [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME] {
        lasts(|| {
            let until = now(clock) + SHORT;
            assert_eq!(sleep_until(clock, until), 0);
            assert!(now(clock) >= until);
        });
        // A time in the past ends at once.
        on_virtual(move || assert_eq!(sleep_until(clock, Duration::from_secs(1)), 0));
    }
}

#[watched]
fn bad_sleeps_are_errors() {
    on_virtual(|| {
        let mut bad = timespec(SHORT);
        bad.tv_nsec = 1_000_000_000;
        // SAFETY: the request is valid memory, though not a valid time.
        unsafe {
            assert_eq!(libc::nanosleep(&bad, ptr::null_mut()), -1);
            assert_eq!(sys::errno(), libc::EINVAL);
            let error = libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &bad, ptr::null_mut());
            assert_eq!(error, libc::EINVAL);
        }
    });
}

fn eventfd(initial: u32, flags: i32) -> OwnedFd {
    // SAFETY: touches no memory.
    sys::own(unsafe { libc::eventfd(initial, flags) }).unwrap()
}

/// Reads the eight bytes of event and timer descriptors.
fn read_count(fd: &OwnedFd) -> u64 {
    let mut count = [0; 8];
    assert_eq!(sys::read(fd.as_raw_fd(), &mut count).unwrap(), 8);
    u64::from_ne_bytes(count)
}

fn add_count(fd: &OwnedFd, count: u64) {
    assert_eq!(sys::write(fd.as_raw_fd(), &count.to_ne_bytes()).unwrap(), 8);
}

#[watched]
fn an_eventfd_collects_its_count() {
    on_virtual(|| {
        let event = eventfd(0, 0);
        std::thread::scope(|platform| {
            platform.spawn(|| add_count(&event, 3));
            assert_eq!(read_count(&event), 3);
        });
        add_count(&event, 2);
        add_count(&event, 2);
        assert_eq!(read_count(&event), 4);
    });
}

#[watched]
fn an_eventfd_semaphore_wakes_one_each() {
    let event = eventfd(0, libc::EFD_SEMAPHORE);
    block_then(
        many(),
        |_| assert_eq!(read_count(&event), 1),
        || add_count(&event, many() as u64),
    );
}

#[watched]
fn a_full_eventfd_blocks_its_writers() {
    let event = eventfd(0, 0);
    let writers = 4 * most_carriers();
    add_count(&event, u64::MAX - 1);
    block_then(
        writers,
        |_| add_count(&event, 1),
        || {
            let mut total = 0;
            let expected = u128::from(u64::MAX - 1) + writers as u128;
            while total < expected {
                total += u128::from(read_count(&event));
            }
            assert_eq!(total, expected);
        },
    );
}

#[watched]
fn a_timerfd_blocks_until_it_fires() {
    let fire_after = |interval: Duration| {
        // SAFETY: touches no memory.
        let timer = sys::own(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, 0) }).unwrap();
        let setting = libc::itimerspec {
            it_interval: timespec(interval),
            it_value: timespec(SHORT),
        };
        // SAFETY: the setting is valid, the old one is not wanted.
        check(unsafe { libc::timerfd_settime(timer.as_raw_fd(), 0, &setting, ptr::null_mut()) })
            .unwrap();
        timer
    };
    lasts(|| assert_eq!(read_count(&fire_after(Duration::ZERO)), 1));
    on_virtual(move || {
        let timer = fire_after(Duration::from_millis(1));
        let mut ticks = 0;
        while ticks < 10 {
            ticks += read_count(&timer);
            thread::yield_now();
        }
    });
}

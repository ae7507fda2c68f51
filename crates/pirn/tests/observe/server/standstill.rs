//! Whether a dump says that nothing can wake the threads: if that is so, and only then.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::sync::Mutex;
use std::time::Duration;

use pirn_dump::{CarrierState, Dump, State};

use super::bare::Program;
use super::target::{dump_of, until};
use crate::common::watched;
use pirn::thread::{self, Builder, JoinHandle};

const HOUR: Duration = Duration::from_secs(3600);

fn named(name: &str, f: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    Builder::new().name(name.into()).spawn(f).unwrap()
}

fn park() {
    loop {
        thread::park();
    }
}

/// A thread parks, and has a lock that another waits for. The main thread joins the first.
fn wait_for_ever() {
    static LOCK: Mutex<()> = Mutex::new(());
    let holder = named("holder", || {
        let _guard = LOCK.lock();
        park();
    });
    let _waiter = named("waiter", || {
        while LOCK.try_lock().is_ok() {
            thread::yield_now();
        }
        drop(LOCK.lock());
    });
    let _ = holder.join();
}

pub fn stuck() {
    wait_for_ever();
}

/// A helper of the runtime waits for the signals that the main thread blocks.
pub fn with_blocked_signals() {
    thread::spawn(|| ()).join().unwrap();
    // SAFETY: a set of our own.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
    wait_for_ever();
}

pub fn with_a_sleeper() {
    let _other = named("other", || thread::sleep(HOUR));
    wait_for_ever();
}

pub fn with_a_limit() {
    let _other = named("other", || thread::park_timeout(HOUR));
    wait_for_ever();
}

pub fn with_a_reader() {
    let (mut reader, _writer) = std::io::pipe().unwrap();
    let _other = named("other", move || {
        let _ = reader.read(&mut [0]);
    });
    wait_for_ever();
}

pub fn with_a_runner() {
    let _other = named("other", || {
        loop {
            std::hint::spin_loop();
        }
    });
    wait_for_ever();
}

fn pause() {
    loop {
        // SAFETY: no arguments.
        unsafe { libc::pause() };
    }
}

pub fn with_a_platform_thread() {
    let _other = std::thread::spawn(pause);
    wait_for_ever();
}

pub fn with_a_carriers_platform_thread() {
    // It inherits the carrier's name.
    let starts = thread::spawn(|| drop(std::thread::spawn(pause)));
    starts.join().unwrap();
    wait_for_ever();
}

/// Returns what a dump says of it.
fn said(dump: &Dump) -> Option<&pirn_dump::Finding> {
    let mut findings = dump.findings.iter();
    findings.find(|finding| finding.kind == "nothing-can-wake")
}

/// Returns whether the main thread waits for a virtual one.
fn main_waits(pid: u32) -> bool {
    let call = fs::read_to_string(format!("/proc/{pid}/task/{pid}/syscall")).unwrap();
    call.starts_with(&format!("{} ", libc::SYS_futex))
}

/// Returns whether a dump has this many threads that wait, and nothing else goes on.
fn has_settled(program: &Program, dump: &Dump, waiting: u64) -> bool {
    let asleep = dump.carriers.iter();
    let mut asleep = asleep.map(|carrier| carrier.state == CarrierState::Sleeping);
    dump.totals.by_state[State::Waiting as usize] == waiting
        && (dump.totals.by_state[State::Running as usize] == 1 || asleep.all(|it| it))
        && main_waits(program.pid())
}

#[watched]
fn threads_that_nothing_can_wake_are_found() {
    for (name, parallelism) in [
        ("stuck", "1"),
        ("stuck", "2"),
        ("stuck, and signals blocked", "2"),
    ] {
        let program = Program::start(name, &[("PIRN_PARALLELISM", parallelism)]);
        let dump = until(|| {
            let dump = dump_of(program.pid());
            said(&dump).is_some().then_some(dump)
        });
        let finding = said(&dump).unwrap();
        assert!(finding.text.contains(" 2 virtual threads"), "{finding:?}");
        let ids = BTreeSet::from_iter(dump.threads.iter().map(|thread| thread.id));
        assert_eq!(BTreeSet::from_iter(finding.threads.iter().copied()), ids);
        assert!(has_settled(&program, &dump, 2), "{dump:?}");
    }
}

#[watched]
fn threads_that_something_may_wake_are_not() {
    const LOOKS: usize = 5;
    for (name, waiting) in [
        ("with a sleeper", 3),
        ("with a limit", 3),
        ("with a reader", 3),
        ("with a runner", 2),
        ("with a platform thread", 2),
        ("with a carrier's platform thread", 2),
    ] {
        let program = Program::start(name, &[("PIRN_PARALLELISM", "2")]);
        let mut looks = 0;
        while looks < LOOKS {
            let dump = dump_of(program.pid());
            assert!(said(&dump).is_none(), "{name}: {:?}", said(&dump));
            looks += usize::from(has_settled(&program, &dump, waiting));
        }
    }
}

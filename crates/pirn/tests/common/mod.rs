//! The common code of the behavioural tests: the watchdog, crowds of threads, temporary folders.

#![allow(dead_code, unused_imports)] // each test binary uses only a part of it

pub mod checked_alloc;
pub mod child;
pub mod float;
pub mod kernel;
pub mod leaf;
pub mod memory;
pub mod processor;
pub mod registers;
pub mod stack;
pub mod sys;

use std::cell::Cell;
use std::env;
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use pirn::thread::{self, Thread, ThreadState};

pub use pirn_testing::{Watchdog, fewer, patient, watched};

/// With `--cfg pirn_checked_alloc` every test binary checks what is freed.
#[cfg(pirn_checked_alloc)]
#[global_allocator]
static CHECKED: checked_alloc::CheckedAlloc = checked_alloc::CheckedAlloc;

/// The number of platform threads that join a [`crowd`] of virtual ones.
pub const PLATFORM: usize = 4;

thread_local! {
    /// The test that this thread runs, as the test harness calls it.
    static TEST: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// A test that runs.
pub struct Watched {
    _watchdog: Watchdog,
}

/// Starts the watchdog of a test; `#[watched]` calls this.
///
/// A test's child process has half of the time, so that the child is the one that reports.
pub fn watch(path: &'static str, mut limit: Duration) -> Watched {
    let (_crate, test) = path.split_once("::").unwrap_or(("", path));
    TEST.set(Some(test));
    if child::is_here() {
        // A child that should abort must not leave a core file behind.
        sys::no_core_file();
        limit /= 2;
    }
    let hung = move || {
        report(&format!("watchdog: `{test}` hung for {limit:?}"));
        report_tasks();
        report_threads();
    };
    Watched {
        _watchdog: Watchdog::start(limit, hung),
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        TEST.set(None);
    }
}

/// Writes a line to the real standard error, past the capture of the test harness.
pub fn report(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The beginning of a line that says why a test, or the rest of it, is not run.
const SKIPPED: &str = "skipped: ";

/// Says why a test, or the rest of it, is not run.
pub fn skip(reason: &str) {
    report(&format!("{SKIPPED}{reason}"));
}

/// Reports what each OS thread of this process waits for in the kernel.
fn report_tasks() {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return;
    };
    for task in tasks.flatten() {
        let of = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let (number, name, place) = (task.file_name(), of("comm"), of("wchan"));
        report(&format!("  task {number:?} {} in {place}", name.trim_end()));
    }
}

/// Reports what each virtual thread of this process waits for. That is done by another thread, and
/// not waited for long: what hangs may be what dumps need.
fn report_threads() {
    #[cfg(feature = "dump")]
    {
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            report(&pirn::dump::take().to_string());
            let _ = done.send(()); // The wait below may be over.
        });
        let _ = is_done.recv_timeout(patient(Duration::from_secs(20)));
    }
}

/// Returns a setting of the runtime, if the environment has it.
fn setting(variable: &str) -> Option<usize> {
    let text = env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is not a number")),
    )
}

/// Returns the number of carriers this process will have, without spare ones.
pub fn carriers() -> usize {
    let machine = || thread::available_parallelism().map_or(1, usize::from);
    setting("PIRN_PARALLELISM").unwrap_or_else(machine)
}

/// Returns the maximum number of carriers of this process, which it may reach while others are
/// stuck. A test in which no thread may keep its carrier blocks more threads than that.
pub fn most_carriers() -> usize {
    carriers() + setting("PIRN_SPARE_CARRIERS").unwrap_or(16)
}

/// Returns a number of virtual threads that outnumber the carriers 100 to 1.
pub fn many() -> usize {
    100 * carriers()
}

/// Returns `many()`, but at most an eighth of the descriptors this process may open.
pub fn many_files() -> usize {
    many().min(sys::raise_file_limit() / 8)
}

/// Returns bytes that depend on their place, so that a hole, a swap or a repetition shows.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i / 251 + i) as u8).collect()
}

/// Sets a flag when it is dropped, also by a panic.
pub struct SetAtEnd<'a>(pub &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs `f` on a virtual thread. Returns its value or resumes its panic.
pub fn on_virtual<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    thread::spawn(f)
        .join()
        .unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

/// Waits until `is_so` holds.
pub fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::yield_now();
    }
}

/// Returns whether a thread is parked, if it is a virtual one: the state of others is unknown.
pub fn waits(thread: &Thread) -> bool {
    matches!(thread.state(), None | Some(ThreadState::Waiting))
}

/// Waits until a thread is parked, if it is a virtual one.
pub fn until_it_waits(thread: &Thread) {
    until(|| waits(thread));
}

/// Lets another thread interrupt the running thread when it waits.
pub fn interrupt_me_soon() {
    let me = thread::current();
    std::thread::spawn(move || {
        until_it_waits(&me);
        me.interrupt();
    });
}

/// Runs `f(i)` on `many()` virtual threads at once.
pub fn virtual_crowd(f: impl Fn(usize) + Sync) {
    let f = &f;
    sys::raise_file_limit(); // each may open a few descriptors
    thread::scope(|scope| {
        for i in 0..many() {
            scope.spawn(move || f(i));
        }
    });
}

/// Runs `f(i)` on `many()` virtual and [`PLATFORM`] platform threads at once.
pub fn crowd(f: impl Fn(usize) + Sync) {
    let f = &f;
    std::thread::scope(|scope| {
        for i in 0..PLATFORM {
            scope.spawn(move || f(many() + i));
        }
        virtual_crowd(f);
    });
}

/// Returns how many threads a [`crowd`] has.
pub fn crowd_size() -> usize {
    many() + PLATFORM
}

/// Starts `block(i)` on `count` virtual threads and, once all of them have begun, runs
/// `release` on one more.
///
/// With `count` above [`most_carriers`] this hangs if `block` keeps its carrier: the last
/// threads would never begin.
pub fn block_then(count: usize, block: impl Fn(usize) + Sync, release: impl FnOnce() + Send) {
    let block = &block;
    let (here, arrived) = mpsc::channel();
    thread::scope(|scope| {
        for i in 0..count {
            let here = here.clone();
            scope.spawn(move || {
                here.send(()).unwrap();
                block(i);
            });
        }
        scope.spawn(move || {
            for _ in 0..count {
                arrived.recv().unwrap();
            }
            release();
        });
    });
}

/// Lets one platform and many virtual threads read `source` to its end while `sink` is written
/// to, and asserts that each byte came out exactly once.
pub fn each_byte_once<R, W>(source: &R, mut sink: W)
where
    R: Sync,
    for<'a> &'a R: Read,
    W: Write + Send,
{
    let counts: Vec<AtomicUsize> = (0..256).map(|_| AtomicUsize::new(0)).collect();
    let read = || {
        let (mut source, mut buffer) = (source, [0; 16]);
        loop {
            let count = source.read(&mut buffer).unwrap();
            if count == 0 {
                return;
            }
            for byte in &buffer[..count] {
                counts[usize::from(*byte)].fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    std::thread::scope(|platform| {
        platform.spawn(read);
        thread::scope(|scope| {
            for _ in 0..many() {
                scope.spawn(read);
            }
            scope.spawn(move || {
                let every: Vec<u8> = (0..=255).collect();
                for _ in 0..200 {
                    sink.write_all(&every).unwrap();
                    thread::yield_now();
                }
            });
        });
    });
    assert!(
        counts
            .iter()
            .all(|count| count.load(Ordering::SeqCst) == 200)
    );
}

/// Leaves the carrier, likely to come back on another one.
pub fn migrate() {
    thread::yield_now();
    thread::sleep(Duration::from_micros(100));
}

/// Returns some pipes, for as many threads to wait on.
pub fn pipes(count: usize) -> Vec<(PipeReader, PipeWriter)> {
    (0..count).map(|_| io::pipe().unwrap()).collect()
}

/// Writes one byte into each pipe.
pub fn write_to_all(pipes: &[(PipeReader, PipeWriter)]) {
    for (_, writer) in pipes {
        let mut writer = writer;
        writer.write_all(b"x").unwrap();
    }
}

/// A small generator of pseudo-random numbers (xorshift), the same for the same seed.
pub struct Rng(u64);

impl Rng {
    /// Returns the generator for `seed`.
    pub fn new(seed: u64) -> Rng {
        // Spreads neighbouring seeds; `| 1` because xorshift stays at zero for ever.
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    /// Returns a duration below `limit` microseconds.
    pub fn micros(&mut self, limit: u64) -> Duration {
        Duration::from_micros(self.below(limit))
    }
}

/// A folder of its own, removed at the end.
pub struct TempDir(PathBuf);

impl TempDir {
    /// Makes an empty folder whose name starts with `label`.
    pub fn new(label: &str) -> TempDir {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let name = format!("{label}-{}-{number}", process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of `name` in this folder.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

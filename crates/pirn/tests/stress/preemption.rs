//! Stress of preemption: threads that compute in 13 ways, and check what they compute, beside
//! others that wait for each other. With slices as short as they can be, a thread is interrupted at
//! any instruction sooner or later.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use super::threads::{length, limit};
use crate::common::processor::in_many_steps;
use crate::common::registers::registers_stay;
use crate::common::{Rng, TempDir, child, watched};
use pirn::thread;

/// Threads of each kind.
const EACH: usize = 2;

/// What a thread does over and over again; it is given a number that is new each time.
type Work = fn(u64);

const COMPUTING: [(&str, Work); 13] = [
    ("vectors", vectors),
    ("malloc", malloc),
    ("text", text),
    ("maps", maps),
    ("panics", panics),
    ("backtraces", backtraces),
    ("thread-locals", thread_locals),
    ("registers", registers),
    ("steps of instructions", in_many_steps),
    ("sorting", sorting),
    ("streams", streams),
    ("spawning", spawning),
    ("files", files),
];

fn vectors(number: u64) {
    let length = number % 700;
    let vector: Vec<u64> = (0..length).map(|i| i ^ number).collect();
    let copy = vector.clone();
    assert!(
        copy.iter()
            .enumerate()
            .all(|(i, &x)| x == i as u64 ^ number)
    );
}

fn malloc(number: u64) {
    let size = (number % 3000 + 1) as usize;
    // SAFETY: the memory is used within its size, and freed once.
    unsafe {
        let memory = libc::malloc(size).cast::<u8>();
        memory.write_bytes(number as u8, size);
        let memory = libc::realloc(memory.cast(), 2 * size).cast::<u8>();
        let bytes = std::slice::from_raw_parts(memory, size);
        assert!(bytes.iter().all(|&byte| byte == number as u8));
        libc::free(memory.cast());
    }
}

fn text(number: u64) {
    let text = format!("{number} {:?} {:.3}", Some(number), number as f64 / 8.0);
    let first = text.split(' ').next().unwrap();
    assert_eq!(first.parse(), Ok(number));
}

fn maps(number: u64) {
    let mut map = HashMap::new();
    for i in 0..number % 100 {
        map.insert(i, (i ^ number).to_string());
    }
    for i in 0..number % 100 {
        assert_eq!(map.remove(&i), Some((i ^ number).to_string()));
    }
}

fn panics(number: u64) {
    struct Sets<'a>(&'a Cell<u64>);
    impl Drop for Sets<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let dropped = Cell::new(0);
    let result = panic::catch_unwind(panic::AssertUnwindSafe(|| {
        let _one = Sets(&dropped);
        let _two = Sets(&dropped);
        panic::resume_unwind(Box::new(number));
    }));
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&number));
    assert_eq!(dropped.get(), 2);
}

fn backtraces(number: u64) {
    if number.is_multiple_of(8) {
        let text = Backtrace::force_capture().to_string();
        assert!(text.contains("backtraces"), "{text}");
    }
}

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
}

fn thread_locals(number: u64) {
    let errno = || {
        // SAFETY: the thread's own.
        unsafe { &mut *libc::__errno_location() }
    };
    OWN.set(number);
    *errno() = number as c_int;
    for _ in 0..1000 {
        assert_eq!(OWN.get(), number);
        assert_eq!(*errno(), number as c_int);
    }
}

fn registers(number: u64) {
    assert!(registers_stay(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
}

fn sorting(number: u64) {
    unsafe extern "C" fn compare(a: *const c_void, b: *const c_void) -> c_int {
        // SAFETY: `qsort` passes pointers to elements.
        unsafe { *a.cast::<u64>() }.cmp(unsafe { &*b.cast::<u64>() }) as c_int
    }
    let mut rng = Rng::new(number);
    let mut numbers: Vec<u64> = (0..200).map(|_| rng.below(1 << 40)).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    // SAFETY: the vector's elements, and a function that compares two of them.
    unsafe { libc::qsort(numbers.as_mut_ptr().cast(), numbers.len(), 8, Some(compare)) };
    assert_eq!(numbers, sorted);
}

fn streams(number: u64) {
    let mut text = [0u8; 64];
    let format = c"%llu %s %.2f".as_ptr();
    // SAFETY: the arguments are of the types that the format says, and the buffer is long enough.
    let text = unsafe {
        libc::snprintf(
            text.as_mut_ptr().cast(),
            64,
            format,
            number,
            c"x".as_ptr(),
            0.5f64,
        );
        CStr::from_ptr(text.as_ptr().cast())
    };
    assert_eq!(text.to_str().unwrap(), format!("{number} x 0.50"));
    // SAFETY: a string and a stream of the C library, which all threads share.
    unsafe {
        libc::fflush(std::ptr::null_mut());
    }
}

fn spawning(number: u64) {
    struct Counts(&'static AtomicU64);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    static ENDED: AtomicU64 = AtomicU64::new(0);
    thread_local!(static END: Counts = const { Counts(&ENDED) });
    let before = ENDED.load(Relaxed);
    let thread = thread::spawn(move || END.with(|_| number));
    assert_eq!(thread.join().unwrap(), number);
    assert!(ENDED.load(Relaxed) > before);
}

fn files(number: u64) {
    thread_local!(static FOLDER: TempDir = TempDir::new("soak"));
    FOLDER.with(|folder| {
        let path = folder.join("file");
        fs::write(&path, number.to_string()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), number.to_string());
    });
}

/// What threads do that wait for each other: it counts its rounds, until it is over.
type Game = fn(&AtomicBool, &AtomicUsize);

const WAITING: [Game; 4] = [mutex_and_condition, channels, sockets, sleepers];

fn mutex_and_condition(over: &AtomicBool, rounds: &AtomicUsize) {
    let (turn, changed) = (Mutex::new(0u64), Condvar::new());
    thread::scope(|scope| {
        for parity in 0..2 {
            let (turn, changed) = (&turn, &changed);
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    let guard = turn.lock().unwrap();
                    let mine = |turn: &mut u64| *turn % 2 != parity && !over.load(Relaxed);
                    let short = Duration::from_millis(20);
                    let (mut guard, _) = changed.wait_timeout_while(guard, short, mine).unwrap();
                    if *guard % 2 == parity {
                        *guard += 1;
                        rounds.fetch_add(1, Relaxed);
                        changed.notify_one();
                    }
                }
            });
        }
    });
}

fn channels(over: &AtomicBool, rounds: &AtomicUsize) {
    let (ask, asked) = mpsc::sync_channel(0);
    let (answer, answered) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || asked.iter().for_each(|n: u64| answer.send(n + 1).unwrap()));
        let mut number = 0;
        while !over.load(Relaxed) {
            ask.send(number).unwrap();
            assert_eq!(answered.recv(), Ok(number + 1));
            number += 1;
            rounds.fetch_add(1, Relaxed);
        }
        drop(ask);
    });
}

fn sockets(over: &AtomicBool, rounds: &AtomicUsize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut there, _) = listener.accept().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut buffer = [0; 8];
            while there.read_exact(&mut buffer).is_ok() {
                there.write_all(&buffer).unwrap();
            }
        });
        let mut number = 0u64;
        while !over.load(Relaxed) {
            here.write_all(&number.to_ne_bytes()).unwrap();
            let mut answer = [0; 8];
            here.read_exact(&mut answer).unwrap();
            assert_eq!(u64::from_ne_bytes(answer), number);
            number += 1;
            rounds.fetch_add(1, Relaxed);
        }
        drop(here);
    });
}

fn sleepers(over: &AtomicBool, rounds: &AtomicUsize) {
    while !over.load(Relaxed) {
        let begin = Instant::now();
        thread::sleep(Duration::from_millis(1));
        assert!(begin.elapsed() >= Duration::from_millis(1));
        rounds.fetch_add(1, Relaxed);
    }
}

#[watched(limit = 3 * limit())]
fn threads_that_compute_are_right_whenever_they_are_interrupted() {
    let setting = |count| [("PIRN_PARALLELISM", count), ("PIRN_PREEMPT", "100us")];
    child::isolated_each(["1", "2", "8"].map(setting), || {
        let over = AtomicBool::new(false);
        let computed = COMPUTING.map(|_| AtomicU64::new(0));
        let waited = WAITING.map(|_| AtomicUsize::new(0));
        thread::scope(|scope| {
            for ((_, work), count) in COMPUTING.iter().zip(&computed) {
                for _ in 0..EACH {
                    scope.spawn(|| {
                        while !over.load(Relaxed) {
                            work(count.fetch_add(1, Relaxed));
                        }
                    });
                }
            }
            for (work, count) in WAITING.iter().zip(&waited) {
                scope.spawn(|| work(&over, count));
            }
            thread::sleep(length());
            let all = || {
                computed.iter().all(|count| count.load(Relaxed) > 1)
                    && waited.iter().all(|count| count.load(Relaxed) > 1)
            };
            while !all() {
                thread::sleep(Duration::from_millis(1));
            }
            over.store(true, Relaxed);
        });
        let names = COMPUTING.map(|(name, _)| name);
        println!("rounds: {names:?} {computed:?}; waiting: {waited:?}");
    });
}

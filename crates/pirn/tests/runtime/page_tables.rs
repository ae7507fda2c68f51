//! Page tables are given back when threads have ended.

use crate::common::memory::has_guard_markers;
use crate::common::stack::sink;
use crate::common::{child, fewer, patient, skip, watched};
use pirn::thread;
use std::fs;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Some 900 MB and, with stacks of 256 KiB, 100 MB of page tables.
const THREADS: usize = 200_000;

/// Returns the size of this process's page tables, in KiB.
fn page_tables() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmPTE:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.unwrap().parse().unwrap()
}

/// Returns whether the kernel frees the page tables of memory that is given back (Linux 6.14, with
/// `CONFIG_PT_RECLAIM`).
fn kernel_gives_them_back() -> bool {
    const TABLES: usize = 64;
    const SPAN: usize = 2 << 20;
    // SAFETY: a mapping of its own, touched and unmapped here.
    unsafe {
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        let memory = libc::mmap(ptr::null_mut(), TABLES * SPAN, access, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        libc::madvise(memory, TABLES * SPAN, libc::MADV_NOHUGEPAGE);
        for i in 0..TABLES {
            memory.cast::<u8>().add(i * SPAN).write_volatile(1);
        }
        let peak = page_tables();
        libc::madvise(memory, TABLES * SPAN, libc::MADV_DONTNEED);
        let left = page_tables();
        libc::munmap(memory, TABLES * SPAN);
        left + TABLES * 2 < peak
    }
}

/// Returns the page tables when `threads` threads are parked, and lets these end.
fn peak_with(threads: usize) -> usize {
    static PARKED: AtomicUsize = AtomicUsize::new(0);
    PARKED.store(0, Ordering::Relaxed);
    let spawn = |_| {
        thread::spawn(|| {
            PARKED.fetch_add(1, Ordering::Relaxed);
            thread::park();
        })
    };
    let handles = Vec::from_iter((0..threads).map(spawn));
    while PARKED.load(Ordering::Relaxed) < threads {
        std::thread::sleep(Duration::from_millis(10));
    }
    let peak = page_tables();
    // In no order of addresses.
    for i in 0..threads {
        handles[i * 7919 % threads].thread().unpark();
    }
    for handle in handles {
        handle.join().unwrap();
    }
    peak
}

#[watched]
fn of_200_000_ended_threads_less_than_two_percent_is_left() {
    child::isolated(&[("PIRN_STACK_SIZE", "256K")], || {
        if !kernel_gives_them_back() {
            return skip("this kernel keeps page tables (no PT_RECLAIM, Linux 6.14)");
        }
        if !has_guard_markers() {
            return skip("without guard markers there are mappings for 32,000 threads only");
        }
        let threads = fewer(THREADS);
        let peak = peak_with(threads);
        assert!(peak > threads / 2, "{peak} KiB are less than 0.5 KiB each");
        // Carriers give memory back after they have been idle for a second.
        let start = Instant::now();
        while page_tables() * 50 >= peak {
            let left = page_tables();
            let waited = start.elapsed();
            assert!(
                waited < patient(Duration::from_secs(60)),
                "{left} of {peak} KiB are left after {waited:?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        println!("{} of {peak} KiB are left", page_tables());
        // The stacks are as good as new.
        peak_with(2000);
    });
}

#[watched]
fn stacks_that_were_given_back_overflow_as_ever() {
    if child::is_here() {
        let before = page_tables();
        let peak = peak_with(3000);
        while kernel_gives_them_back() && page_tables() >= (before + peak) / 2 {
            std::thread::sleep(Duration::from_millis(10));
        }
        // More than are ever kept open.
        let handles = Vec::from_iter((0..1000).map(|_| thread::spawn(thread::park)));
        let builder = thread::Builder::new().name("heddle".into());
        let _ = builder.spawn(|| sink(0)).unwrap().join();
        drop(handles);
        return;
    }
    let output = child::run(&[("PIRN_STACK_SIZE", "256K")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("'heddle' has overflowed its stack"),
        "{}",
        child::report(&output)
    );
}

/// There are no guard markers in locked memory.
#[watched]
fn stacks_in_locked_memory_have_guards() {
    if child::is_here() {
        let before = page_tables();
        let peak = peak_with(3000);
        // Some have been given back, with their markers; most have never been used.
        while kernel_gives_them_back() && page_tables() >= (before + peak) / 2 {
            std::thread::sleep(Duration::from_millis(10));
        }
        // SAFETY: locks the process's own memory, page by page as it is touched.
        if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT) } != 0 {
            println!(
                "has overflowed its stack: {}",
                std::io::Error::last_os_error()
            );
            return skip("may not lock memory");
        }
        let handles = Vec::from_iter((0..5000).map(|_| thread::spawn(thread::park)));
        let builder = thread::Builder::new().name("heddle".into());
        let _ = builder.spawn(|| sink(0)).unwrap().join();
        drop(handles);
        return;
    }
    let output = child::run(&[("PIRN_STACK_SIZE", "256K")]);
    let texts = [output.stdout.as_slice(), &output.stderr].concat();
    assert!(
        String::from_utf8_lossy(&texts).contains("has overflowed its stack"),
        "{}",
        child::report(&output)
    );
}

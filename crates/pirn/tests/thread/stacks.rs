//! Stacks: their size, their overflow, backtraces on them, and the floating-point control state
//! that goes with them.

use std::backtrace::Backtrace;
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;
use std::time::Duration;

use crate::common::float::Control;
use crate::common::stack::{dive, own_stack, sink};
use crate::common::{child, crowd, on_virtual, sys, virtual_crowd, watched};
use pirn::thread::{self, Builder};

/// Asserts that a child ended as after an overflow of the stack of `name`.
fn assert_overflow(output: &Output, name: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.signal(),
        Some(libc::SIGABRT),
        "{}",
        child::report(output)
    );
    assert!(text.contains(name), "{text}");
    assert!(text.contains("overflow"), "{text}");
}

#[watched]
fn an_overflow_is_reported_by_name() {
    if child::is_here() {
        let builder = Builder::new().name("ravelled bobbin".into());
        let _ = builder.spawn(|| sink(0)).unwrap().join();
        return;
    }
    assert_overflow(&child::run(&[]), "ravelled bobbin");
}

#[watched]
fn an_overflow_after_migration_is_reported_too() {
    if child::is_here() {
        virtual_crowd(|i| {
            thread::yield_now();
            thread::sleep(Duration::from_millis(1));
            if i == 50 {
                let builder = Builder::new().name("fifty".into());
                let _ = builder.spawn(|| sink(0)).unwrap().join();
            }
            thread::park();
        });
        return;
    }
    assert_overflow(&child::run(&[]), "fifty");
}

#[watched]
fn an_overflow_of_a_platform_thread_is_reported_as_ever() {
    if child::is_here() {
        on_virtual(|| ()); // the runtime is up, with its own handlers if it has any
        let builder = std::thread::Builder::new().name("plain".into());
        let _ = builder.spawn(|| sink(0)).unwrap().join();
        return;
    }
    assert_overflow(&child::run(&[]), "plain");
}

#[watched]
fn a_wild_access_is_no_overflow() {
    if child::is_here() {
        on_virtual(|| {
            let wild = black_box(64_usize) as *const u8;
            // SAFETY: it does not hold, and that is the point: nothing is mapped there.
            black_box(unsafe { wild.read_volatile() });
        });
        return;
    }
    let output = child::run(&[]);
    assert_eq!(
        output.status.signal(),
        Some(libc::SIGSEGV),
        "{}",
        child::report(&output)
    );
    assert!(!String::from_utf8_lossy(&output.stderr).contains("overflow"));
}

#[watched]
fn the_default_stack_is_deep_enough() {
    crowd(|_| assert!(dive(100 << 10) >= 100 << 10));
}

#[watched]
fn stack_size_is_honoured() {
    for kib in [64, 256, 1024, 8192, 65_536] {
        let use_bytes = (kib << 10) / 2;
        let builder = Builder::new().stack_size(kib << 10);
        let handle = builder.spawn(move || dive(use_bytes)).unwrap();
        assert!(handle.join().unwrap() >= use_bytes);
    }
}

#[watched]
fn stack_size_is_exact_to_the_page() {
    for bytes in [64 << 10, 100_000, 300 << 10, 3 << 20, (5 << 20) + 1] {
        let builder = Builder::new().stack_size(bytes);
        let [size, left] = builder.spawn(own_stack).unwrap().join().unwrap();
        assert_eq!(size, bytes.next_multiple_of(sys::page_size()));
        // The page at the end and the thread-local data, or what of them there is.
        let most = (8 << 10) + sys::page_size();
        assert!(left <= size && left > size - most, "{left} of {size}");
    }
}

#[watched]
fn an_overflow_of_an_exact_size_is_reported_with_it() {
    if child::is_here() {
        let builder = Builder::new().name("treadle".into()).stack_size(300 << 10);
        let dived = builder.spawn(|| dive(280 << 10)).unwrap().join().unwrap();
        assert!(dived >= 280 << 10);
        let builder = Builder::new().name("treadle".into()).stack_size(300 << 10);
        let _ = builder.spawn(|| dive(301 << 10)).unwrap().join();
        return;
    }
    let output = child::run(&[]);
    assert_overflow(&output, "treadle");
    let kib = (300_usize << 10).next_multiple_of(sys::page_size()) >> 10;
    let said = format!("stack size {kib} KiB");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&said));
}

#[watched]
fn a_tiny_stack_size_is_rounded_up() {
    for bytes in [0, 1, 4096, 10_000] {
        let builder = Builder::new().stack_size(bytes);
        assert_eq!(
            builder.spawn(|| dive(4096) / 4096).unwrap().join().unwrap(),
            1
        );
    }
}

#[watched]
fn sizes_live_side_by_side() {
    thread::scope(|scope| {
        for i in 0..crate::common::many() {
            let size = [32, 128, 512, 2048][i % 4] << 10;
            let builder = Builder::new().stack_size(size);
            let handle = builder.spawn_scoped(scope, move || dive(size / 2));
            drop(handle.unwrap());
        }
    });
}

#[watched]
fn an_impossible_stack_size_is_an_error() {
    let builder = Builder::new().stack_size(1 << 60);
    assert!(builder.spawn(|| ()).is_err());
    // And nothing else is harmed.
    assert_eq!(on_virtual(|| 1), 1);
}

#[watched]
fn the_default_size_comes_from_the_environment() {
    child::isolated(&[("PIRN_STACK_SIZE", "1048576")], || {
        on_virtual(|| assert!(dive(800 << 10) >= 800 << 10));
    });
}

#[watched]
fn a_used_stack_is_clean_for_the_next() {
    // Deep, then shallow, repeatedly: stacks are reused.
    for round in 0..50 {
        virtual_crowd(|i| {
            let bytes = if (i + round) % 7 == 0 { 120 << 10 } else { 1 };
            dive(bytes);
        });
    }
}

#[inline(never)]
fn warp_beam() -> String {
    thread::yield_now();
    let trace = Backtrace::force_capture().to_string();
    black_box(&trace);
    trace
}

#[watched]
fn a_backtrace_ends_at_the_entry() {
    #[inline(never)]
    fn nested(depth: u32) -> String {
        let trace = if depth == 0 {
            warp_beam()
        } else {
            nested(depth - 1)
        };
        black_box(trace)
    }
    let trace = on_virtual(|| nested(10));
    assert!(trace.contains("warp_beam"), "{trace}");
    assert_eq!(trace.matches("nested").count(), 11, "{trace}");
    // The closure, whose name depends on whether it is inlined.
    let of_closure = "a_backtrace_ends_at_the_entry";
    assert!(trace.contains(of_closure), "{trace}");
    assert!(trace.lines().count() < 200, "{trace}");
}

#[watched]
fn many_backtraces_at_once() {
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| assert!(warp_beam().contains("warp_beam")));
        }
    });
}

#[watched]
fn rounding_modes_are_per_virtual_thread() {
    crowd(|i| {
        let own = Control::rounding(i % 4);
        own.set();
        for _ in 0..10 {
            thread::yield_now();
            assert_eq!(Control::get(), own);
        }
        thread::sleep(Duration::from_millis(1));
        assert_eq!(Control::get(), own);
        Control::DEFAULT.set();
    });
}

#[watched]
fn a_rounding_mode_ends_with_its_thread() {
    for _ in 0..20 {
        virtual_crowd(|i| {
            assert_eq!(Control::get(), Control::DEFAULT);
            if i % 2 == 0 {
                Control::rounding(3).set();
                thread::yield_now();
            }
        });
    }
}

//! Threads that run, are blocked in the kernel, or have been preempted.

use super::{Read, depth_in, descend};
use crate::common::{carriers, child, leaf, skip, sys, watched};
use pirn::thread;
use pirn_dump::{CarrierState, State, Thread};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

static OVER: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn compute() {
    while !OVER.load(Relaxed) {
        std::hint::spin_loop();
    }
}

/// Computes in a function that has no frame.
fn frameless() {
    leaf::spin(&OVER);
}

/// Makes dumps until in one of them all threads are as `is` says. A thread that moves while it is
/// looked at may need another look.
fn until(is: impl Fn(&Read) -> bool) -> Read {
    loop {
        let read = Read::now();
        if is(&read) {
            return read;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the depth of a thread that is in [`compute`] or [`leaf::spin`], if its whole stack was
/// read.
fn computes(read: &Read, thread: &Thread) -> Option<usize> {
    let functions = read.functions(thread)?;
    let inside = |name: &String| name.ends_with("::compute") || name.ends_with("::spin");
    functions.iter().any(inside).then(|| depth_in(&functions))
}

#[watched(alone)]
fn a_thread_that_computes_has_its_stack() {
    has_its_stack_in(compute);
}

/// Where the processor signs return addresses, its caller has signed its own.
#[watched(alone)]
fn a_thread_in_a_function_without_a_frame_has_its_stack() {
    has_its_stack_in(frameless);
}

fn has_its_stack_in(mut function: fn()) {
    let thread = thread::Builder::new().name("computes".into());
    let thread = thread.spawn(move || descend(7, &mut function)).unwrap();
    let seen = |read: &Read| {
        let mut threads = read.dump.threads.iter();
        threads.any(|it| it.state == State::Running && computes(read, it).is_some())
    };
    let read = until(seen);
    let seen = read.named("computes");
    assert_eq!(computes(&read, seen), Some(7));
    assert!(read.dump.stacks[seen.stack.unwrap() as usize].exact_first);
    let carrier = read.dump.carriers.iter();
    let carrier = carrier
        .clone()
        .find(|it| it.thread == Some(seen.id))
        .unwrap();
    assert_eq!(Some(carrier.number), seen.carrier);
    assert!(matches!(
        carrier.state,
        CarrierState::Running | CarrierState::Stuck
    ));
    assert_ne!(carrier.tid, 0);
    OVER.store(true, Relaxed);
    thread.join().unwrap();
}

/// Two threads share a carrier: one of them has always been preempted.
#[watched]
fn a_preempted_thread_has_its_stack() {
    child::isolated(
        &[("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")],
        || {
            let threads: Vec<_> = [(3, compute as fn()), (5, frameless)]
                .map(|(depth, mut function)| thread::spawn(move || descend(depth, &mut function)))
                .into_iter()
                .collect();
            let read = until(|read| {
                let mut all = read.dump.threads.iter();
                let runnable = all.clone().filter(|it| it.state == State::Runnable);
                // One that has not run yet has no stack, and is not listed.
                all.len() == 2
                    && runnable.count() == 1
                    && all.all(|it| computes(read, it).is_some())
            });
            let mut depths: Vec<_> = read
                .dump
                .threads
                .iter()
                .map(|it| computes(&read, it))
                .collect();
            depths.sort_unstable();
            assert_eq!(depths, [Some(3), Some(5)]);
            let stacks = &read.dump.stacks;
            assert!(
                stacks
                    .iter()
                    .all(|stack| stack.exact_first && stack.runtime_frames == 0)
            );
            OVER.store(true, Relaxed);
            threads.into_iter().for_each(|it| it.join().unwrap());
        },
    );
}

#[inline(never)]
fn read_unseen(fd: i32) -> isize {
    let mut byte = 0u8;
    sys::inline(libc::SYS_read, fd as usize, (&raw mut byte).addr(), 1, 0, 0)
}

#[inline(never)]
fn nap_unseen() -> isize {
    let time = sys::timespec(Duration::from_millis(400));
    sys::inline(libc::SYS_nanosleep, (&raw const time).addr(), 0, 0, 0, 0)
}

/// System calls that the runtime does not see block the carrier. No dump disturbs them.
#[watched(alone)]
fn a_thread_that_is_blocked_in_the_kernel_is_not_disturbed() {
    if !pirn_testing::kernel_tells_calls() {
        return skip("the kernel knows the emulator's system calls, not this program's");
    }
    let (reader, mut writer) = std::io::pipe().unwrap();
    let fd = reader.as_raw_fd();
    let reads = thread::Builder::new().name("reads".into());
    let reads = reads.spawn(move || read_unseen(fd)).unwrap();
    let naps = thread::Builder::new().name("naps".into());
    let naps = naps.spawn(nap_unseen).unwrap();
    until(|read| {
        let functions = |name| {
            let mut threads = read.dump.threads.iter();
            let named = threads.find(|it| it.name.as_deref() == Some(name));
            named.and_then(|it| read.functions(it)).unwrap_or_default()
        };
        let reads = functions(&b"reads"[..]);
        reads.iter().any(|name| name.ends_with("read_unseen"))
    });
    for _ in 0..20 {
        Read::now();
    }
    assert_eq!(naps.join().unwrap(), 0, "no EINTR");
    writer.write_all(b"x").unwrap();
    assert_eq!(reads.join().unwrap(), 1, "no EINTR");
}

/// A thread that yields all the time is found in one of the states, and its stack is right if it
/// was read.
///
/// There are several per carrier: a single one is off its stack most of the time, on a busy machine
/// always, as its carrier offers the CPU to other processes when no other virtual thread is ready.
#[watched(alone)]
fn threads_that_yield_are_told_truthfully() {
    let threads: Vec<_> = (0..4 * carriers())
        .map(|depth| {
            let yields = || {
                while !OVER.load(Relaxed) {
                    thread::yield_now();
                }
            };
            let builder = thread::Builder::new().name(format!("{depth}"));
            builder
                .spawn(move || descend(depth, &mut { yields }))
                .unwrap()
        })
        .collect();
    let mut whole = 0;
    while whole < 3 {
        let read = Read::now();
        for thread in &read.dump.threads {
            assert!(
                matches!(thread.state, State::Runnable | State::Running),
                "{thread:?}"
            );
            let Some(functions) = read.functions(thread) else {
                continue;
            };
            if functions.iter().any(|name| name.contains("descend")) {
                let name = std::str::from_utf8(thread.name.as_ref().unwrap()).unwrap();
                let depth: usize = name.parse().unwrap();
                let found = depth_in(&functions);
                // If it runs, it may be between two calls on its way in or out.
                let way = thread.state == State::Running;
                assert!(
                    found == depth || way && found < depth,
                    "{name}: {functions:?}"
                );
                whole += usize::from(found == depth);
            }
        }
    }
    OVER.store(true, Relaxed);
    threads.into_iter().for_each(|it| it.join().unwrap());
}

/// More threads than a carrier's own queue has room for, all of which yield: but for one, they are
/// in queues, from which they are taken all the time.
#[watched]
fn threads_in_queues_have_their_stacks() {
    child::isolated(
        &[("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")],
        || {
            let threads: Vec<_> = (0..400)
                .map(|number| {
                    let mut yields = || {
                        while !OVER.load(Relaxed) {
                            thread::yield_now();
                        }
                    };
                    let builder = thread::Builder::new().name(format!("{number}"));
                    let descent = move || descend(number % 10, &mut yields);
                    builder.spawn(descent).unwrap()
                })
                .collect();
            until(|read| {
                let threads = &read.dump.threads;
                let runnable = threads.iter().filter(|it| it.state == State::Runnable);
                let whole = runnable.filter(|thread| {
                    let name = std::str::from_utf8(thread.name.as_ref().unwrap()).unwrap();
                    let depth = name.parse::<usize>().unwrap() % 10;
                    let functions = read.functions(thread);
                    functions.is_some_and(|functions| depth_in(&functions) == depth)
                });
                threads.len() == 400 && whole.count() >= 399
            });
            OVER.store(true, Relaxed);
            threads.into_iter().for_each(|it| it.join().unwrap());
        },
    );
}

//! The counters of `pirn::metrics` are exact, and never go down.

use crate::common::sys::{check, waitpid};
use crate::common::{child, on_virtual, watched};
use pirn::metrics::Metrics;
use pirn::{Runnable, Scheduler, thread};
use std::fs;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

const CARRIERS: [&str; 3] = ["1", "2", "8"];

/// Returns the metrics once `done` says so of them.
fn metrics_when(done: impl Fn(&Metrics) -> bool) -> Metrics {
    loop {
        let metrics = pirn::metrics::snapshot();
        if done(&metrics) {
            return metrics;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[watched]
fn carriers_have_the_numbers_that_their_threads_have_in_their_names() {
    child::with_carriers(&["2"], || {
        // Both wake, and each takes whichever processor is free: at some time not its first.
        let mut differed = false;
        while !differed {
            let nap = || thread::spawn(|| thread::sleep(Duration::from_micros(200)));
            let naps = Vec::from_iter((0..20).map(|_| nap()));
            for carrier in on_virtual(pirn::metrics::snapshot).carriers() {
                let Some(tid) = carrier.tid else { continue };
                let name = fs::read_to_string(format!("/proc/self/task/{tid}/comm")).unwrap();
                if let Some(number) = name.trim_end().strip_prefix("pirn-carrier-") {
                    assert_eq!(number, carrier.number.to_string());
                    differed |= carrier.number != carrier.processor;
                }
            }
            naps.into_iter().for_each(|nap| nap.join().unwrap());
        }
    });
}

/// Returns the metrics once no thread is left, and all carriers sleep: then all is accounted for.
fn metrics_at_rest() -> Metrics {
    metrics_when(|metrics| {
        let asleep = |carrier: &pirn::metrics::Carrier| carrier.tid.is_none();
        metrics["started"] == metrics["ended"] && metrics.carriers().iter().all(asleep)
    })
}

/// Threads that park, are woken, sleep, wait for a lock, yield, are interrupted, and panic. Returns
/// how many there were, the yields, and those that panicked.
fn storm(rounds: usize) -> (u64, u64, u64) {
    const YIELDS: u64 = 3;
    let lock = Arc::new(Mutex::new(0));
    let mut handles = Vec::new();
    for i in 0..rounds {
        let lock = Arc::clone(&lock);
        handles.push(thread::spawn(move || {
            (0..YIELDS).for_each(|_| thread::yield_now());
            *lock.lock().unwrap() += 1;
            thread::sleep(Duration::from_micros(1 + i as u64 % 50));
            thread::park();
            if i % 10 == 0 {
                std::panic::resume_unwind(Box::new("one of ten"));
            }
        }));
    }
    handles.iter().for_each(|handle| handle.thread().unpark());
    let results = handles.into_iter().map(|handle| handle.join());
    let panicked = results.filter(Result::is_err).count();
    (rounds as u64, rounds as u64 * YIELDS, panicked as u64)
}

#[watched]
fn counters_add_up_after_a_storm() {
    child::with_carriers(&CARRIERS, || {
        let counts = [500, 1, 2000].map(|rounds| thread::spawn(move || storm(rounds)));
        let (mut threads, mut yields, mut panicked) = (counts.len() as u64, 0, 0);
        for storm in counts {
            let (some, yielded, failed) = storm.join().unwrap();
            (threads, yields, panicked) = (threads + some, yields + yielded, panicked + failed);
        }
        let metrics = metrics_at_rest();
        assert_eq!(metrics["started"], threads);
        assert_eq!((metrics["panicked"], panicked), (251, 251));
        assert_eq!(metrics.sum("threads"), 0);
        assert_eq!(metrics.sum("parks"), metrics["wakes"]);
        // Each thread was mounted once at its start, and once after each time that it was left.
        let left = metrics["wakes"] + yields + metrics["preemptions"];
        assert_eq!(metrics["mounts"], metrics["started"] + left, "{metrics:?}");
        assert_eq!((metrics["stack_slots.used"], metrics["run_queue"]), (0, 0));
        let of_carriers: u64 = metrics
            .carriers()
            .iter()
            .filter_map(|carrier| carrier.get("mounts"))
            .sum();
        assert!(of_carriers <= metrics["mounts"] && of_carriers > 0);
        assert!(metrics.schedule_latency().count() > 0);
        assert!(
            metrics.schedule_latency().count()
                <= (metrics["started"] + metrics["wakes"]) / 64 * 2 + 64
        );
    });
}

/// Asserts that no counter is lower in `now` than in `before`.
fn assert_later(before: &Metrics, now: &Metrics) {
    let gauges = [
        "threads",
        "carrier_states",
        "run_queue",
        "memory",
        "spare_carriers",
    ];
    let more = [
        "offload_threads",
        "timers",
        "descriptors",
        "scopes",
        "stack_slots",
    ];
    for ((name, part, before), (.., now)) in before.iter().zip(now.iter()) {
        let is_counter = !gauges.contains(&name) && !more.contains(&name);
        let text = format!("{name}.{part} went from {before} to {now}");
        assert!(before <= now || !is_counter, "{text}");
    }
    assert!(before.schedule_latency().count() <= now.schedule_latency().count());
}

#[watched]
fn counters_never_go_down_and_fit_together_while_threads_run() {
    child::with_carriers(&CARRIERS, || {
        let done = Arc::new(AtomicBool::new(false));
        let storms = Vec::from_iter((0..4).map(|_| {
            let done = Arc::clone(&done);
            thread::spawn(move || {
                while !done.load(SeqCst) {
                    storm(100);
                }
            })
        }));
        let mut before = pirn::metrics::snapshot();
        for _ in 0..100 {
            let now = pirn::metrics::snapshot();
            assert_later(&before, &now);
            assert!(now["ended"] <= now["started"]);
            assert!(now["wakes"] <= now.sum("parks"));
            assert_eq!(now.sum("threads"), now["started"] - now["ended"]);
            before = now;
        }
        done.store(true, SeqCst);
        storms.into_iter().for_each(|storm| storm.join().unwrap());
    });
}

#[watched]
fn threads_are_counted_by_state() {
    child::isolated(
        &[("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")],
        || {
            let parked = Vec::from_iter((0..10).map(|_| thread::spawn(thread::park)));
            let go_on = Arc::new(AtomicBool::new(false));
            let spins = {
                let go_on = Arc::clone(&go_on);
                thread::spawn(move || {
                    thread::no_preemption(|| {
                        while !go_on.load(SeqCst) {
                            std::hint::spin_loop();
                        }
                    });
                })
            };
            // The one carrier is taken, so these stay what they are.
            let states =
                |m: &Metrics| (m["threads.waiting"], m["threads.running"], m["threads.new"]);
            metrics_when(|metrics| states(metrics) == (10, 1, 0));
            let new = Vec::from_iter((0..5).map(|_| thread::spawn(|| ())));
            let metrics = metrics_when(|metrics| states(metrics) == (10, 1, 5));
            assert_eq!(metrics["threads.runnable"], 0);
            assert_eq!(metrics["run_queue"], 5);
            parked[0].thread().unpark();
            let metrics = metrics_when(|metrics| states(metrics) == (9, 1, 5));
            assert_eq!(metrics["threads.runnable"], 1);
            go_on.store(true, SeqCst);
            parked[1..]
                .iter()
                .for_each(|handle| handle.thread().unpark());
            for handle in parked.into_iter().chain(new).chain([spins]) {
                handle.join().unwrap();
            }
            assert_eq!(metrics_at_rest().sum("threads"), 0);
        },
    );
}

/// Returns how often threads were unmounted to wait for something of this kind.
fn parks(metrics: &Metrics, kind: &str) -> u64 {
    metrics[&*format!("parks.{kind}")]
}

#[watched]
fn parks_are_counted_by_what_is_awaited() {
    child::isolated(&[], || {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let waits = thread::spawn(move || {
            let mut byte = [0];
            reader.read_exact(&mut byte).unwrap_err()
        });
        metrics_when(|metrics| parks(metrics, "read") == 1);
        drop(writer);
        waits.join().unwrap();
        let parked = thread::spawn(thread::park);
        metrics_when(|metrics| parks(metrics, "park") == 1);
        parked.thread().unpark();
        parked.join().unwrap();
        let sleep = || thread::sleep(Duration::from_millis(5));
        let joins = thread::spawn(move || thread::spawn(sleep).join().unwrap());
        joins.join().unwrap();
        let metrics = metrics_at_rest();
        assert_eq!(parks(&metrics, "join"), 1);
        assert!(parks(&metrics, "sleep") >= 1);
        let (sender, receiver) = mpsc::channel::<()>();
        let receives = thread::spawn(move || receiver.recv().unwrap_err());
        metrics_when(|metrics| parks(metrics, "futex") >= 1 || parks(metrics, "park") >= 2);
        drop(sender);
        receives.join().unwrap();
        assert_eq!(metrics_at_rest()["threads.waiting"], 0);
    });
}

#[watched]
fn interrupts_and_panics_of_virtual_threads_are_counted() {
    child::isolated(&[], || {
        let interrupted = thread::spawn(thread::park_interruptible);
        interrupted.thread().interrupt();
        interrupted.join().unwrap().unwrap_err();
        let scope = pirn::scope::open_with(pirn::scope::await_all(), |scope| {
            scope.fork(|| -> Result<(), ()> { std::panic::resume_unwind(Box::new(1)) });
            scope.fork(|| Ok::<(), ()>(()));
            scope.join()?;
            Ok(())
        });
        scope.unwrap();
        // As `#[pirn::test]` and `#[pirn::main]` call their functions.
        let fails = || std::panic::resume_unwind(Box::new(3));
        let run = || pirn::__private::run_test("a::fails", fails);
        catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        // Neither is of a virtual thread.
        thread::current().interrupt();
        let _ = catch_unwind(AssertUnwindSafe(|| std::panic::resume_unwind(Box::new(2))));
        let metrics = metrics_at_rest();
        assert_eq!((metrics["interrupts"], metrics["panicked"]), (1, 2));
    });
}

/// Sends every thread to the receiver.
struct ToReceiver(Mutex<mpsc::Sender<Runnable>>);

impl Scheduler for ToReceiver {
    fn schedule(&self, thread: Runnable) {
        let _ = self.0.lock().unwrap().send(thread);
    }
}

#[watched]
fn threads_with_a_scheduler_of_the_program_are_counted_as_well() {
    child::isolated(&[], || {
        let (sender, receiver) = mpsc::channel();
        let builder = thread::Builder::new().scheduler(Arc::new(ToReceiver(Mutex::new(sender))));
        let spawned = (0..3).map(|_| builder.clone().spawn(thread::park).unwrap());
        let spawned = Vec::from_iter(spawned);
        assert_eq!(pirn::metrics::snapshot()["threads.new"], 3);
        receiver.recv().unwrap().run();
        receiver.recv().unwrap().run();
        let states = || {
            ["new", "waiting", "runnable"]
                .map(|state| pirn::metrics::snapshot()[&*format!("threads.{state}")])
        };
        assert_eq!(states(), [1, 2, 0]);
        drop(receiver.recv().unwrap()); // It never runs.
        spawned[0].thread().unpark();
        assert_eq!(states(), [0, 1, 1]);
        spawned[1].thread().unpark();
        receiver.recv().unwrap().run();
        receiver.recv().unwrap().run();
        let results = spawned.into_iter().map(|handle| handle.join().is_ok());
        assert_eq!(results.filter(|&ended_well| ended_well).count(), 2);
        let metrics = metrics_at_rest();
        assert_eq!((metrics["started"], metrics["ended"]), (3, 3));
        assert_eq!(
            (metrics.sum("parks"), metrics["wakes"], metrics["mounts"]),
            (2, 2, 4)
        );
    });
}

#[watched]
fn who_waits_for_a_carrier_is_seen_in_the_latencies() {
    const HELD: Duration = Duration::from_millis(30);
    let alone = [
        ("PIRN_PARALLELISM", "1"),
        ("PIRN_SPARE_CARRIERS", "0"),
        ("PIRN_PREEMPT", "0"),
    ];
    child::isolated(&alone, || {
        let ran = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ran);
        let holds = thread::spawn(move || {
            let started = Vec::from_iter((0..200).map(|_| {
                let count = Arc::clone(&count);
                thread::spawn(move || count.fetch_add(1, SeqCst))
            }));
            let begun = Instant::now();
            while begun.elapsed() < HELD {
                std::hint::spin_loop();
            }
            started
        });
        for handle in holds.join().unwrap() {
            handle.join().unwrap();
        }
        assert_eq!(ran.load(SeqCst), 200);
        let latency = metrics_at_rest();
        let latency = latency.schedule_latency();
        // Of the 200, three were timed; others are the joiner's and the holder's own.
        let long = latency.ranges().filter(|(end, _)| *end > HELD);
        assert_eq!(long.map(|(_, count)| count).sum::<u64>(), 3, "{latency:?}");
        assert!(latency.quantile(1.0) > Some(HELD) && latency.sum() >= 3 * HELD);
        assert!(latency.quantile(0.0) <= latency.quantile(0.5));
    });
}

#[watched]
fn the_child_of_a_fork_has_no_numbers() {
    child::isolated(&[], || {
        let parked = thread::spawn(thread::park);
        metrics_when(|metrics| metrics["threads.waiting"] == 1);
        // SAFETY: the child only reads, allocates and ends.
        let pid = check(unsafe { libc::fork() }).unwrap();
        if pid == 0 {
            let metrics = pirn::metrics::snapshot();
            let none = metrics.sum("threads") + metrics["started"] + metrics["memory.stacks"] == 0;
            let text = metrics
                .to_prometheus()
                .contains("pirn_threads{state=\"waiting\"} 0");
            // SAFETY: ends this process only.
            unsafe { libc::_exit(i32::from(!(none && text))) };
        }
        assert_eq!(waitpid(pid).unwrap(), 0);
        assert_eq!(pirn::metrics::snapshot()["threads.waiting"], 1);
        parked.thread().unpark();
        parked.join().unwrap();
    });
}

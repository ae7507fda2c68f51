//! Events: what the recorder says is compared with what the program saw.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::common::{child, watched};
use pirn::events::{self, Recorder};
use pirn::{scope, thread};
use pirn_events::{Event, Recording, Timeline, What, Why, perfetto};

const CARRIERS: [&str; 3] = ["1", "2", "8"];
/// Memory for all events of a test.
const ROOMY: usize = 8 << 20;

/// Starts a recorder, and calls `f`, which has this many threads come to their end. Returns what it
/// has recorded.
fn recorded(memory: usize, threads: usize, f: impl FnOnce()) -> (Recording, Timeline) {
    Recorder::new().memory(memory).start().unwrap();
    f();
    // A join returns before the thread has left its carrier for the last time.
    loop {
        let (recording, timeline) = kept();
        let ends = timeline.events.iter().filter(|event| match event.what {
            What::Switch { why, .. } => why == Why::Exit,
            _ => false,
        });
        if ends.count() >= threads {
            return (recording, timeline);
        }
        std::thread::yield_now();
    }
}

fn kept() -> (Recording, Timeline) {
    let mut bytes = Vec::new();
    events::write(&mut bytes).unwrap();
    let recording = Recording::read(&mut bytes.as_slice()).unwrap();
    assert!(recording.complete);
    let timeline = Timeline::new(&recording);
    (recording, timeline)
}

/// Returns the events about each thread: its own, and its mounts, spawns and wakes by others.
fn by_thread(timeline: &Timeline) -> BTreeMap<u64, Vec<Event>> {
    let mut threads: BTreeMap<u64, Vec<Event>> = BTreeMap::new();
    for event in &timeline.events {
        if event.thread != 0 {
            threads.entry(event.thread).or_default().push(*event);
        }
        if let What::Switch { next, .. } = event.what
            && next != event.thread
            && next != 0
        {
            threads.entry(next).or_default().push(*event);
        }
    }
    threads
}

/// Asserts that a thread is mounted, then leaves, and so on, on one carrier at a time, and that its
/// events are in between. Returns the number of its mounts.
fn check_order(id: u64, events: &[Event]) -> u64 {
    let (mut on, mut mounts, mut ended) = (None, 0, false);
    for event in events {
        assert!(!ended, "{id} goes on after its end: {event:?}");
        if event.thread == id {
            assert_eq!(
                on,
                Some(event.row),
                "{id} is not mounted there: {event:?} in {events:#?}"
            );
        }
        if let What::Switch { why, next } = event.what {
            if event.thread == id {
                on = None;
                ended = why == Why::Exit;
            }
            if next == id {
                assert_eq!(on, None, "{id} is mounted twice: {event:?} in {events:#?}");
                on = Some(event.row);
                mounts += 1;
            }
        }
    }
    assert!(ended, "{id} does not end");
    mounts
}

#[watched]
fn each_threads_events_are_in_order_and_none_is_missing() {
    child::isolated_each(settings(), || {
        const THREADS: u64 = 40;
        let yields = Arc::new(AtomicU64::new(0));
        let (recording, timeline) = recorded(ROOMY, THREADS as usize, || {
            let spawn = |number: u64| {
                let yields = yields.clone();
                let name = format!("yields {}", 10 * number);
                let builder = thread::Builder::new().name(name);
                let run = move || {
                    for _ in 0..10 * number {
                        thread::yield_now();
                        yields.fetch_add(1, SeqCst);
                    }
                };
                builder.spawn(run).unwrap()
            };
            let threads: Vec<_> = (0..THREADS).map(spawn).collect();
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        });
        assert_eq!(recording.lost, 0);
        let mut total = 0;
        for (id, events) in by_thread(&timeline) {
            let mounts = check_order(id, &events);
            let name = timeline.threads[&id].name.as_deref().unwrap();
            let yields: u64 = name.strip_prefix("yields ").unwrap().parse().unwrap();
            assert_eq!(mounts, yields + 1, "{name}");
            assert_eq!(timeline.threads[&id].mounts, mounts);
            total += yields;
        }
        assert_eq!(total, yields.load(SeqCst));
        assert_eq!(timeline.threads.len() as u64, THREADS);
    });
}

/// Without preemption, which would add mounts.
fn settings() -> [[(&'static str, &'static str); 2]; 3] {
    CARRIERS.map(|count| [("PIRN_PARALLELISM", count), ("PIRN_PREEMPT", "0")])
}

#[watched]
fn waits_have_their_kind_and_wakes_their_waker() {
    child::isolated_each(settings(), || {
        let mut ids = (0, 0);
        let (_, timeline) = recorded(ROOMY, 3, || {
            let (mut reader, mut writer) = io::pipe().unwrap();
            let reads = thread::spawn(move || reader.read(&mut [0]).unwrap());
            let parks = thread::spawn(thread::park);
            ids = (number(reads.thread()), number(parks.thread()));
            let unpark = parks.thread().clone();
            let wakes = thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                unpark.unpark();
                writer.write_all(b"x").unwrap();
            });
            for thread in [parks, wakes] {
                thread.join().unwrap();
            }
            assert_eq!(reads.join().unwrap(), 1);
        });
        let (reads, parks) = ids;
        let threads = by_thread(&timeline);
        let kinds = |id: u64| {
            let waits = threads[&id].iter().filter_map(|event| match event.what {
                What::Switch {
                    why: Why::Park(reason),
                    ..
                } if event.thread == id => Some(reason.kind()),
                _ => None,
            });
            waits.collect::<Vec<_>>()
        };
        assert_eq!(kinds(reads), ["read"]);
        assert_eq!(kinds(parks), ["park"]);
        let wakers = timeline
            .events
            .iter()
            .filter(|e| e.what == What::Wake(parks));
        let wakers: Vec<_> = wakers.map(|event| event.thread).collect();
        assert_eq!(wakers.len(), 1);
        assert!(wakers[0] != 0 && wakers[0] != reads && wakers[0] != parks);
    });
}

fn number(thread: &thread::Thread) -> u64 {
    let id = format!("{:?}", thread.id());
    id.trim_matches(|c: char| !c.is_ascii_digit())
        .parse()
        .unwrap()
}

#[watched]
fn scopes_and_places_are_known() {
    child::with_carriers(&CARRIERS, || {
        let (_, timeline) = recorded(ROOMY, 2, || {
            let opens = thread::spawn(|| {
                let orders = scope::Builder::new().name("orders").open(|s| {
                    let fork = s.fork(|| Ok::<_, io::Error>(1));
                    s.join()?;
                    drop(fork);
                    Ok(())
                });
                orders.unwrap();
            });
            opens.join().unwrap();
        });
        let of = |what: fn(u64) -> What| {
            let events = timeline.events.iter();
            let ids = events.filter_map(|event| match event.what {
                What::ScopeOpened(id) | What::ScopeClosed(id) if event.what == what(id) => Some(id),
                _ => None,
            });
            ids.collect::<Vec<_>>()
        };
        let opened = of(What::ScopeOpened);
        assert_eq!(opened.len(), 1);
        assert_eq!(opened, of(What::ScopeClosed));
        assert_eq!(timeline.scopes[&opened[0]].name, "orders");
        let places = timeline
            .threads
            .values()
            .map(|thread| &timeline.places[&thread.place]);
        let here = |place: &pirn_events::Place| place.file.ends_with("observe/events.rs");
        assert_eq!(places.filter(|place| here(place)).count(), 2);
    });
}

#[watched]
fn what_is_overwritten_is_counted() {
    child::isolated_each(settings(), || {
        const YIELDS: u64 = 50_000;
        let (recording, timeline) = recorded(16 << 10, 0, || {
            let spawn = |_| {
                thread::spawn(|| {
                    for _ in 0..YIELDS {
                        thread::yield_now();
                    }
                })
            };
            let threads = [0; 4].map(spawn);
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        });
        let slots: usize = recording
            .carriers
            .values()
            .flat_map(|carrier| &carrier.segments)
            .map(|segment| segment.slots.len())
            .sum();
        let kept = slots as u64;
        assert!(kept <= 1024 * recording.carriers.len() as u64);
        assert!(
            recording.lost + kept >= 4 * YIELDS,
            "{} lost, {kept} kept",
            recording.lost
        );
        for carrier in recording.carriers.values() {
            let mut next = 0;
            for segment in &carrier.segments {
                assert_eq!(
                    next + segment.lost,
                    segment.first,
                    "a gap that is not counted"
                );
                next = segment.first + segment.slots.len() as u64;
            }
        }
        assert!(timeline.events.len() <= slots + recording.outside.len());
        perfetto::write(&timeline, &mut Vec::new()).unwrap();
    });
}

#[watched]
fn a_thread_that_keeps_its_carrier_is_noticed() {
    child::isolated_each(settings(), || {
        static OVER: AtomicBool = AtomicBool::new(false);
        let (_, timeline) = recorded(ROOMY, 1, || {
            let hog = thread::spawn(|| {
                thread::no_preemption(|| {
                    while !OVER.load(SeqCst) {
                        std::hint::spin_loop();
                    }
                });
            });
            // While it runs.
            while !kept()
                .1
                .events
                .iter()
                .any(|e| matches!(e.what, What::Stuck { .. }))
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            OVER.store(true, SeqCst);
            hog.join().unwrap();
        });
        let stuck = timeline.events.iter().find_map(|event| match event.what {
            What::Stuck { tid, nanos } => Some((tid, nanos)),
            _ => None,
        });
        let (tid, nanos) = stuck.unwrap();
        assert!(nanos >= 10_000_000);
        assert!(timeline.rows.iter().any(|row| row.tid == tid));
        assert_eq!(timeline.threads.len(), 1);
    });
}

/// A recording for some time has the thread that ran all the time, and had no event.
#[watched]
fn a_recording_knows_who_was_mounted_all_the_time() {
    child::isolated_each(settings(), || {
        let over = Arc::new((AtomicBool::new(false), Barrier::new(2)));
        let hog = thread::Builder::new().name("hog".into()).spawn({
            let over = over.clone();
            move || {
                thread::no_preemption(|| {
                    over.1.wait();
                    while !over.0.load(SeqCst) {
                        std::hint::spin_loop();
                    }
                });
            }
        });
        over.1.wait();
        let mut bytes = Vec::new();
        events::record(Duration::from_millis(20), &mut bytes).unwrap();
        over.0.store(true, SeqCst);
        hog.unwrap().join().unwrap();
        let timeline = Timeline::new(&Recording::read(&mut bytes.as_slice()).unwrap());
        let names: Vec<_> = timeline
            .threads
            .values()
            .map(|t| t.name.as_deref())
            .collect();
        assert_eq!(names, [Some("hog")]);
    });
}

#[watched]
fn the_child_of_a_fork_records_nothing() {
    child::with_carriers(&["1", "2"], || {
        let (_, before) = recorded(ROOMY, 1, || {
            let forks = thread::spawn(|| {
                // SAFETY: the child makes no use of other threads' state.
                match unsafe { libc::fork() } {
                    0 => {
                        let before = kept().1.events.len();
                        std::thread::sleep(Duration::from_millis(1));
                        std::thread::yield_now();
                        let same = kept().1.events.len() == before;
                        // SAFETY: ends the process.
                        unsafe { libc::_exit(if same { 0 } else { 1 }) }
                    }
                    pid => {
                        let mut status = 0;
                        // SAFETY: the status is ours.
                        let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
                        assert_eq!((waited, status), (pid, 0));
                    }
                }
            });
            forks.join().unwrap();
        });
        thread::spawn(|| ()).join().unwrap();
        assert!(
            kept().1.events.len() > before.events.len(),
            "the parent goes on"
        );
    });
}

/// The recorder is switched on and off while threads run, and never loses track.
#[watched]
fn short_recordings_one_after_the_other_agree() {
    child::with_carriers(&CARRIERS, || {
        let over = Arc::new(AtomicBool::new(false));
        let spawn = |_| {
            let over = over.clone();
            thread::spawn(move || {
                while !over.load(SeqCst) {
                    thread::yield_now();
                }
            })
        };
        let threads = [0; 3].map(spawn);
        for _ in 0..20 {
            let mut bytes = Vec::new();
            events::record(Duration::from_millis(3), &mut bytes).unwrap();
            let recording = Recording::read(&mut bytes.as_slice()).unwrap();
            let timeline = Timeline::new(&recording);
            let mut on: HashMap<usize, u64> = HashMap::new();
            for event in &timeline.events {
                if let What::Switch { next, .. } = event.what {
                    let before = on.insert(event.row, next).unwrap_or(event.thread);
                    assert!(recording.lost > 0 || before == event.thread, "{event:?}");
                }
            }
        }
        over.store(true, SeqCst);
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

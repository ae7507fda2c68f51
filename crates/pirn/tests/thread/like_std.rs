//! `pirn::thread` has the meaning of `std::thread`: spawn, join, names, scopes, parking, sleep.
//! (Panics are in `panics.rs`, thread-locals in `thread_locals.rs`.)

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::common::{block_then, crowd, many, most_carriers, on_virtual, watched};
use pirn::thread::{self, Builder, JoinHandle, Thread, ThreadId};

#[watched]
fn join_gives_the_value() {
    let text = String::from("weft");
    assert_eq!(thread::spawn(move || text + "!").join().unwrap(), "weft!");
}

#[watched]
fn join_works_from_every_kind_of_thread() {
    // Virtual joins virtual.
    assert_eq!(on_virtual(|| thread::spawn(|| 1).join().unwrap()), 1);
    // Virtual joins platform.
    assert_eq!(on_virtual(|| std::thread::spawn(|| 2).join().unwrap()), 2);
    // Platform joins virtual, through a platform thread that virtual threads wait for.
    let outer = on_virtual(|| std::thread::spawn(|| thread::spawn(|| 3).join().unwrap()));
    assert_eq!(outer.join().unwrap(), 3);
}

#[watched]
fn many_virtual_threads_join_platform_threads() {
    let count = 2 * most_carriers();
    let go = Barrier::new(count + 1);
    let go = &go;
    // The platform threads end only when `release` runs, which needs a free carrier.
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..count)
            .map(|i| Mutex::new(Some(scope.spawn(move || (go.wait(), i).1))))
            .collect();
        block_then(
            count,
            |i| {
                let handle = waiting[i].lock().unwrap().take().unwrap();
                assert_eq!(handle.join().unwrap(), i);
            },
            || {
                go.wait();
            },
        );
    });
}

#[watched]
fn a_finished_thread_can_still_be_joined() {
    let handle = thread::spawn(|| 7);
    while !handle.is_finished() {
        thread::yield_now();
    }
    assert_eq!(handle.join().unwrap(), 7);
}

#[watched]
fn is_finished_is_false_while_it_runs() {
    let (end, ended) = mpsc::channel::<()>();
    let handle = thread::spawn(move || ended.recv());
    assert!(!handle.is_finished());
    end.send(()).unwrap();
    handle.join().unwrap().unwrap();
}

#[watched]
fn detached_threads_run_on() {
    let (done, all_done) = mpsc::channel();
    for i in 0..many() {
        let done = done.clone();
        drop(thread::spawn(move || {
            thread::yield_now();
            done.send(i).unwrap();
        }));
    }
    drop(done);
    assert_eq!(all_done.iter().collect::<HashSet<_>>().len(), many());
}

#[watched]
fn the_value_of_a_detached_thread_is_dropped_once() {
    struct Signal(mpsc::Sender<()>);
    impl Drop for Signal {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    let (dropped, drops) = mpsc::channel();
    drop(thread::spawn(move || Signal(dropped)));
    assert_eq!(drops.iter().count(), 1);
}

#[watched]
fn threads_spawn_threads() {
    fn nest(depth: usize) -> usize {
        match depth {
            0 => 0,
            _ => 1 + thread::spawn(move || nest(depth - 1)).join().unwrap(),
        }
    }
    assert_eq!(nest(300), 300);
}

#[watched]
fn names_are_seen_inside_and_outside() {
    let handle = Builder::new()
        .name("heddle".into())
        .spawn(|| thread::current().name().map(str::to_owned))
        .unwrap();
    assert_eq!(handle.thread().name(), Some("heddle"));
    assert_eq!(handle.join().unwrap().as_deref(), Some("heddle"));
}

#[watched]
fn an_unnamed_thread_has_no_name() {
    let handle = thread::spawn(|| thread::current().name().is_none());
    assert!(handle.thread().name().is_none());
    assert!(handle.join().unwrap());
}

#[watched]
fn a_name_with_a_zero_byte_spawns_nothing() {
    let spawned = std::panic::catch_unwind(|| Builder::new().name("a\0b".into()).spawn(|| ()));
    assert!(!matches!(spawned, Ok(Ok(_))));
}

#[watched]
fn ids_are_unique_and_stay() {
    let ids = Mutex::new(HashSet::<ThreadId>::new());
    crowd(|_| {
        let id = thread::current().id();
        for _ in 0..10 {
            thread::yield_now();
            assert_eq!(thread::current().id(), id);
        }
        assert!(ids.lock().unwrap().insert(id), "{id:?} twice");
    });
    let handle = thread::spawn(|| thread::current().id());
    let seen_outside = handle.thread().id();
    assert_eq!(handle.join().unwrap(), seen_outside);
}

#[watched]
fn std_sees_each_virtual_thread_as_a_thread() {
    let ids = Mutex::new(HashSet::new());
    crowd(|_| {
        let id = std::thread::current().id();
        for _ in 0..10 {
            thread::yield_now();
            assert_eq!(std::thread::current().id(), id);
        }
        assert!(ids.lock().unwrap().insert(id), "{id:?} twice");
    });
}

#[watched]
fn scoped_threads_borrow_the_parents_stack() {
    on_virtual(|| {
        let mut numbers = vec![1_u64; 10 * many()];
        let total = AtomicUsize::new(0);
        thread::scope(|scope| {
            for chunk in numbers.chunks_mut(10) {
                scope.spawn(|| {
                    for number in chunk {
                        *number += 1;
                        thread::yield_now();
                    }
                    total.fetch_add(10, SeqCst);
                });
            }
        });
        assert_eq!(total.into_inner(), numbers.len());
        assert!(numbers.iter().all(|number| *number == 2));
    });
}

#[watched]
fn a_scope_gives_its_value_and_its_threads_theirs() {
    let words = [String::from("warp"), String::from("weft")];
    let lengths = thread::scope(|scope| {
        let handles: Vec<_> = words
            .iter()
            .map(|word| scope.spawn(|| word.len()))
            .collect();
        let lengths = handles.into_iter().map(|handle| handle.join().unwrap());
        lengths.collect::<Vec<_>>()
    });
    assert_eq!(lengths, [4, 4]);
}

#[watched]
fn scoped_threads_spawn_into_their_scope() {
    let ran = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                for _ in 0..10 {
                    scope.spawn(|| {
                        thread::sleep(Duration::from_millis(1));
                        ran.fetch_add(1, SeqCst);
                    });
                }
            });
        }
    });
    assert_eq!(ran.into_inner(), 100);
}

#[watched]
fn scopes_nest() {
    fn sum(numbers: &[u64]) -> u64 {
        if numbers.len() == 1 {
            return numbers[0];
        }
        let (left, right) = numbers.split_at(numbers.len() / 2);
        thread::scope(|scope| {
            let left = scope.spawn(|| sum(left));
            sum(right) + left.join().unwrap()
        })
    }
    let numbers: Vec<u64> = (1..=1000).collect();
    assert_eq!(sum(&numbers), 500_500);
}

#[watched]
fn a_builder_spawns_scoped_threads() {
    let name = thread::scope(|scope| {
        let builder = Builder::new().name("reed".into()).stack_size(128 * 1024);
        let handle = builder
            .spawn_scoped(scope, || thread::current().name().unwrap().to_owned())
            .unwrap();
        assert_eq!(handle.thread().name(), Some("reed"));
        handle.join().unwrap()
    });
    assert_eq!(name, "reed");
}

#[watched]
fn an_unpark_before_the_park_is_kept() {
    crowd(|_| {
        thread::current().unpark();
        thread::park();
    });
}

#[watched]
fn permits_do_not_add_up() {
    on_virtual(|| {
        thread::current().unpark();
        thread::current().unpark();
        thread::park();
        let begin = Instant::now();
        thread::park_timeout(Duration::from_millis(20));
        assert!(begin.elapsed() >= Duration::from_millis(20));
    });
}

#[watched]
fn unpark_wakes_the_parked() {
    let parked: Mutex<Vec<Thread>> = Mutex::default();
    let go = AtomicBool::new(false);
    block_then(
        many(),
        |_| {
            parked.lock().unwrap().push(thread::current());
            while !go.load(SeqCst) {
                thread::park();
            }
        },
        || {
            go.store(true, SeqCst);
            let mut woken = 0;
            while woken < many() {
                let parked = std::mem::take(&mut *parked.lock().unwrap());
                woken += parked.len();
                parked.iter().for_each(Thread::unpark);
                thread::yield_now();
            }
        },
    );
}

#[watched]
fn park_synchronises_with_unpark() {
    static mut MESSAGE: u32 = 0;
    on_virtual(|| {
        let receiver = thread::spawn(|| {
            thread::park();
            // SAFETY: the only write happens before the unpark that ended the park.
            unsafe { MESSAGE }
        });
        // SAFETY: the only read happens after the unpark below.
        unsafe { MESSAGE = 17 };
        receiver.thread().unpark();
        assert_eq!(receiver.join().unwrap(), 17);
    });
}

#[watched]
fn unpark_after_the_end_is_harmless() {
    let handle = thread::spawn(thread::current);
    let outside = handle.thread().clone();
    let inside = handle.join().unwrap();
    outside.unpark();
    inside.unpark();
    assert_eq!(inside.id(), outside.id());
}

#[watched]
fn park_timeout_lasts_unless_unparked() {
    crowd(|_| {
        let begin = Instant::now();
        thread::park_timeout(Duration::from_millis(15));
        assert!(begin.elapsed() >= Duration::from_millis(15));
        thread::park_timeout(Duration::ZERO);
    });
    let waiter = thread::spawn(|| thread::park_timeout(Duration::MAX));
    waiter.thread().unpark();
    waiter.join().unwrap();
}

#[watched]
fn std_park_works_between_both_kinds() {
    // Each thread passes the turn to the next in the ring; every second is a platform thread.
    type Ring = Arc<Mutex<Vec<std::thread::Thread>>>;
    fn runner(place: usize, size: usize, ready: Arc<Barrier>, ring: Ring, turn: Arc<AtomicUsize>) {
        ring.lock().unwrap()[place] = std::thread::current();
        ready.wait();
        for round in 0..20 {
            while turn.load(SeqCst) != round * size + place {
                std::thread::park();
            }
            turn.fetch_add(1, SeqCst);
            let next = ring.lock().unwrap()[(place + 1) % size].clone();
            next.unpark();
        }
    }
    let size = 2 * crate::common::PLATFORM;
    let ready = Arc::new(Barrier::new(size));
    let ring: Ring = Arc::new(Mutex::new(vec![std::thread::current(); size]));
    let turn = Arc::new(AtomicUsize::new(0));
    let mut handles: Vec<Box<dyn FnOnce()>> = Vec::new();
    for place in 0..size {
        let (ready, ring, turn) = (ready.clone(), ring.clone(), turn.clone());
        let body = move || runner(place, size, ready, ring, turn);
        if place % 2 == 0 {
            let handle = thread::spawn(body);
            handles.push(Box::new(move || handle.join().unwrap()));
        } else {
            let handle = std::thread::spawn(body);
            handles.push(Box::new(move || handle.join().unwrap()));
        }
    }
    handles.into_iter().for_each(|join| join());
    assert_eq!(turn.load(SeqCst), 20 * size);
}

#[watched]
fn sleep_lasts_at_least_as_long() {
    crowd(|i| {
        let length = Duration::from_millis(i as u64 % 30);
        let begin = Instant::now();
        thread::sleep(length);
        assert!(begin.elapsed() >= length);
        let begin = Instant::now();
        std::thread::sleep(length);
        assert!(begin.elapsed() >= length);
    });
}

#[watched]
fn yield_now_lets_the_others_run() {
    // More spinners in a ring than carriers: without a real yield, the thread whose turn it is
    // never runs.
    const ROUNDS: usize = 20;
    let size = most_carriers() + 8;
    let turn = AtomicUsize::new(0);
    let turn = &turn;
    thread::scope(|scope| {
        for place in 0..size {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    while turn.load(SeqCst) != round * size + place {
                        thread::yield_now();
                    }
                    turn.fetch_add(1, SeqCst);
                }
            });
        }
    });
    assert_eq!(turn.load(SeqCst), ROUNDS * size);
}

#[watched]
fn closures_are_dropped_once() {
    let token = Arc::new(());
    for _ in 0..100 {
        let held = Arc::clone(&token);
        thread::spawn(move || drop(Arc::clone(&held)))
            .join()
            .unwrap();
    }
    assert_eq!(Arc::strong_count(&token), 1);
}

#[watched]
fn handles_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<JoinHandle<()>>();
    crosses::<Thread>();
    crosses::<ThreadId>();
    crosses::<thread::ScopedJoinHandle<'static, ()>>();
    assert!(thread::available_parallelism().unwrap().get() >= 1);
}

#[watched]
fn a_name_with_a_nul_byte_panics_as_in_std() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let named = |name: &str| thread::Builder::new().name(name.into());
    assert!(catch_unwind(|| named("a\0b").spawn(|| ())).is_err());
    assert!(catch_unwind(|| std::thread::Builder::new().name("a\0b".into()).spawn(|| ())).is_err());
    let counted = thread::Builder::new().name_counter("a\0b", 1);
    assert!(catch_unwind(AssertUnwindSafe(|| counted.spawn(|| ()))).is_err());
    // The scope does not wait for a thread that does not exist.
    let scope = catch_unwind(|| {
        thread::scope(|s| {
            named("a\0b").spawn_scoped(s, || ()).unwrap();
        });
    });
    let payload = scope.unwrap_err();
    let text = payload.downcast_ref::<String>().unwrap();
    assert!(text.contains("null bytes"), "{text}");
}

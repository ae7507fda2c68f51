//! Iterators whose items are made ahead.

use crate::common::{Gate, HOUR, until, watched};
use pirn::scope::with_deadline;
use pirn::thread::{self, Interrupted, Thread};
use pirn_actor as actor;
use pirn_flow::generator::{Generator, Out, TimedOut, generate, generate_parallel};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

type Plain<T> = Generator<T, Interrupted>;

/// Gives the numbers from 0 on.
fn numbers(ahead: usize, end: usize) -> Plain<usize> {
    generate(ahead, move |out| (0..end).try_for_each(|n| out.give(n)))
}

#[watched]
fn all_items_come_in_order() {
    for ahead in [0, 1, 2, 3, 7, 100, 100_000] {
        let items = numbers(ahead, 10_000).map(Result::unwrap);
        assert!(items.eq(0..10_000), "{ahead} ahead");
    }
}

#[watched]
fn a_generator_that_gives_nothing_ends_and_stays_over() {
    let mut none = numbers(5, 0);
    assert_eq!(none.next(), None);
    assert_eq!(none.next(), None);
    assert_eq!(none.next_timeout(Duration::ZERO), Ok(None));
}

#[watched]
fn the_producer_is_ahead_and_not_further_than_it_may_be() {
    for ahead in [1, 2, 5, 8] {
        let made = Arc::new(AtomicUsize::new(0));
        let makes = Arc::clone(&made);
        let mut items: Plain<usize> = generate(ahead, move |out| {
            loop {
                out.give(makes.fetch_add(1, Ordering::SeqCst))?;
            }
        });
        // The items that have room, and one that has none.
        until(|| made.load(Ordering::SeqCst) == ahead + 1);
        for used in 0..100 {
            assert!(made.load(Ordering::SeqCst) <= used + ahead + 1);
            assert_eq!(items.next(), Some(Ok(used)));
        }
        // It is as far ahead again, or has begun half of that: room is made for several at a time.
        until(|| made.load(Ordering::SeqCst) > 100 + ahead / 2);
    }
}

#[watched]
fn an_item_is_there_as_soon_as_it_is_given() {
    let (permit, permits) = mpsc::channel();
    let mut items: Generator<u32, io::Error> = generate(1000, move |out| {
        permits.iter().try_for_each(|n| Ok(out.give(n)?))
    });
    for n in 0..100 {
        permit.send(n).unwrap();
        assert_eq!(items.next().unwrap().unwrap(), n);
    }
}

#[watched]
fn an_error_of_the_producer_is_the_last_item() {
    let mut items = generate(10, |out| {
        out.give(1)?;
        out.give(2)?;
        Err(io::Error::other("no third"))
    });
    assert_eq!(items.next().unwrap().unwrap(), 1);
    assert_eq!(items.next().unwrap().unwrap(), 2);
    assert_eq!(items.next().unwrap().unwrap_err().to_string(), "no third");
    assert!(items.next().is_none());
}

#[watched]
fn a_panic_of_the_producer_comes_out_after_the_items_before_it() {
    let mut items: Plain<u32> = generate(10, |out| {
        out.give(1)?;
        std::panic::panic_any("no second")
    });
    assert_eq!(items.next(), Some(Ok(1)));
    let panic = catch_unwind(AssertUnwindSafe(|| items.next())).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"no second"));
    assert_eq!(items.next(), None);
}

#[watched]
fn an_interrupt_of_the_consumer_is_the_last_item_and_ends_the_producer() {
    let (gate, (tell, told)) = (Gate::new(), mpsc::channel());
    let (blocked, waiting) = (gate.clone(), Gate::new());
    let waits = waiting.clone();
    let consumer = thread::spawn(move || {
        let mut items: Generator<u32, io::Error> = generate(1, move |_| {
            let slept = thread::sleep_interruptible(HOUR);
            tell.send(slept).unwrap();
            blocked.wait();
            Ok(())
        });
        waits.open();
        let error = items.next().unwrap().unwrap_err();
        (thread::is_interrupt(&error), items.next().is_none(), items)
    });
    waiting.wait();
    consumer.thread().interrupt();
    let (is_interrupt, is_over, items) = consumer.join().unwrap();
    assert!(is_interrupt && is_over);
    assert_eq!(
        told.recv(),
        Ok(Err(Interrupted)),
        "while the generator is there"
    );
    gate.open();
    drop(items);
}

#[watched]
fn an_interrupt_of_the_producer_ends_its_wait_for_room() {
    let (tell, told) = mpsc::channel::<Thread>();
    let items: Plain<u32> = generate(1, move |out| {
        tell.send(thread::current()).unwrap();
        out.give(1)?;
        let given = out.give(2);
        drop(tell);
        given
    });
    told.recv().unwrap().interrupt();
    assert!(told.recv().is_err(), "it has not waited for us");
    let left: Vec<_> = items.collect();
    assert_eq!(left, [Ok(1), Err(Interrupted)]);
}

#[watched]
fn a_producer_that_has_not_started_ends_when_the_generator_is_dropped() {
    for _ in 0..200 {
        let alive = Arc::new(());
        let lives = Arc::clone(&alive);
        drop::<Plain<Arc<()>>>(generate(1, move |out| {
            loop {
                out.give(Arc::clone(&lives))?;
            }
        }));
        until(|| Arc::strong_count(&alive) == 1);
    }
}

#[watched]
fn a_producer_that_ignores_the_interrupt_can_give_nothing_more() {
    let (tell, told) = mpsc::channel();
    let gate = Gate::new();
    let blocked = gate.clone();
    let items: Plain<u32> = generate(5, move |out| {
        blocked.wait();
        thread::take_interrupt();
        tell.send(out.give(1)).unwrap();
        Ok(())
    });
    drop(items);
    gate.open();
    assert_eq!(told.recv().unwrap(), Err(Interrupted));
}

#[watched]
fn a_stop_waits_until_the_producers_have_ended() {
    let alive = Arc::new(());
    let producers = (0..5).map(|_| {
        let alive = Arc::clone(&alive);
        move |out: &mut Out<Arc<()>>| {
            loop {
                out.give(Arc::clone(&alive))?;
            }
        }
    });
    let mut items: Plain<_> = generate_parallel(10, producers);
    items.next().unwrap().unwrap();
    items.stop();
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[watched]
fn several_producers_give_all_their_items_each_in_order() {
    for ahead in [1, 2, 10, 1000] {
        let producers = (0..8).map(|producer| {
            move |out: &mut Out<_>| (0..500).try_for_each(|n: usize| out.give((producer, n)))
        });
        let mut next = [0; 8];
        for item in generate_parallel(ahead, producers) {
            let (producer, n): (usize, usize) = item.unwrap();
            assert_eq!(n, next[producer]);
            next[producer] += 1;
        }
        assert_eq!(next, [500; 8], "{ahead} ahead");
    }
}

#[watched]
fn no_producers_are_an_empty_generator() {
    type Produce = fn(&mut Out<u32>) -> Result<(), Interrupted>;
    let none: [Produce; 0] = [];
    assert_eq!(generate_parallel(1, none).count(), 0);
}

#[watched]
fn the_first_error_of_several_producers_ends_them_all() {
    let alive = Arc::new(());
    let producers = (0..8).map(|producer| {
        let alive = Arc::clone(&alive);
        move |out: &mut Out<Arc<()>>| {
            if producer == 5 {
                return Err(io::Error::other("the fifth"));
            }
            loop {
                out.give(Arc::clone(&alive))?;
            }
        }
    });
    let items = generate_parallel(4, producers);
    let errors: Vec<_> = items.filter_map(Result::err).collect();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].to_string(), "the fifth");
    until(|| Arc::strong_count(&alive) == 1);
}

#[watched]
fn a_producer_that_gives_up_its_turn_leaves_the_room_to_another() {
    // As many wait for room as can; some are interrupted; what the others give is all there.
    for _ in 0..50 {
        let (tell, told) = mpsc::channel::<Thread>();
        let producers = (0..6).map(|_| {
            let tell = tell.clone();
            move |out: &mut Out<()>| {
                tell.send(thread::current()).unwrap();
                let given = (0..20).take_while(|_| out.give(()).is_ok()).count();
                assert!(given == 20 || thread::is_interrupted());
                Ok(())
            }
        });
        let items: Generator<_, io::Error> = generate_parallel(1, producers);
        let threads: Vec<_> = told.iter().take(6).collect();
        threads[..3].iter().for_each(Thread::interrupt);
        assert!(items.count() >= 60);
    }
}

#[watched]
fn platform_threads_consume_too() {
    let all = std::thread::spawn(|| numbers(10, 1000).map(Result::unwrap).eq(0..1000));
    assert!(all.join().unwrap());
}

#[watched]
fn a_producer_without_room_is_parked_and_does_not_spin() {
    fn a_producer_that_is_to_be_parked(out: &mut Out<u32>) -> Result<(), Interrupted> {
        (0..3).try_for_each(|n| out.give(n))
    }
    let items = generate(1, a_producer_that_is_to_be_parked);
    let is_parked = || {
        let dump = pirn::dump::take().to_string();
        let mut stacks = dump.split("\n\n");
        let stack = stacks.find(|stack| stack.contains("a_producer_that_is_to_be_parked"));
        stack.is_some_and(|stack| stack.contains("waiting for an unpark"))
    };
    until(is_parked);
    assert_eq!(items.count(), 3);
}

#[watched]
fn a_generator_hears_the_deadline_of_the_request_that_takes_from_it() {
    let (tell, told) = mpsc::channel();
    let asked = actor::function(move |()| {
        let mut items: Plain<u32> = generate(1, |_| thread::sleep_interruptible(HOUR));
        tell.send((items.next(), items.next())).unwrap();
    });
    // On a busy machine the time may be up before the request is begun.
    let late = std::iter::repeat_with(|| {
        let _ = asked.ask_timeout((), Duration::from_millis(20));
        told.recv_timeout(Duration::from_millis(50)).ok()
    });
    assert_eq!(late.flatten().next(), Some((Some(Err(Interrupted)), None)));
    // The earlier one of two time limits holds.
    with_deadline(Instant::now(), || {
        let mut none: Plain<u32> = generate(1, |_| thread::sleep_interruptible(HOUR));
        assert_eq!(none.next_timeout(HOUR), Err(TimedOut));
    });
}

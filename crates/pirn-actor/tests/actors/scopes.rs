//! Actors that borrow.

use crate::common::{Gate, watched};
use pirn::thread;
use pirn_actor::scoped::ScopedRef;
use pirn_actor::{self as actor, Context, Exit, Handler};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[watched]
fn state_and_messages_may_be_borrowed() {
    let text = "a rose is a rose is a rose".to_string();
    let mut totals: HashMap<&str, u32> = HashMap::new();
    let sent = actor::scope(|s| {
        let count = s.with(&mut totals, |totals, word: &str| {
            *totals.entry(word).or_default() += 1;
        });
        text.split(' ').try_for_each(|word| count.send(word))
    });
    sent.unwrap();
    assert_eq!(totals["rose"], 3);
    assert_eq!(totals.values().sum::<u32>(), 8);
}

#[watched]
fn answers_may_borrow_too() {
    let words = ["one".to_string(), "three".to_string()];
    let longest = actor::scope(|s| {
        struct Longer<'a>(&'a str);
        impl<'a> Handler<&'a str> for Longer<'a> {
            type Reply = &'a str;
            fn handle(&mut self, word: &'a str, _: &Context<Self>) -> &'a str {
                if word.len() > self.0.len() {
                    self.0 = word;
                }
                self.0
            }
        }
        let longer = s.spawn(Longer(""));
        words
            .iter()
            .map(|word| longer.ask(word.as_str()).unwrap())
            .next_back()
    });
    assert_eq!(longest, Some("three"));
}

#[watched]
fn a_scope_ends_after_all_messages_in_whatever_order_its_actors_refer_to_each_other() {
    struct Pass<'scope>(Option<ScopedRef<'scope, Pass<'scope>>>, &'scope AtomicUsize);
    impl<'scope> Handler<&'scope str> for Pass<'scope> {
        type Reply = ();
        fn handle(&mut self, message: &'scope str, _: &Context<Self>) {
            thread::yield_now();
            match &self.0 {
                Some(next) => next.send(message).unwrap(),
                None => _ = self.1.fetch_add(message.len(), Ordering::SeqCst),
            }
        }
    }
    let (arrived, message) = (AtomicUsize::new(0), "four".to_string());
    actor::scope(|s| {
        let mut next = None;
        for _ in 0..10 {
            next = Some(s.spawn(Pass(next.take(), &arrived)));
        }
        let first = next.unwrap();
        (0..100).for_each(|_| first.send(message.as_str()).unwrap());
    });
    assert_eq!(arrived.load(Ordering::SeqCst), 400);
}

#[watched]
fn a_panic_kills_the_actors_and_goes_on_after_their_end() {
    let ended = Mutex::new(Vec::new());
    let begun = Gate::new();
    let payload = catch_unwind(AssertUnwindSafe(|| {
        actor::scope(|s| {
            struct Noted<'a>(&'a Mutex<Vec<bool>>, Gate);
            impl Handler<()> for Noted<'_> {
                type Reply = ();
                fn handle(&mut self, (): (), _: &Context<Self>) {
                    self.1.open();
                    let slept = thread::sleep_interruptible(Duration::from_secs(3600));
                    self.0.lock().unwrap().push(slept.is_err());
                }
            }
            let sleeps = s.spawn(Noted(&ended, begun.clone()));
            sleeps.send(()).unwrap();
            begun.wait();
            panic!("out of the scope");
        })
    }))
    .unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"out of the scope"));
    assert_eq!(*ended.lock().unwrap(), [true]);
}

#[watched]
fn an_interrupt_of_the_owner_kills_the_actors() {
    let begun = Gate::new();
    let begins = begun.clone();
    let owner = thread::spawn(move || {
        let mut interrupted = false;
        actor::scope(|s| {
            let sleeps = s.with(&mut interrupted, |interrupted, ()| {
                begins.open();
                *interrupted = thread::sleep_interruptible(Duration::from_secs(3600)).is_err();
            });
            sleeps.send(()).unwrap();
        });
        interrupted
    });
    begun.wait();
    owner.thread().interrupt();
    assert!(owner.join().unwrap());
}

#[watched]
fn an_actor_that_fails_keeps_its_scope_from_nothing() {
    let mut count = 0;
    actor::scope(|s| {
        let careless = s.with(&mut count, |count, n: u32| {
            *count += 1;
            assert_eq!(n, 0, "not zero");
        });
        careless.ask(0).unwrap();
        assert!(careless.ask(1).is_err());
        assert!(matches!(careless.join(), Exit::Failed(_)));
        assert!(careless.send(0).is_err());
    });
    assert_eq!(count, 2);
}

#[watched]
fn many_actors_in_many_scopes() {
    let scopes: Vec<_> = (0..20)
        .map(|_| {
            thread::spawn(|| {
                let mut sums = vec![0u64; 50];
                actor::scope(|s| {
                    let add: Vec<_> = sums
                        .iter_mut()
                        .map(|sum| s.with(sum, |sum, n: &u64| *sum += n))
                        .collect();
                    static NUMBERS: [u64; 4] = [1, 2, 3, 4];
                    for n in &NUMBERS {
                        add.iter().for_each(|add| add.send(n).unwrap());
                    }
                });
                assert!(sums.iter().all(|sum| *sum == 10));
            })
        })
        .collect();
    scopes.into_iter().for_each(|scope| scope.join().unwrap());
}

#[watched]
fn snapshots_are_taken_beside_scopes_that_end() {
    let over = Gate::new();
    let seen = over.clone();
    let looks = thread::spawn(move || {
        let mut looks = 0;
        while !seen.is_open() {
            looks += usize::from(!actor::snapshot::take().is_empty());
            thread::yield_now();
        }
        looks
    });
    for round in 0..300 {
        let mut held = vec![round];
        actor::scope(|s| {
            let push = s.with(&mut held, |held, n: u32| held.push(n));
            (0..3).for_each(|n| push.send(n).unwrap());
        });
        assert_eq!(held.len(), 4);
    }
    over.open();
    looks.join().unwrap();
}

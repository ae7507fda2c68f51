//! Pipelines, batches, rates, a thread per message, transactions.

use crate::common::{Count, below, fail, nap};
use pirn_actor::{AskError, Builder, Exit};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Messages of several senders through three stages with little room; perhaps one stage ends.
#[pirn_sim::test(seeds(0..100), pauses(200, Duration::from_millis(20)))]
fn each_message_passes_all_stages_in_order_or_its_asker_is_told() {
    let at_work = [(); 3].map(|()| Count::default());
    let last = Arc::new(Mutex::new(Vec::new()));
    let stage = |number: usize| {
        let (at_work, last) = (at_work[number].clone(), Arc::clone(&last));
        let builder = Builder::new().capacity(1 + below(2) as usize);
        builder.function(move |(sender, n, passed): (u64, u64, usize)| {
            assert_eq!(at_work.add().1, 1);
            assert_eq!(passed, number);
            nap(3);
            if number == 2 {
                last.lock().unwrap().push((sender, n));
            }
            (sender, n, passed + 1)
        })
    };
    let stages = [stage(0), stage(1), stage(2)];
    let line = stages[0].then(&stages[1]).then(&stages[2]);
    let ends = below(2) == 0;
    let senders: Vec<_> = (0..3)
        .map(|sender| {
            let line = line.clone();
            thread::spawn(move || {
                let mut replies = Vec::new();
                for n in 0..5 {
                    match line.ask_later((sender, n, 0)) {
                        Ok(reply) => replies.push((n, reply)),
                        Err(_) => assert!(ends),
                    }
                }
                for (n, reply) in replies {
                    match reply.recv() {
                        Ok(answer) => assert_eq!(answer, (sender, n, 3)),
                        Err(AskError::Gone) => assert!(ends),
                        Err(error) => panic!("{error:?}"),
                    }
                }
            })
        })
        .collect();
    if ends {
        nap(30);
        let stage = &stages[below(3) as usize];
        match below(2) {
            0 => stage.kill(),
            _ => stage.stop(),
        }
    }
    senders.into_iter().for_each(|it| it.join().unwrap());
    let last = last.lock().unwrap();
    for sender in 0..3 {
        let of_sender = last.iter().filter(|it| it.0 == sender).map(|it| it.1);
        assert!(of_sender.is_sorted(), "{last:?}");
    }
    assert!(ends || last.len() == 15);
}

/// Batches have as many items as they may have, in order; each asker gets the result of its own.
#[pirn_sim::test(seeds(0..100), pauses(200, Duration::from_millis(20)))]
fn each_item_is_in_one_batch() {
    const MOST: usize = 3;
    let items = Arc::new(Mutex::new(Vec::<(u64, u64)>::new()));
    let log = Arc::clone(&items);
    let batches = Builder::new()
        .capacity(4)
        .batch(MOST, Duration::from_millis(10), {
            move |batch: Vec<(u64, u64)>| {
                assert!((1..=MOST).contains(&batch.len()));
                log.lock().unwrap().extend(&batch);
                nap(5);
                if below(8) == 0 { fail() } else { batch }
            }
        });
    let closes = below(2) == 0;
    let senders: Vec<_> = (0..3)
        .map(|sender| {
            let batches = batches.clone();
            thread::spawn(move || {
                for n in 0..4 {
                    nap(10);
                    match batches.ask((sender, n)) {
                        Ok(batch) => assert!(batch.contains(&(sender, n))),
                        Err(AskError::Failed(_) | AskError::Gone) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            })
        })
        .collect();
    if closes {
        nap(60);
        batches.close();
    }
    senders.into_iter().for_each(|it| it.join().unwrap());
    drop(batches);
    thread::sleep(Duration::from_secs(1));
    let items = items.lock().unwrap();
    for sender in 0..3 {
        let of_sender = items.iter().filter(|it| it.0 == sender).map(|it| it.1);
        let of_sender: Vec<_> = of_sender.collect();
        assert!(
            of_sender.is_sorted_by(|one, other| one < other),
            "{items:?}"
        );
    }
}

/// Without pauses a batch is handled no later than it was told.
#[pirn_sim::test(seeds(0..60))]
fn a_batch_waits_no_longer_than_it_may() {
    let limit = Duration::from_millis(10);
    let batches = pirn_actor::flow::batch(100, limit, |items: Vec<u64>| items.len());
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let batches = batches.clone();
            thread::spawn(move || {
                for n in 0..4 {
                    nap(25);
                    let begin = Instant::now();
                    batches.ask(n).unwrap();
                    assert!(begin.elapsed() <= limit + Duration::from_millis(1));
                }
            })
        })
        .collect();
    senders.into_iter().for_each(|it| it.join().unwrap());
    thread::sleep(Duration::from_secs(1)); // The timers' thread rests before it ends.
}

#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(20)))]
fn messages_of_a_limited_rate_are_apart() {
    let least = Duration::from_millis(10);
    let begun = Arc::new(Mutex::new(None::<Instant>));
    let before = Arc::clone(&begun);
    let limited = Builder::new()
        .capacity(2)
        .rate_limit(least)
        .function(move |n: u64| {
            let now = Instant::now();
            if let Some(before) = before.lock().unwrap().replace(now) {
                // The time between the starts; pauses come between a start and this.
                assert!(now - before + Duration::from_millis(20) >= least);
            }
            n
        });
    let begin = Instant::now();
    let senders: Vec<_> = (0..3)
        .map(|_| {
            let limited = limited.clone();
            thread::spawn(move || {
                for n in 0..3 {
                    nap(15);
                    assert_eq!(limited.ask(n), Ok(n));
                }
            })
        })
        .collect();
    senders.into_iter().for_each(|it| it.join().unwrap());
    assert!(begin.elapsed() >= 8 * least);
    limited.stop();
    assert_eq!(limited.join(), Exit::Stopped);
}

/// A thread for each message: no more at once than there is room for, and each ask ends.
#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(20)))]
fn a_thread_for_each_message_ends_with_its_answer() {
    let at_work = Count::default();
    let most = 1 + below(3) as usize;
    let working = at_work.clone();
    let each = Builder::new().capacity(most).each(move |n: u64| {
        let (_at_work, threads) = working.add();
        assert!(threads <= most, "{threads} at once");
        let slept = nap(5);
        if n == 3 { fail() } else { (n, slept) }
    });
    let end = below(3);
    let senders: Vec<_> = (0..3)
        .map(|_| {
            let each = each.clone();
            thread::spawn(move || {
                for n in 0..4 {
                    match each.ask(n) {
                        Ok((answer, slept)) => assert!(answer == n && (slept || end == 2)),
                        Err(AskError::Failed(_)) => assert_eq!(n, 3),
                        Err(AskError::Gone) => assert!(end > 0),
                        Err(error) => panic!("{error:?}"),
                    }
                }
            })
        })
        .collect();
    if end > 0 {
        nap(10);
        match end {
            1 => each.close(),
            _ => each.kill(),
        }
    }
    senders.into_iter().for_each(|it| it.join().unwrap());
    each.close();
    each.join();
    assert_eq!(at_work.get(), 0, "the end is told while a thread works");
}

#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(20)))]
fn a_transaction_changes_all_or_nothing() {
    let accounts = pirn_actor::spawn((50_u64, 50_u64));
    let payers: Vec<_> = (0..3)
        .map(|_| {
            let accounts = accounts.clone();
            thread::spawn(move || {
                for _ in 0..4 {
                    let (amount, way) = (below(20), below(4));
                    let paid = accounts.transaction(move |accounts| {
                        accounts.0 -= amount.min(accounts.0);
                        nap(2);
                        match way {
                            0 => return Err("no"),
                            1 => fail(),
                            _ => accounts.1 = 100 - accounts.0,
                        }
                        Ok(())
                    });
                    match paid {
                        Ok(paid) => assert_eq!(paid.is_err(), way == 0),
                        Err(AskError::Failed(_)) => assert_eq!(way, 1),
                        Err(error) => panic!("{error:?}"),
                    }
                    assert_eq!(accounts.run(|it| it.0 + it.1), Ok(100));
                }
            })
        })
        .collect();
    payers.into_iter().for_each(|it| it.join().unwrap());
}

/// Actors that borrow have ended, and have handled all, when their scope has.
#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(20)))]
fn a_scope_leaves_no_message_and_no_actor() {
    let mut totals = [0_u64; 2];
    let sent = {
        let [one, other] = &mut totals;
        pirn_actor::scope(|s| {
            let other = s.with(other, |total, n: u64| *total += n);
            let one = s.with(one, |total, n: u64| {
                nap(2);
                *total += n;
            });
            let mut sent = 0;
            for n in 0..8 {
                nap(3);
                one.send(n).unwrap();
                assert_eq!(other.ask(n), Ok(()));
                sent += n;
            }
            sent
        })
    };
    assert_eq!(totals, [sent, sent]);
}

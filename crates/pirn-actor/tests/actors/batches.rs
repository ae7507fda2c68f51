//! Several messages at once.

use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::error::Refusal;
use pirn_actor::{self as actor, Address, AskError, Builder, Exit};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(3);

/// A batch actor, and its batches.
fn noted(count: usize, time: Duration) -> (Address<u32, Arc<usize>>, mpsc::Receiver<Vec<u32>>) {
    let (tell, told) = mpsc::channel();
    let batches = actor::flow::batch(count, time, move |items: Vec<u32>| {
        let length = items.len();
        let _ = tell.send(items); // the test may be over
        length
    });
    (batches, told)
}

#[watched]
fn a_batch_is_handled_when_it_is_full() {
    let (batches, told) = noted(3, HOUR);
    (0..7).for_each(|n| batches.send(n).unwrap());
    assert_eq!(told.recv().unwrap(), [0, 1, 2]);
    assert_eq!(told.recv().unwrap(), [3, 4, 5]);
    assert!(told.try_recv().is_err());
}

#[watched]
fn a_batch_is_handled_when_its_time_has_come() {
    let (batches, told) = noted(1000, SOON);
    for round in 0..3 {
        let start = Instant::now();
        batches.send(round).unwrap();
        assert_eq!(told.recv().unwrap(), [round]);
        assert!(start.elapsed() >= SOON, "since the first item");
    }
}

#[watched]
fn the_last_batch_is_handled_at_the_end() {
    let (batches, told) = noted(10, HOUR);
    (0..25).for_each(|n| batches.send(n).unwrap());
    batches.close();
    assert_eq!(batches.send(0).unwrap_err().refusal(), &Refusal::Closed);
    assert_eq!(batches.join(), Exit::Closed);
    let lengths: Vec<_> = told.try_iter().map(|batch| batch.len()).collect();
    assert_eq!(lengths, [10, 10, 5]);
}

#[watched]
fn the_last_batch_is_handled_when_nobody_can_send_any_more() {
    let (batches, told) = noted(10, HOUR);
    let other = batches.clone();
    batches.send(1).unwrap();
    drop(batches);
    other.send(2).unwrap();
    drop(other);
    assert!(told.iter().flatten().eq([1, 2]));
}

#[watched]
fn a_full_mailbox_does_not_keep_the_last_batch() {
    let gate = Gate::new();
    let (blocked, (tell, told)) = (gate.clone(), mpsc::channel());
    let small = Builder::new().capacity(1);
    let batches = small.batch(2, HOUR, move |items: Vec<u32>| {
        blocked.wait();
        tell.send(items).unwrap();
    });
    (0..2).for_each(|n| batches.send(n).unwrap());
    until(|| batches.is_empty()); // at the first batch
    batches.send(2).unwrap();
    assert!(batches.try_send(3).unwrap_err().is_full());
    drop(batches);
    gate.open();
    assert!(told.iter().eq([vec![0, 1], vec![2]]));
}

#[watched]
fn an_asker_waits_for_its_batch_and_all_get_the_same() {
    let (batches, told) = noted(3, HOUR);
    let first = batches.ask_later(1).unwrap();
    batches.send(2).unwrap();
    let first = first.try_recv().unwrap_err();
    assert_eq!(*batches.ask(3).unwrap(), 3);
    assert_eq!(*first.recv().unwrap(), 3);
    assert_eq!(told.recv().unwrap(), [1, 2, 3]);
}

#[watched]
fn an_asker_of_a_batch_that_is_not_full_waits_for_its_time() {
    let (batches, _told) = noted(3, SOON);
    assert_eq!(*batches.ask(1).unwrap(), 1);
}

#[watched]
fn a_message_whose_asker_has_given_up_is_in_no_batch() {
    let (batches, told) = noted(10, HOUR);
    assert_eq!(batches.ask_timeout(1, SOON), Err(AskError::TimedOut));
    let dropped = batches.ask_later(2).unwrap();
    batches.send(3).unwrap();
    drop(dropped);
    batches.close();
    batches.join();
    assert_eq!(told.recv().unwrap(), [3]);
}

#[watched]
fn a_batch_that_panics_fails_all_its_askers() {
    let gate = Gate::new();
    let opened = gate.clone();
    let careless = actor::flow::batch(2, HOUR, move |items: Vec<u32>| {
        opened.wait();
        assert!(items.is_empty(), "not empty")
    });
    let asked = [1, 2, 3].map(|n| careless.ask_later(n).unwrap());
    gate.open();
    let answers = asked.map(|asked| asked.recv());
    for answer in &answers[..2] {
        assert!(matches!(answer, Err(AskError::Failed(_))), "{answer:?}");
    }
    assert_eq!(answers[2], Err(AskError::Gone));
    assert!(matches!(careless.join(), Exit::Failed(_)));
}

#[watched]
fn what_is_collected_when_the_actor_is_stopped_is_told() {
    let (tell, told) = mpsc::channel();
    let builder = Builder::new().on_undelivered(move |name| tell.send(name.to_string()).unwrap());
    let never = builder.batch(10, HOUR, |_: Vec<String>| panic!("never"));
    let asked = never.ask_later("asked".to_string()).unwrap();
    (0..3).for_each(|_| never.send("sent".to_string()).unwrap());
    until(|| never.is_empty());
    never.stop();
    assert_eq!(never.join(), Exit::Stopped);
    assert_eq!(asked.recv(), Err(AskError::Gone));
    assert_eq!(told.try_iter().filter(|name| name == "String").count(), 3);
}

#[watched]
fn batches_per_key_count_and_wait_per_key() {
    let (tell, told) = mpsc::channel();
    let by_parity = actor::Builder::new().batch_by(
        3,
        HOUR,
        |n: &u32| n % 2,
        move |parity, items: Vec<u32>| {
            tell.send((parity, items)).unwrap();
        },
    );
    for n in [1, 2, 4, 3, 6, 5, 8] {
        by_parity.send(n).unwrap();
    }
    assert_eq!(told.recv().unwrap(), (0, vec![2, 4, 6]));
    assert_eq!(told.recv().unwrap(), (1, vec![1, 3, 5]));
    by_parity.send(7).unwrap();
    drop(by_parity);
    // In the order in which they have begun.
    assert!(told.iter().eq([(0, vec![8]), (1, vec![7])]));
}

#[watched]
fn each_key_has_its_own_time() {
    let (tell, told) = mpsc::channel();
    let by_number = actor::Builder::new().batch_by(
        1000,
        SOON,
        |n: &u32| *n,
        move |n, items: Vec<u32>| {
            tell.send((n, items.len(), Instant::now())).unwrap();
        },
    );
    let start = Instant::now();
    for n in 0..200 {
        by_number.send(n % 50).unwrap();
    }
    let batches: Vec<_> = told.iter().take(50).collect();
    let all: usize = batches.iter().map(|(_, length, _)| length).sum();
    // On a busy machine a key may have more than one batch; none is early.
    assert!(all <= 200 && batches.iter().all(|(.., at)| *at - start >= SOON));
    drop(by_number);
    let rest: usize = told.iter().map(|(_, length, _)| length).sum();
    assert_eq!(all + rest, 200);
}

#[watched]
fn a_batch_that_is_full_before_its_time_leaves_the_next_its_own_time() {
    let (batches, told) = noted(2, SOON);
    for round in 0..50 {
        batches.send(2 * round).unwrap();
        batches.send(2 * round + 1).unwrap();
        // Together, unless the machine is so busy that the time is up between them.
        if told.recv().unwrap().len() == 1 {
            told.recv().unwrap();
        }
    }
    let start = Instant::now();
    batches.send(1000).unwrap();
    assert_eq!(told.recv().unwrap(), [1000]);
    assert!(start.elapsed() >= SOON);
}

#[watched]
fn many_senders_lose_nothing() {
    let handled = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&handled);
    let batches = Builder::new()
        .capacity(16)
        .batch(7, SOON, move |items: Vec<usize>| {
            assert!(items.len() <= 7);
            counts.fetch_add(items.iter().sum::<usize>(), Ordering::SeqCst);
        });
    let senders: Vec<_> = (0..8)
        .map(|_| {
            let batches = batches.clone();
            thread::spawn(move || {
                for n in 0..200 {
                    match n % 50 {
                        0 => drop(batches.ask(1).unwrap()),
                        _ => batches.send(1).unwrap(),
                    }
                }
            })
        })
        .collect();
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
    let monitor = batches.monitor();
    drop(batches);
    assert_eq!(monitor.recv().unwrap(), Exit::Closed);
    assert_eq!(handled.load(Ordering::SeqCst), 1600);
}

#[watched]
fn a_batch_may_be_a_stage() {
    let parse = actor::function(|text: &str| text.parse::<u32>().unwrap());
    let sum = actor::flow::batch(2, HOUR, |items: Vec<u32>| items.iter().sum::<u32>());
    let row = parse
        .then(&sum)
        .then(actor::function(|sum: Arc<u32>| *sum * 10));
    let replies = ["1", "2"].map(|text| row.ask_later(text).unwrap());
    assert_eq!(replies.map(|reply| reply.recv()), [Ok(30), Ok(30)]);
}

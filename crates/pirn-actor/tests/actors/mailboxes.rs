//! Room in mailboxes, and what happens without.

use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::error::Refusal;
use pirn_actor::{self as actor, Address, Builder, Exit, Overflow};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// An actor that is at a message until the gate opens, then notes the others.
fn busy(overflow: Overflow, gate: &Gate) -> (Address<u32>, Arc<Mutex<Vec<u32>>>) {
    let (begun, begins) = mpsc::channel();
    let (blocked, noted) = (gate.clone(), Arc::new(Mutex::new(Vec::new())));
    let notes = Arc::clone(&noted);
    let busy = Builder::new()
        .capacity(3)
        .overflow(overflow)
        .consumer(move |n| {
            if n == 0 {
                begun.send(()).unwrap();
                blocked.wait();
            }
            notes.lock().unwrap().push(n);
        });
    busy.send(0).unwrap();
    begins.recv().unwrap();
    (busy, noted)
}

fn noted_at_the_end(busy: &Address<u32>, noted: &Mutex<Vec<u32>>) -> Vec<u32> {
    busy.close();
    busy.join();
    noted.lock().unwrap().clone()
}

/// The number of senders that wait for room at an actor whose name no other has.
fn waiting_senders(busy: &Address<u32>) -> usize {
    let all = actor::snapshot::take();
    all.iter()
        .find(|actor| actor.name == busy.name())
        .unwrap()
        .senders
}

#[watched]
fn there_is_room_for_as_many_as_the_capacity() {
    let gate = Gate::new();
    let (busy, noted) = busy(Overflow::Wait, &gate);
    for n in 1..=3 {
        busy.try_send(n).unwrap();
    }
    let error = busy.try_send(4).unwrap_err();
    assert!(error.is_full());
    assert_eq!(error.into_message(), 4);
    assert_eq!(busy.len(), 3);
    gate.open();
    assert_eq!(noted_at_the_end(&busy, &noted), [0, 1, 2, 3]);
}

#[watched]
fn senders_wait_in_order_of_arrival() {
    let gate = Gate::new();
    let (busy, noted) = busy(Overflow::Wait, &gate);
    for n in 1..=3 {
        busy.send(n).unwrap();
    }
    let mut senders = Vec::new();
    for n in 4..=20 {
        let sending = busy.clone();
        senders.push(thread::spawn(move || sending.send(n).unwrap()));
        until(|| waiting_senders(&busy) == senders.len());
    }
    gate.open();
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
    assert!(noted_at_the_end(&busy, &noted).into_iter().eq(0..=20));
}

#[watched]
fn a_slow_actor_takes_the_next_sender_in_with_each_message() {
    let (step, steps) = mpsc::channel::<()>();
    let slow = Builder::new()
        .capacity(2)
        .consumer(move |_: u32| steps.recv().unwrap());
    for n in 0..3 {
        slow.send(n).unwrap();
        until(|| slow.len() <= 2);
    }
    // One is being handled, two are there, one waits.
    let waiting = {
        let slow = slow.clone();
        thread::spawn(move || slow.send(3).unwrap())
    };
    step.send(()).unwrap();
    waiting.join().unwrap();
    assert_eq!(slow.len(), 2);
    drop(step);
    slow.stop();
}

#[watched]
fn a_waiting_sender_can_be_interrupted_and_has_its_message_back() {
    let gate = Gate::new();
    let (busy, noted) = busy(Overflow::Wait, &gate);
    (1..=3).for_each(|n| busy.send(n).unwrap());
    let sender = {
        let busy = busy.clone();
        thread::spawn(move || busy.send(4))
    };
    sender.thread().interrupt();
    let error = sender.join().unwrap().unwrap_err();
    assert_eq!(error.refusal(), &Refusal::Interrupted);
    assert_eq!(error.into_message(), 4);
    gate.open();
    assert_eq!(noted_at_the_end(&busy, &noted), [0, 1, 2, 3]);
}

#[watched]
fn a_sender_that_finds_room_at_its_second_look_is_heard_by_an_idle_actor() {
    let mut sum = 0;
    let small = Builder::new().capacity(1).function(move |n: u64| {
        sum += n;
        sum
    });
    // A platform thread, so that the actor works and becomes idle at any moment of a send.
    for _ in 0..20_000 {
        small.send(1).unwrap();
    }
    assert_eq!(small.ask(0), Ok(20_000));
}

#[watched]
fn waiting_senders_hear_of_the_end() {
    let gate = Gate::new();
    let (busy, _) = busy(Overflow::Wait, &gate);
    (1..=3).for_each(|n| busy.send(n).unwrap());
    let senders: Vec<_> = (4..8)
        .map(|n| {
            let busy = busy.clone();
            thread::spawn(move || busy.send(n))
        })
        .collect();
    busy.stop();
    for sender in senders {
        let error = sender.join().unwrap().unwrap_err();
        assert_eq!(error.refusal(), &Refusal::Closed);
    }
    gate.open();
    assert_eq!(busy.join(), Exit::Stopped);
}

#[watched]
fn an_ask_waits_for_room_and_answer_within_one_deadline() {
    let gate = Gate::new();
    let (busy, noted) = busy(Overflow::Wait, &gate);
    (1..=3).for_each(|n| busy.send(n).unwrap());
    let late = busy.ask_timeout(4, Duration::from_millis(5));
    assert_eq!(late, Err(actor::AskError::TimedOut));
    gate.open();
    assert_eq!(noted_at_the_end(&busy, &noted), [0, 1, 2, 3]);
}

#[watched]
fn fail_returns_the_message() {
    let gate = Gate::new();
    let (busy, noted) = busy(Overflow::Fail, &gate);
    (1..=3).for_each(|n| busy.send(n).unwrap());
    assert!(busy.send(4).unwrap_err().is_full());
    assert_eq!(busy.ask(4), Err(actor::AskError::Full));
    gate.open();
    assert_eq!(noted_at_the_end(&busy, &noted), [0, 1, 2, 3]);
}

#[watched]
fn drop_new_drops_the_newest() {
    let gate = Gate::new();
    let (busy, noted) = busy(Overflow::DropNew, &gate);
    (1..=6).for_each(|n| busy.send(n).unwrap());
    assert_eq!(busy.ask(7), Err(actor::AskError::Gone));
    gate.open();
    assert_eq!(noted_at_the_end(&busy, &noted), [0, 1, 2, 3]);
}

#[watched]
fn drop_old_drops_the_oldest() {
    let gate = Gate::new();
    let (busy, noted) = busy(Overflow::DropOld, &gate);
    let oldest = busy.ask_later(1).unwrap();
    (2..=6).for_each(|n| busy.send(n).unwrap());
    assert_eq!(oldest.recv(), Err(actor::AskError::Gone));
    assert_eq!(busy.len(), 3);
    gate.open();
    assert_eq!(noted_at_the_end(&busy, &noted), [0, 4, 5, 6]);
}

#[watched]
fn stop_ends_the_actor() {
    let gate = Gate::new();
    let (busy, noted) = busy(Overflow::Stop, &gate);
    (1..=3).for_each(|n| busy.send(n).unwrap());
    assert_eq!(busy.send(4).unwrap_err().refusal(), &Refusal::Closed);
    gate.open();
    let Exit::Failed(failure) = busy.join() else {
        panic!("it has failed")
    };
    assert_eq!(failure.to_string(), "its mailbox was full");
    assert_eq!(*noted.lock().unwrap(), [0]);
}

#[watched]
fn urgent_messages_come_first_whatever_the_capacity() {
    let gate = Gate::new();
    let (busy, noted) = busy(Overflow::Wait, &gate);
    (1..=3).for_each(|n| busy.send(n).unwrap());
    busy.send_urgent(10).unwrap();
    busy.send_urgent(11).unwrap();
    gate.open();
    assert_eq!(noted_at_the_end(&busy, &noted), [0, 10, 11, 1, 2, 3]);
}

#[watched]
fn an_urgent_message_overtakes_those_that_the_runner_has_taken() {
    let (gate, second) = (Gate::new(), Gate::new());
    let (tell, told) = mpsc::channel();
    let (begun, begins) = mpsc::channel();
    let (first, later) = (gate.clone(), second.clone());
    let busy = actor::consumer(move |n: u32| {
        tell.send(n).unwrap();
        begun.send(()).unwrap();
        match n {
            0 => first.wait(),
            1 => later.wait(),
            _ => {}
        }
    });
    busy.send(0).unwrap();
    begins.recv().unwrap();
    (1..=3).for_each(|n| busy.send(n).unwrap());
    gate.open();
    begins.recv().unwrap(); // at 1, and has taken 2 and 3
    busy.send_urgent(9).unwrap();
    second.open();
    busy.close();
    busy.join();
    drop(busy);
    assert!(told.iter().eq([0, 1, 9, 2, 3]));
}

#[watched]
fn messages_that_are_sent_together_stay_together() {
    let (tell, told) = mpsc::channel();
    let listen = actor::spawn(actor::Function::new(move |n: u32| tell.send(n).unwrap()));
    let senders: Vec<_> = (0..50)
        .map(|sender| {
            let listen = listen.clone();
            thread::spawn(move || listen.send_all((0..4).map(|n| sender * 4 + n)).unwrap())
        })
        .collect();
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
    drop(listen);
    let told: Vec<_> = told.iter().collect();
    assert_eq!(told.len(), 200);
    for four in told.chunks(4) {
        assert!(four.iter().copied().eq(four[0]..four[0] + 4), "{four:?}");
    }
}

#[watched]
fn memory_is_bounded_by_the_capacity() {
    let held = Arc::new(());
    let slow = Builder::new()
        .capacity(16)
        .consumer(|_: Arc<()>| thread::yield_now());
    let senders: Vec<_> = (0..8)
        .map(|_| {
            let (slow, held) = (slow.clone(), Arc::clone(&held));
            thread::spawn(move || {
                for _ in 0..500 {
                    slow.send(Arc::clone(&held)).unwrap();
                    // In the mailbox, at the actor, in the hands of the senders; ours and theirs.
                    assert!(Arc::strong_count(&held) <= 16 + 1 + 8 + 9);
                }
            })
        })
        .collect();
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
    slow.close();
    slow.join();
    assert_eq!(Arc::strong_count(&held), 1);
}

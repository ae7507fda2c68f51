//! Actors without a mailbox: a thread for each message, or none.

use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::{self as actor, Address, AskError, Builder, Exit, Overflow, Refusal};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

/// The number of senders that wait at an actor whose name no other has.
fn waiting_senders<M, R>(at: &Address<M, R>) -> usize {
    let all = actor::snapshot();
    let seen = all.iter().find(|actor| actor.name == at.name());
    seen.unwrap().senders
}

#[watched]
fn each_message_has_a_thread_of_its_own() {
    for builder in [Builder::new(), Builder::new().platform_threads()] {
        let inside = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&inside);
        let meet = builder.each(move |all: usize| {
            count.fetch_add(1, Ordering::SeqCst);
            until(|| count.load(Ordering::SeqCst) >= all);
            thread::current().id()
        });
        let replies: Vec<_> = (0..20).map(|_| meet.ask_later(20).unwrap()).collect();
        let threads = replies.into_iter().map(|reply| reply.recv().unwrap());
        let mut threads: Vec<_> = threads.map(|id| format!("{id:?}")).collect();
        threads.sort();
        threads.dedup();
        assert_eq!(threads.len(), 20);
        assert_eq!(inside.load(Ordering::SeqCst), 20);
    }
}

#[watched]
fn no_more_messages_than_the_capacity_are_handled_at_the_same_time() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (inside, record) = (Arc::clone(&now), Arc::clone(&most));
    let limited = Builder::new().capacity(3).each(move |()| {
        record.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::yield_now();
        inside.fetch_sub(1, Ordering::SeqCst);
    });
    let senders: Vec<_> = (0..8)
        .map(|_| {
            let limited = limited.clone();
            thread::spawn(move || (0..100).for_each(|_| limited.send(()).unwrap()))
        })
        .collect();
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
    limited.close();
    assert_eq!(limited.join(), Exit::Closed);
    assert_eq!(now.load(Ordering::SeqCst), 0, "close waits for all");
    assert!(most.load(Ordering::SeqCst) <= 3);
}

#[watched]
fn a_full_each_does_what_its_overflow_says() {
    for overflow in [
        Overflow::Fail,
        Overflow::DropNew,
        Overflow::DropOld,
        Overflow::Stop,
    ] {
        let full = Builder::new().capacity(1).overflow(overflow);
        let full = full.each(|gate: Gate| gate.wait());
        let gate = Gate::new();
        full.send(gate.clone()).unwrap();
        match (overflow, full.ask(gate.clone())) {
            (Overflow::Fail, Err(AskError::Full)) => {}
            (Overflow::DropNew | Overflow::DropOld, Err(AskError::Gone)) => {}
            (Overflow::Stop, Err(AskError::Gone)) => {}
            other => panic!("{other:?}"),
        }
        if overflow != Overflow::Stop {
            full.send_urgent(gate.clone()).unwrap();
        }
        gate.open();
        full.close();
        let failed = matches!(full.join(), Exit::Failed(_));
        assert_eq!(failed, overflow == Overflow::Stop);
    }
}

#[watched]
fn a_panic_concerns_its_message_only() {
    let divide = actor::each(|n: u32| 100 / n);
    assert!(matches!(divide.ask(0), Err(AskError::Failed(_))));
    divide.send(0).unwrap();
    assert_eq!(divide.ask(5), Ok(20));
    divide.close();
    assert_eq!(divide.join(), Exit::Closed);
}

#[watched]
fn a_kill_interrupts_every_message_and_a_stop_waits_for_them() {
    let sleep = || actor::each(|time: Duration| thread::sleep_interruptible(time).is_err());
    let killed = sleep();
    let replies: Vec<_> = (0..10).map(|_| killed.ask_later(LONG).unwrap()).collect();
    killed.kill();
    assert_eq!(killed.join(), Exit::Killed);
    assert!(replies.into_iter().all(|reply| reply.recv() == Ok(true)));
    let gate = Gate::new();
    let stopped = actor::each(|gate: Gate| gate.wait());
    let reply = stopped.ask_later(gate.clone()).unwrap();
    stopped.stop();
    assert_eq!(stopped.exit(), None);
    assert!(stopped.send(gate.clone()).is_err());
    gate.open();
    assert_eq!((reply.recv(), stopped.join()), (Ok(()), Exit::Stopped));
}

#[watched]
fn an_each_is_closed_when_nobody_can_send_to_it() {
    let (tell, told) = mpsc::channel();
    let listen = actor::each(move |n: u32| tell.send(n).unwrap());
    let monitor = listen.monitor();
    (0..50).for_each(|n| listen.send(n).unwrap());
    drop(listen);
    assert_eq!(monitor.recv().unwrap(), Exit::Closed);
    let mut all: Vec<_> = told.iter().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..50));
}

#[watched]
fn an_inline_actor_runs_on_the_senders_thread_one_at_a_time() {
    let (mut sum, lock) = (0, Mutex::new(()));
    let add = actor::inline(move |n: u32| {
        let _alone = lock.try_lock().expect("one at a time");
        thread::yield_now();
        sum += n;
        (sum, thread::current().id())
    });
    let senders: Vec<_> = (0..8)
        .map(|_| {
            let add = add.clone();
            thread::spawn(move || {
                for _ in 0..100 {
                    assert_eq!(add.ask(1).unwrap().1, thread::current().id());
                }
            })
        })
        .collect();
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
    assert_eq!(add.ask(0).unwrap().0, 800);
    let later = add.ask_later(1).unwrap();
    assert_eq!(later.try_recv().unwrap().unwrap().0, 801);
}

/// An inline actor that a thread is in until the gate opens, and what it notes.
fn occupied(builder: &Builder, gate: &Gate) -> (Address<u32>, mpsc::Receiver<u32>) {
    let (tell, told) = mpsc::channel();
    let (begun, blocked) = (Gate::new(), gate.clone());
    let begins = begun.clone();
    let busy = builder.inline(move |n| {
        tell.send(n).unwrap();
        if n == 0 {
            begins.open();
            blocked.wait();
        }
    });
    let first = busy.clone();
    thread::spawn(move || first.send(0).unwrap());
    begun.wait();
    (busy, told)
}

#[watched]
fn senders_of_an_inline_actor_wait_in_order_urgent_ones_first() {
    let gate = Gate::new();
    let (busy, told) = occupied(&Builder::new(), &gate);
    assert!(busy.try_send(1).unwrap_err().is_full());
    let mut senders = Vec::new();
    for n in 1..8 {
        let sending = busy.clone();
        senders.push(thread::spawn(move || match n {
            5 | 6 => sending.send_urgent(n).unwrap(),
            n => sending.send(n).unwrap(),
        }));
        until(|| waiting_senders(&busy) == senders.len());
    }
    gate.open();
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
    drop(busy);
    assert!(told.iter().eq([0, 5, 6, 1, 2, 3, 4, 7]));
}

#[watched]
fn who_waits_for_an_inline_actor_can_give_up_and_hears_of_the_end() {
    let gate = Gate::new();
    let (busy, told) = occupied(&Builder::new(), &gate);
    let late = busy.ask_timeout(1, Duration::from_millis(5));
    assert_eq!(late, Err(AskError::TimedOut));
    let [interrupted, closed] = [(), ()].map(|()| {
        let busy = busy.clone();
        thread::spawn(move || busy.send(2).unwrap_err())
    });
    interrupted.thread().interrupt();
    let error = interrupted.join().unwrap();
    assert_eq!(error.refusal(), &Refusal::Interrupted);
    busy.stop();
    let error = closed.join().unwrap();
    assert_eq!(error.refusal(), &Refusal::Closed);
    assert_eq!(error.into_message(), 2);
    assert_eq!(busy.exit(), None);
    gate.open();
    assert_eq!(busy.join(), Exit::Stopped);
    assert!(
        told.iter().eq([0]),
        "what the logic had is dropped at the end"
    );
}

#[watched]
fn a_full_inline_actor_does_what_its_overflow_says() {
    for overflow in [
        Overflow::Fail,
        Overflow::DropNew,
        Overflow::DropOld,
        Overflow::Stop,
    ] {
        let gate = Gate::new();
        let (busy, told) = occupied(&Builder::new().overflow(overflow), &gate);
        match (overflow, busy.ask(1)) {
            (Overflow::Fail, Err(AskError::Full)) => {}
            (Overflow::DropNew | Overflow::DropOld, Err(AskError::Gone)) => {}
            (Overflow::Stop, Err(AskError::Gone)) => {}
            other => panic!("{other:?}"),
        }
        gate.open();
        busy.close();
        let failed = matches!(busy.join(), Exit::Failed(_));
        assert_eq!(failed, overflow == Overflow::Stop);
        assert!(told.iter().eq([0]));
    }
}

#[watched]
fn a_kill_interrupts_the_sender_and_only_in_the_logic() {
    let begun = Gate::new();
    let begins = begun.clone();
    let sleeps = actor::inline(move |()| {
        begins.open();
        thread::sleep_interruptible(LONG).is_err()
    });
    let sender = {
        let sleeps = sleeps.clone();
        thread::spawn(move || (sleeps.ask(()), thread::is_interrupted()))
    };
    begun.wait();
    sleeps.kill();
    assert_eq!(sender.join().unwrap(), (Ok(true), false));
    assert_eq!(sleeps.join(), Exit::Killed);
}

#[watched]
fn a_panic_ends_an_inline_actor_and_not_its_sender() {
    let divide = actor::inline(|n: u32| 100 / n);
    assert_eq!(divide.ask(5), Ok(20));
    assert!(matches!(divide.ask(0), Err(AskError::Failed(_))));
    assert!(matches!(divide.join(), Exit::Failed(_)));
    assert_eq!(divide.ask(5), Err(AskError::Gone));
    let divide = actor::inline(|n: u32| assert!(n > 0));
    assert_eq!(divide.send(0), Ok(()));
    assert!(matches!(divide.join(), Exit::Failed(_)));
}

#[watched]
fn an_idle_inline_actor_can_be_ended_in_each_way() {
    for (end, exit) in [
        (Address::<()>::close as fn(&_), Exit::Closed),
        (Address::stop, Exit::Stopped),
        (Address::kill, Exit::Killed),
    ] {
        for idle in [actor::inline(|()| ()), actor::each(|()| ())] {
            let monitor = idle.monitor();
            end(&idle);
            assert_eq!(idle.join(), exit);
            end(&idle);
            assert_eq!(monitor.recv().unwrap(), exit);
            assert_eq!(idle.send(()).unwrap_err().refusal(), &Refusal::Closed);
        }
    }
    let dropped = actor::inline(|()| ()).monitor();
    assert_eq!(dropped.recv().unwrap(), Exit::Closed);
}

#[watched]
fn logic_that_sends_to_its_own_actor_is_a_deadlock() {
    let this = Arc::new(OnceLock::<Address<u32, Option<String>>>::new());
    let own = Arc::clone(&this);
    let again = Builder::new().name("again").inline(move |n: u32| {
        let error = own.get()?.ask(n).unwrap_err();
        Some(error.to_string())
    });
    this.set(again.clone()).unwrap();
    let from_an_actor = {
        let again = again.clone();
        actor::function(move |()| again.ask(1))
    };
    let expected = "asking would be a deadlock: again waits for again";
    assert_eq!(again.ask(1), Ok(Some(expected.to_string())));
    assert_eq!(from_an_actor.ask(()), Ok(Ok(Some(expected.to_string()))));
    assert_eq!(again.exit(), None);
    again.stop();
}

#[watched]
fn a_circle_through_an_inline_actor_is_a_deadlock() {
    // The actor's thread runs the logic, which asks the actor.
    let of_actor = Arc::new(OnceLock::<Address<(), String>>::new());
    let asked = Arc::clone(&of_actor);
    let logic = Builder::new().name("logic").inline(move |()| {
        let error = asked.get().unwrap().ask(()).unwrap_err();
        error.to_string()
    });
    let outer = Builder::new()
        .name("outer")
        .function(move |()| logic.ask(()).unwrap());
    of_actor.set(outer.clone()).unwrap();
    assert_eq!(
        outer.ask(()),
        Ok("asking would be a deadlock: logic waits for outer waits for logic".to_string())
    );
    outer.stop();
}

#[watched]
fn deadlines_reach_the_logic() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let slow = actor::consumer(move |()| blocked.wait());
    let each = {
        let slow = slow.clone();
        actor::each(move |()| slow.ask(()))
    };
    let inline = actor::inline(move |()| slow.ask(()));
    // Each returns the error of the ask in it, or is late itself.
    let late = |answer| {
        matches!(
            answer,
            Err(AskError::TimedOut) | Ok(Err(AskError::TimedOut))
        )
    };
    assert!(late(inline.ask_timeout((), Duration::from_millis(5))));
    assert!(late(each.ask_timeout((), Duration::from_millis(5))));
    each.close();
    each.join();
    gate.open();
}

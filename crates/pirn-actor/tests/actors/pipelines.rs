//! Actors in a row.

use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::error::Refusal;
use pirn_actor::{
    self as actor, Actor, Address, AskError, Builder, Context, Exit, Handler, Restarts,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(3600);

#[watched]
fn stages_work_at_the_same_time() {
    let all_at_work = Arc::new(Barrier::new(3));
    let stage = |stage: u32| {
        let all_at_work = Arc::clone(&all_at_work);
        actor::function(move |document: u32| {
            // The last stage at the first document, the first at the last.
            if document + stage == 2 {
                all_at_work.wait();
            }
            document
        })
    };
    let publish = stage(0).then(stage(1)).then(stage(2));
    let published = [0, 1, 2].map(|document| publish.ask_later(document).unwrap());
    let published = published.map(|published| published.recv().unwrap());
    assert_eq!(published, [0, 1, 2]);
}

#[watched]
fn an_ask_gets_the_answer_of_the_last_stage_and_a_message_gets_there() {
    let (tell, told) = mpsc::channel();
    let parse = actor::function(|text: &str| text.parse::<u32>().unwrap());
    let last = actor::function(move |number: u32| {
        tell.send(number).unwrap();
        number * 2
    });
    let whole = parse.then(&last);
    assert_eq!(whole.ask("21"), Ok(42));
    whole.send("1").unwrap();
    whole.try_send("2").unwrap();
    assert_eq!(whole.ask_timeout("3", LONG), Ok(6));
    let later = whole.ask_later("4").unwrap();
    assert_eq!(pirn::block_on(later), Ok(8));
    whole.close();
    whole.join();
    drop((whole, last));
    assert!(told.iter().eq([21, 1, 2, 3, 4]));
}

struct Add(u32);

impl Handler<u32> for Add {
    type Reply = u32;
    fn handle(&mut self, number: u32, _: &Context<Self>) -> u32 {
        number + self.0
    }
}

#[watched]
fn references_are_stages_and_rows_of_rows_too() {
    let [one, ten] = [1, 10].map(|number| actor::spawn(Add(number)));
    let eleven: Address<u32, u32> = one.then(&ten);
    let row = eleven.then(&eleven).then(one.address()).then(&eleven);
    assert_eq!(row.ask(0), Ok(34));
    assert_eq!(&*eleven.name(), format!("{} > {}", one.name(), ten.name()));
}

#[watched]
fn messages_of_one_sender_stay_in_order() {
    let (tell, told) = mpsc::channel();
    let pass = Builder::new().capacity(3);
    let first = pass.function(|n: u32| n);
    let second = pass.function(|n: u32| n);
    let last = pass.consumer(move |n: u32| tell.send(n).unwrap());
    let row = first.then(&second).then(&last);
    (0..5000).for_each(|n| row.send(n).unwrap());
    row.close();
    assert_eq!(row.join(), Exit::Closed);
    drop((row, last));
    assert!(told.iter().eq(0..5000));
}

#[watched]
fn a_slow_last_stage_holds_up_the_sender() {
    let gate = Gate::new();
    let (blocked, (tell, told)) = (gate.clone(), mpsc::channel());
    let small = Builder::new().capacity(2);
    let first = small.function(|n: u32| n);
    let slow = small.consumer(move |n: u32| {
        blocked.wait();
        tell.send(n).unwrap();
    });
    let row = first.then(&slow);
    // One at the slow stage and two before it; one at the first and two before that.
    for n in 0..6 {
        row.send(n).unwrap();
    }
    until(|| slow.len() == 2 && first.len() == 2);
    assert_eq!(row.len(), 4);
    let error = row.try_send(6).unwrap_err();
    assert!(error.is_full());
    assert_eq!(error.into_message(), 6);
    assert_eq!(
        row.ask_timeout(7, Duration::from_millis(5)),
        Err(AskError::TimedOut)
    );
    let waiting = {
        let row = row.clone();
        thread::spawn(move || row.send(6))
    };
    gate.open();
    waiting.join().unwrap().unwrap();
    row.close();
    row.join();
    drop((row, slow));
    assert!(told.iter().eq(0..7));
}

#[watched]
fn urgent_messages_come_first_at_the_first_stage() {
    let gate = Gate::new();
    let (blocked, (begun, begins), (tell, told)) = (gate.clone(), mpsc::channel(), mpsc::channel());
    let first = actor::function(move |n: u32| {
        begun.send(()).unwrap();
        blocked.wait();
        n
    });
    let row = first.then(actor::consumer(move |n: u32| tell.send(n).unwrap()));
    row.send(0).unwrap();
    begins.recv().unwrap();
    row.send(1).unwrap();
    row.send_urgent(2).unwrap();
    gate.open();
    row.close();
    row.join();
    drop((row, first));
    assert!(told.iter().eq([0, 2, 1]));
}

#[watched]
fn an_ask_hears_of_a_stage_that_fails() {
    for failing in 0..3 {
        let stage = |stage: u32| {
            actor::function(move |n: u32| {
                assert_ne!((stage, n), (failing, 1), "not one");
                n
            })
        };
        let row = stage(0).then(stage(1)).then(stage(2));
        assert_eq!(row.ask(0), Ok(0));
        let Err(AskError::Failed(failure)) = row.ask(1) else {
            panic!("it has failed")
        };
        assert!(failure.to_string().contains("not one"), "{failure}");
        // That stage is gone, and the ask says so, wherever it is.
        assert_eq!(row.ask(2), Err(AskError::Gone));
        row.close();
        assert!(matches!(row.join(), Exit::Failed(_)));
    }
}

#[watched]
fn a_refused_message_comes_back_from_the_first_stage() {
    let first = actor::function(|n: u32| n);
    let row = first.then(actor::consumer(|_| ()));
    first.stop();
    first.join();
    let error = row.send(5).unwrap_err();
    assert_eq!(
        (error.refusal(), error.to_string().contains(&*first.name())),
        (&Refusal::Closed, true)
    );
    assert_eq!(error.into_message(), 5);
    assert_eq!(row.ask_later(6).unwrap_err().into_message(), 6);
    assert_eq!(row.send_urgent(7).unwrap_err().into_message(), 7);
}

#[watched]
fn a_sent_message_that_a_later_stage_does_not_take_is_told() {
    let (tell, told) = mpsc::channel();
    let first = Builder::new()
        .on_undelivered(move |name| tell.send(name.to_string()).unwrap())
        .function(|n: u32| format!("{n}"));
    let (middle, last) = (
        actor::function(|text: String| text),
        actor::consumer(|_: String| ()),
    );
    let row = first.then(&middle).then(&last);
    middle.stop();
    middle.join();
    row.send(1).unwrap();
    assert_eq!(told.recv().unwrap(), "String");
    // An asker hears it by itself.
    assert_eq!(row.ask(2), Err(AskError::Gone));
    row.stop();
    row.join();
    drop((row, first));
    assert_eq!(told.iter().count(), 0);
}

#[watched]
fn a_row_is_closed_in_order_and_each_stage_handles_what_it_has() {
    let gate = Gate::new();
    let ended = Arc::new(Mutex::new(Vec::new()));
    let stage = |stage: u32, gate: Gate| {
        let function = actor::function(move |n: u32| {
            gate.wait();
            n + 1
        });
        let ended = Arc::clone(&ended);
        function.on_exit(move |exit| ended.lock().unwrap().push((stage, exit.clone())));
        function
    };
    let opened = Gate::new();
    opened.open();
    let row = stage(0, gate.clone())
        .then(stage(1, opened.clone()))
        .then(stage(2, opened));
    let replies: Vec<_> = (0..10).map(|n| row.ask_later(n).unwrap()).collect();
    row.close();
    assert_eq!(row.send(0).unwrap_err().refusal(), &Refusal::Closed);
    assert_eq!(row.exit(), None);
    gate.open();
    let answers = replies.into_iter().map(|reply| reply.recv().unwrap());
    assert!(answers.eq(3..13));
    assert_eq!(row.join(), Exit::Closed);
    let in_order = [0, 1, 2].map(|stage| (stage, Exit::Closed));
    assert_eq!(*ended.lock().unwrap(), in_order);
}

#[watched]
fn a_row_is_closed_in_order_when_nobody_can_send_to_it() {
    let gate = Gate::new();
    let (blocked, (tell, told)) = (gate.clone(), mpsc::channel());
    let row = {
        let first = actor::function(move |n: u32| {
            blocked.wait();
            n
        });
        first.then(actor::consumer(move |n: u32| tell.send(n).unwrap()))
    };
    let monitor = row.monitor();
    (0..10).for_each(|n| row.send(n).unwrap());
    drop(row);
    gate.open();
    assert_eq!(monitor.recv().unwrap(), Exit::Closed);
    assert!(told.iter().eq(0..10));
}

#[watched]
fn dropping_a_row_leaves_stages_open_that_others_use() {
    let (first, last) = (actor::function(|n: u32| n), actor::function(|n: u32| n));
    drop(first.then(&last));
    assert_eq!((first.ask(1), last.ask(2)), (Ok(1), Ok(2)));
}

#[watched]
fn a_kill_and_a_stop_are_for_all_stages() {
    for (end, exit) in [
        (<dyn Actor>::kill as fn(&_), Exit::Killed),
        (<dyn Actor>::stop, Exit::Stopped),
    ] {
        let (gate, begun) = (Gate::new(), Gate::new());
        let (blocked, begins, is_killed) = (gate.clone(), begun.clone(), exit == Exit::Killed);
        let busy = actor::function(move |n: u32| {
            begins.open();
            if is_killed {
                thread::sleep_interruptible(LONG).unwrap_err();
            } else {
                blocked.wait();
            }
            n
        });
        let idle = actor::function(|n: u32| n);
        let row = busy.then(&idle);
        let replies = [0, 1].map(|n| row.ask_later(n).unwrap());
        begun.wait();
        end(&*row);
        gate.open();
        assert_eq!(row.join(), exit);
        assert_eq!(idle.exit(), Some(exit));
        let answers = replies.map(|reply| reply.recv());
        assert_eq!(answers, [Err(AskError::Gone), Err(AskError::Gone)]);
    }
}

#[watched]
fn an_ask_hears_of_a_stage_that_is_killed_while_it_waits_for_room() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let first = actor::function(|n: u32| n);
    let (begun, begins) = mpsc::channel();
    let slow = Builder::new().capacity(1).function(move |n: u32| {
        begun.send(()).unwrap();
        blocked.wait();
        n
    });
    let row = first.then(&slow);
    let replies = [0, 1, 2].map(|n| row.ask_later(n).unwrap());
    // One is being handled, one is in the mailbox, and the first stage waits with another.
    begins.recv().unwrap();
    until(|| {
        let all = actor::snapshot::take();
        let is_full = |actor: &actor::snapshot::ActorInfo| (actor.begun, actor.senders) == (1, 1);
        all.iter()
            .any(|actor| actor.name == slow.name() && is_full(actor))
    });
    first.kill();
    assert_eq!(first.join(), Exit::Killed);
    gate.open();
    let answers = replies.map(|reply| reply.recv());
    assert_eq!(answers, [Ok(0), Ok(1), Err(AskError::Gone)]);
}

#[watched]
fn a_panic_of_somebody_who_watches_a_stage_does_not_keep_the_row_from_closing() {
    let (first, last) = (actor::function(|n: u32| n), actor::function(|n: u32| n));
    first.on_exit(|_| std::panic::resume_unwind(Box::new("a watcher")));
    let row = first.then(&last);
    row.close();
    assert_eq!(row.join(), Exit::Closed);
    assert_eq!(last.exit(), Some(Exit::Closed));
}

struct Left;

impl Handler<u32> for Left {
    type Reply = Option<Duration>;
    fn handle(&mut self, _: u32, context: &Context<Self>) -> Self::Reply {
        Some(
            context
                .deadline()?
                .saturating_duration_since(Instant::now()),
        )
    }
}

#[watched]
fn deadlines_travel_along() {
    let row = actor::spawn(Add(1)).then(&actor::spawn(Add(1)));
    let row: Address<u32, Option<Duration>> = row.then(&actor::spawn(Left));
    assert_eq!(row.ask(0), Ok(None));
    let left = row.ask_timeout(0, LONG).unwrap().unwrap();
    assert!(left <= LONG && left > LONG / 2, "{left:?}");
}

#[watched]
fn a_request_that_nobody_waits_for_goes_no_further() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let first = actor::function(|n: u32| n);
    let ((begun, begins), mut handled) = (mpsc::channel(), 0);
    let last = actor::function(move |_: u32| {
        begun.send(()).unwrap();
        blocked.wait();
        handled += 1;
        handled
    });
    let row = first.then(&last);
    let replies: Vec<_> = (0..5).map(|n| row.ask_later(n).unwrap()).collect();
    begins.recv().unwrap();
    until(|| last.len() == 4);
    drop(replies);
    gate.open();
    assert_eq!(
        row.ask(0),
        Ok(2),
        "the one that had begun came before it, and no other"
    );
}

#[watched]
fn a_circle_through_the_last_stage_is_a_deadlock() {
    struct Asks(Option<Address<(), Result<(), AskError>>>);
    impl Handler<()> for Asks {
        type Reply = Result<(), AskError>;
        fn handle(&mut self, (): (), _: &Context<Self>) -> Self::Reply {
            self.0.as_ref().unwrap().ask(())?
        }
    }
    let asks = actor::spawn(Asks(None));
    let back = asks.address::<()>();
    let last = actor::function(move |()| back.ask(())?);
    let row = actor::function(|()| ()).then(&last);
    asks.run(move |asks| asks.0 = Some(row)).unwrap();
    let answer = asks.ask(()).unwrap();
    assert!(matches!(answer, Err(AskError::Deadlock(_))), "{answer:?}");
    asks.kill();
}

/// A number that is different each time, without a pattern.
fn random(seed: &AtomicUsize) -> usize {
    let state = seed.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed) as u64;
    let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) >> 33) as usize
}

#[watched]
fn each_ask_ends_whatever_happens_to_the_stages() {
    let seed = Arc::new(AtomicUsize::new(7));
    let stage = || {
        let seed = Arc::clone(&seed);
        let builder = Builder::new().capacity(2).restarts(Restarts::at_most(30));
        let recipe = move || {
            let seed = Arc::clone(&seed);
            actor::Function::new(move |n: usize| {
                match random(&seed) % 16 {
                    0 => std::panic::resume_unwind(Box::new("at random")), // unheard by the hook
                    1..4 => thread::yield_now(),
                    _ => {}
                }
                n + 1
            })
        };
        builder.spawn(recipe).unwrap()
    };
    let mut answered = 0;
    for round in 0..20 {
        let stages = [stage(), stage(), stage(), stage()];
        let [a, b, c, d] = &stages;
        let row = a.then(b).then(c.then(d));
        let askers = (0..8).map(|_| {
            let (row, seed) = (row.clone(), Arc::clone(&seed));
            thread::spawn(move || {
                let answers = (0..50).map(|n| match random(&seed) % 4 {
                    0 => row.ask_timeout(n, Duration::from_micros(200)) == Ok(n + 4),
                    1 => row.send(n).is_err(),
                    _ => row.ask(n) == Ok(n + 4),
                });
                answers.filter(|answered| *answered).count()
            })
        });
        let askers: Vec<_> = askers.collect();
        match round % 4 {
            0 => stages[random(&seed) % 4].kill(),
            1 => row.close(),
            _ => {}
        }
        answered += askers
            .into_iter()
            .map(|asker| asker.join().unwrap())
            .sum::<usize>();
        row.close();
        row.join();
    }
    assert!(answered > 0);
}

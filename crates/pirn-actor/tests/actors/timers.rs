//! Messages that are sent later.

use crate::common::{Gate, until, watched};
use pirn_actor::process::Inbox;
use pirn_actor::time::Period;
use pirn_actor::{self as actor, Address, Builder, Context, Exit, Handler, Overflow, Restarts};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// An actor that passes on what it gets.
fn listener<M: Send + 'static>() -> (Address<M>, mpsc::Receiver<M>) {
    let (tell, told) = mpsc::channel();
    (actor::consumer(move |m| drop(tell.send(m))), told)
}

/// An actor with one place, which is taken, until the gate opens.
fn full(overflow: Overflow) -> (Address<u32>, mpsc::Receiver<u32>, Gate) {
    let (gate, begun) = (Gate::new(), Gate::new());
    let (blocked, begins) = (gate.clone(), begun.clone());
    let (tell, told) = mpsc::channel();
    let full = Builder::new()
        .capacity(1)
        .overflow(overflow)
        .consumer(move |n| {
            begins.open();
            blocked.wait();
            let _ = tell.send(n);
        });
    full.send(0).unwrap();
    begun.wait();
    full.send(1).unwrap();
    (full, told, gate)
}

#[watched]
fn messages_are_sent_when_their_time_has_come_and_in_its_order() {
    let (to, told) = listener();
    let start = Instant::now();
    actor::time::send_at(&to, start, "now");
    actor::time::send_at(&to, start + 10 * MS, "soon");
    actor::time::send_after(&to, 20 * MS, "later");
    assert_eq!(told.recv().unwrap(), "now");
    assert_eq!(told.recv().unwrap(), "soon");
    assert!(start.elapsed() >= 10 * MS);
    assert_eq!(told.recv().unwrap(), "later");
    assert!(start.elapsed() >= 20 * MS);
}

#[watched]
fn a_time_that_is_too_far_away_to_be_represented_is_never() {
    let (to, _told) = listener();
    let timers = [
        actor::time::send_after(&to, Duration::MAX, ()),
        actor::time::every(&to, Duration::MAX, ()),
        actor::time::every_after(&to, Duration::MAX, ()),
    ];
    assert!(timers.iter().all(|timer| !timer.is_over()));
    assert!(timers.iter().all(|timer| timer.cancel()));
}

#[watched]
fn a_cancelled_timer_sends_nothing() {
    let (to, told) = listener();
    // On a busy machine the time may be over before it is cancelled.
    let first = loop {
        let timer = actor::time::send_after(&to, 5 * MS, 1);
        match timer.cancel() {
            true => break timer,
            false => assert_eq!(told.recv().unwrap(), 1),
        }
    };
    let second = actor::time::send_after(&to, 5 * MS, 2);
    assert!(!first.cancel());
    assert_eq!(told.recv().unwrap(), 2);
    until(|| second.is_over());
    assert!(!second.cancel());
    assert!(told.try_recv().is_err());
}

#[watched]
fn what_is_in_the_mailbox_stays_when_its_timer_is_cancelled() {
    let (to, told, gate) = full(Overflow::Wait);
    let timer = actor::time::every(&to, MS, 2);
    let once = actor::time::send_after(&to, MS, 3);
    until(|| once.is_over());
    timer.cancel();
    once.cancel();
    gate.open();
    assert!(told.iter().take(3).eq([0, 1, 3]));
}

#[watched]
fn a_timer_does_not_keep_its_actor_open_and_ends_with_it() {
    let held = Arc::new(());
    let (to, _told) = listener();
    let timers = [
        actor::time::send_after(&to, HOUR, Arc::clone(&held)),
        actor::time::every(&to, HOUR, Arc::clone(&held)),
        actor::time::every_after(&to, HOUR, Arc::clone(&held)),
    ];
    assert_eq!(Arc::strong_count(&held), 4);
    let monitor = to.monitor();
    drop(to);
    assert_eq!(monitor.recv().unwrap(), Exit::Closed);
    until(|| Arc::strong_count(&held) == 1);
    assert!(timers.iter().all(|timer| timer.is_over()));
}

#[watched]
fn a_timer_for_an_actor_that_has_ended_is_over() {
    let (to, _told) = listener();
    to.stop();
    to.join();
    let held = Arc::new(());
    let timer = actor::time::send_after(&to, HOUR, Arc::clone(&held));
    assert!(timer.is_over());
    assert_eq!(Arc::strong_count(&held), 1);
}

#[watched]
fn a_process_has_timers_too() {
    let sum = actor::process::spawn(|inbox: &mut Inbox<u32>| {
        let mut sum = 0;
        while sum < 100 {
            sum += inbox.recv().unwrap();
        }
        sum
    });
    let timers = [
        actor::time::send_after(&sum, MS, 1),
        actor::time::every(&sum, MS, 10),
        actor::time::every_after(&sum, MS, 10),
        actor::time::send_after(&sum, HOUR, 1),
    ];
    assert!(sum.into_result().unwrap() >= 100);
    until(|| timers.iter().all(|timer| timer.is_over()));
}

#[watched]
fn a_single_message_finds_room_in_a_full_mailbox() {
    for overflow in [
        Overflow::Wait,
        Overflow::Fail,
        Overflow::DropNew,
        Overflow::DropOld,
        Overflow::Stop,
    ] {
        let (to, told, gate) = full(overflow);
        let timer = actor::time::send_after(&to, MS, 2);
        until(|| timer.is_over());
        assert_eq!(to.len(), 2);
        gate.open();
        assert!(told.iter().take(3).eq([0, 1, 2]), "{overflow:?}");
    }
}

#[watched]
fn a_full_mailbox_stops_no_other_timer_and_what_is_missed_is_not_sent_later() {
    let (to, told, gate) = full(Overflow::Wait);
    let (other, heard) = listener();
    let ticks = actor::time::every(&to, MS, 2);
    let others = actor::time::every(&other, MS, ());
    assert_eq!(heard.iter().take(10).count(), 10);
    assert_eq!(to.len(), 1, "no tick has a place");
    ticks.cancel();
    others.cancel();
    gate.open();
    drop(to);
    assert!(told.iter().eq([0, 1]));
}

#[watched]
fn a_rate_is_kept_and_the_number_of_messages_too() {
    let (to, told) = listener();
    let start = Instant::now();
    let timer = actor::time::every(&to, Period::new(3 * MS).times(10), ());
    assert_eq!(told.iter().take(10).count(), 10);
    assert!(start.elapsed() >= 30 * MS);
    until(|| timer.is_over());
    drop(to);
    assert_eq!(told.iter().count(), 0);
}

#[watched]
fn the_number_of_messages_is_exact_however_short_the_period() {
    for times in 0..20 {
        let (to, told) = listener();
        let period = Period::new(Duration::from_nanos(1)).times(times);
        let timers = [
            actor::time::every(&to, period, ()),
            actor::time::every_after(&to, period, ()),
        ];
        until(|| timers.iter().all(|timer| timer.is_over()));
        drop(to);
        assert_eq!(told.iter().count() as u64, 2 * times);
    }
}

#[watched]
fn messages_that_are_missed_do_not_count() {
    let (to, told, gate) = full(Overflow::Wait);
    let (other, heard) = listener();
    let timer = actor::time::every(&to, Period::new(MS).times(3), 2);
    let others = actor::time::every(&other, MS, ());
    assert_eq!(heard.iter().take(10).count(), 10);
    others.cancel();
    assert!(!timer.is_over());
    gate.open();
    assert!(told.iter().take(5).eq([0, 1, 2, 2, 2]));
}

#[watched]
fn with_a_pause_the_next_is_sent_after_the_one_before_was_handled() {
    let (step, steps) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let slow = actor::consumer(move |()| {
        begun.send(Instant::now()).unwrap();
        let _ = steps.recv();
    });
    let (other, heard) = listener();
    actor::time::every_after(&slow, MS, ());
    for _ in 0..5 {
        begins.recv().unwrap();
        let ticks = actor::time::every(&other, MS, ());
        assert_eq!(heard.iter().take(3).count(), 3);
        ticks.cancel();
        assert!(slow.is_empty(), "one at a time");
        let released = Instant::now();
        step.send(()).unwrap();
        let next = begins.recv().unwrap();
        assert!(next - released >= MS);
        step.send(()).unwrap();
    }
    drop(step);
    slow.stop();
}

/// Fails at every other message.
struct Fails(Arc<AtomicUsize>);
impl Handler<()> for Fails {
    type Reply = ();
    fn handle(&mut self, (): (), _: &Context<Self>) {
        let n = self.0.fetch_add(1, Ordering::SeqCst);
        assert!(n.is_multiple_of(2), "every other time");
    }
}

#[watched]
fn a_restart_does_not_end_a_timer() {
    let handled = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&handled);
    let fails = Builder::new()
        .restarts(Restarts::at_most(1_000_000))
        .spawn(move || Fails(Arc::clone(&counts)))
        .unwrap();
    let pause = actor::time::every_after(&fails, Duration::from_micros(100), ());
    until(|| handled.load(Ordering::SeqCst) >= 6);
    pause.cancel();
    let before = handled.load(Ordering::SeqCst);
    let rate = actor::time::every(&fails, Duration::from_micros(100), ());
    until(|| handled.load(Ordering::SeqCst) >= before + 6);
    assert!(!rate.is_over());
    fails.stop();
}

/// Sends itself messages, and holds something.
struct Own(mpsc::Sender<&'static str>);
struct Begin;
#[derive(Clone)]
struct Tick(&'static str);

impl Handler<Begin> for Own {
    type Reply = ();
    fn handle(&mut self, _: Begin, context: &Context<Self>) {
        context.send_after(MS, Tick("once"));
        context.every(MS, Tick("rate"));
        context.every_after(MS, Tick("pause"));
        context.send_after(HOUR, Tick("never"));
    }
}
impl Handler<Tick> for Own {
    type Reply = ();
    fn handle(&mut self, Tick(tick): Tick, _: &Context<Self>) {
        let _ = self.0.send(tick);
    }
}

#[watched]
fn the_timers_of_an_actor_do_not_keep_it_open() {
    for end in [
        |own: actor::Ref<Own>| drop(own),
        |own: actor::Ref<Own>| own.stop(),
        |own: actor::Ref<Own>| own.kill(),
    ] {
        let (tell, told) = mpsc::channel();
        let own = actor::spawn(Own(tell));
        own.send(Begin).unwrap();
        let mut missing = vec!["once", "rate", "pause"];
        while !missing.is_empty() {
            let tick = told.recv().unwrap();
            missing.retain(|other| *other != tick);
        }
        let monitor = own.monitor();
        end(own);
        monitor.recv().unwrap();
        // The state is dropped: nothing sends any more.
        assert!(told.iter().all(|tick| tick != "never"));
    }
}

#[watched]
fn many_timers_of_many_actors_end_with_them() {
    let held = Arc::new(());
    for _ in 0..20 {
        let actors: Vec<_> = (0..50)
            .map(|_| {
                let (to, told) = listener();
                for n in 0..20 {
                    let delay = if n % 2 == 0 { HOUR } else { MS / 10 };
                    actor::time::every(&to, delay, Arc::clone(&held));
                    actor::time::every_after(&to, delay, Arc::clone(&held));
                }
                (to, told)
            })
            .collect();
        let monitors: Vec<_> = actors.iter().map(|(to, _)| to.monitor()).collect();
        for (n, (to, _)) in actors.iter().enumerate() {
            if n % 2 == 0 {
                to.stop();
            }
        }
        drop(actors);
        monitors.iter().for_each(|monitor| drop(monitor.recv()));
        until(|| Arc::strong_count(&held) == 1);
    }
}

//! Names.

use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::error::{LookupError, Refusal};
use pirn_actor::process::Inbox;
use pirn_actor::registry::{Named, Registry, Undelivered};
use pirn_actor::{self as actor, Address, Builder, Context, Handler, Ref};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

fn listener<M: Send + 'static>() -> (Address<M>, mpsc::Receiver<M>) {
    let (tell, told) = mpsc::channel();
    (actor::consumer(move |m| drop(tell.send(m))), told)
}

fn undelivered(registry: &Registry) -> mpsc::Receiver<Undelivered> {
    let (tell, told) = mpsc::channel();
    registry.on_undelivered(move |undelivered| drop(tell.send(undelivered)));
    told
}

struct Log(mpsc::Sender<String>);
impl Handler<u32> for Log {
    type Reply = usize;
    fn handle(&mut self, n: u32, _: &Context<Self>) -> usize {
        let _ = self.0.send(n.to_string());
        n as usize
    }
}
impl Handler<&'static str> for Log {
    type Reply = ();
    fn handle(&mut self, text: &'static str, _: &Context<Self>) {
        let _ = self.0.send(text.to_string());
    }
}

#[watched]
fn an_actor_is_found_by_its_name_and_its_types() {
    let registry = Registry::new();
    let (tell, told) = mpsc::channel();
    let log = actor::spawn(Log(tell));
    registry
        .register("log", Named::new(&log).accepts::<u32>())
        .unwrap();
    let found: Ref<Log> = registry.get("log").unwrap();
    assert_eq!(found, log);
    let numbers: Address<u32, usize> = registry.address("log").unwrap();
    assert_eq!(numbers.ask(7), Ok(7));
    registry.send("log", 8_u32).unwrap();
    assert!(told.iter().take(2).eq(["7", "8"]));
    assert_eq!(registry.names(), ["log".into()]);
}

#[watched]
fn a_name_or_a_type_that_is_not_known_is_an_error() {
    let registry = Registry::new();
    let (tell, _told) = mpsc::channel();
    let log = actor::spawn(Log(tell));
    registry.register("log", &log).unwrap();
    let unknown = LookupError::Unknown {
        name: "logs".into(),
    };
    assert_eq!(registry.get::<Log>("logs").unwrap_err(), unknown);
    let wrong = LookupError::WrongType {
        name: "log".into(),
        kind: "Log",
    };
    assert_eq!(registry.get::<String>("log").unwrap_err(), wrong);
    assert_eq!(registry.address::<u32, usize>("log").unwrap_err(), wrong);
    let error = registry.send("logs", 1_u32).unwrap_err();
    assert_eq!(error.refusal(), &Refusal::Unknown);
    assert_eq!(error.into_message(), 1);
    let error = registry.send_early("log", 2_u32, 10, HOUR).unwrap_err();
    assert_eq!(error.refusal(), &Refusal::WrongType);
}

#[watched]
fn a_name_belongs_to_one_actor_at_a_time() {
    let registry = Registry::new();
    let (first, _told) = listener::<u32>();
    let (second, _told) = listener::<u32>();
    registry.register("name", &first).unwrap();
    let taken = registry.register("name", &second).unwrap_err();
    assert_eq!(&*taken.name, "name");
    first.stop();
    first.join();
    // Whether or not the registry has heard of the end.
    registry.register("name", &second).unwrap();
    assert_eq!(registry.address::<u32, ()>("name").unwrap(), second);
    assert!(registry.register("name", &first).is_err());
}

#[watched]
fn a_registry_keeps_no_actor_open() {
    let registry = Registry::new();
    let (to, _told) = listener::<u32>();
    registry.register("name", &to).unwrap();
    let target = registry.target::<u32>("name").unwrap();
    let monitor = to.monitor();
    drop(to);
    assert_eq!(monitor.recv().unwrap(), actor::Exit::Closed);
    assert!(registry.address::<u32, ()>("name").is_err());
    assert!(registry.names().is_empty());
    assert!(actor::address::Tell::send(&target, 1).is_err());
}

#[watched]
fn a_process_has_a_name_too() {
    let registry = Registry::new();
    registry.send_early("sum", 30_u32, 1, HOUR).unwrap();
    let sum = actor::process::spawn(|inbox: &mut Inbox<u32>| {
        inbox.recv().unwrap() + inbox.recv().unwrap()
    });
    registry.register("sum", &sum).unwrap();
    registry.send("sum", 12_u32).unwrap();
    assert_eq!(sum.into_result().unwrap(), 42);
    assert!(registry.send("sum", 1_u32).is_err());
}

#[watched]
fn early_messages_come_first_in_order_and_whatever_the_capacity() {
    let registry = Registry::new();
    registry.send_early("log", 1_u32, 4, HOUR).unwrap();
    registry.send_early("log", "two", 4, HOUR).unwrap();
    registry.send_early("log", 3_u32, 4, HOUR).unwrap();
    let (tell, told) = mpsc::channel();
    let (gate, begun) = (Gate::new(), Gate::new());
    let log = Builder::new().capacity(1).spawn_with(Log(tell));
    let (blocked, begins) = (gate.clone(), begun.clone());
    log.run_detached(move |_| {
        begins.open();
        blocked.wait();
    })
    .unwrap();
    begun.wait();
    log.send(99_u32).unwrap(); // by code that knows more than the name
    let named = Named::new(&log).accepts::<u32>().accepts::<&str>();
    registry.register("log", named).unwrap();
    gate.open();
    registry.send_early("log", "last", 0, HOUR).unwrap();
    assert!(told.iter().take(5).eq(["1", "two", "3", "99", "last"]));
}

#[watched]
fn early_messages_are_limited_in_number_and_time_and_none_is_lost() {
    let registry = Registry::new();
    let undelivered = undelivered(&registry);
    registry.send_early("nobody", 1, 2, MS).unwrap();
    registry.send_early("nobody", 2, 2, HOUR).unwrap();
    let error = registry.send_early("nobody", 3, 2, HOUR);
    // Unless the first one is gone already.
    if let Err(error) = error {
        assert!(error.is_full());
        assert_eq!(error.into_message(), 3);
    }
    let late = undelivered.recv().unwrap();
    assert_eq!((&*late.name, late.why), ("nobody", Refusal::TimedOut));
    assert_eq!(late.message.downcast_ref::<i32>(), Some(&1));
    drop(registry);
    let left = undelivered.recv().unwrap();
    assert_eq!(left.why, Refusal::Closed);
    assert_eq!(left.message.downcast_ref::<i32>(), Some(&2));
}

#[watched]
fn early_messages_that_the_actor_does_not_accept_are_not_lost() {
    let registry = Registry::new();
    let undelivered = undelivered(&registry);
    registry.send_early("numbers", "text", 9, HOUR).unwrap();
    registry.send_early("numbers", 5_u32, 9, HOUR).unwrap();
    let (to, told) = listener::<u32>();
    registry.register("numbers", &to).unwrap();
    assert_eq!(told.recv().unwrap(), 5);
    let wrong = undelivered.recv().unwrap();
    assert_eq!(wrong.why, Refusal::WrongType);
    assert_eq!(wrong.message.downcast_ref(), Some(&"text"));
    // One that has ended accepts nothing.
    registry.send_early("ended", 6_u32, 9, HOUR).unwrap();
    to.stop();
    to.join();
    registry.register("ended", &to).unwrap();
    assert_eq!(undelivered.recv().unwrap().why, Refusal::Closed);
}

#[watched]
fn a_panic_of_the_callback_is_not_its_end() {
    let registry = Registry::new();
    let (tell, told) = mpsc::channel();
    registry.on_undelivered(move |undelivered| {
        let n = *undelivered.message.downcast::<u32>().unwrap();
        assert!(n > 0, "the callback");
        tell.send(n).unwrap();
    });
    registry
        .send_early("nobody", 0_u32, 9, Duration::ZERO)
        .unwrap();
    registry.send_early("nobody", 1_u32, 9, MS).unwrap();
    assert_eq!(told.recv().unwrap(), 1);
}

#[watched]
fn after_an_end_the_name_is_free_and_early_messages_wait_for_the_next_actor() {
    let registry = Registry::new();
    let (to, _told) = listener::<u32>();
    registry.register("name", &to).unwrap();
    to.stop();
    to.join();
    until(|| registry.send_early("name", 7_u32, 5, HOUR).is_ok());
    let (next, told) = listener::<u32>();
    registry.register("name", &next).unwrap();
    assert_eq!(told.recv(), Ok(7));
}

#[watched]
fn names_are_given_back_and_take_no_memory() {
    let registry = Registry::new();
    for n in 0..2_000 {
        let (to, _told) = listener::<u32>();
        registry.register(format!("name {n}"), &to).unwrap();
        to.stop();
        to.join();
    }
    until(|| registry.names().is_empty());
    let (to, _told) = listener::<u32>();
    for n in 0..2_000 {
        // Nothing is left of these, in the actor, either.
        registry.register("again", &to).unwrap();
        assert!(registry.unregister("again"), "{n}");
    }
    registry.send_early("again", 1_u32, 1, HOUR).unwrap();
}

#[watched]
fn registrations_ends_and_early_messages_race_without_loss() {
    let registry = Registry::new();
    let lost = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&lost);
    registry.on_undelivered(move |_| {
        counts.fetch_add(1, Ordering::SeqCst);
    });
    let (handled, accepted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let is_over = Arc::new(AtomicBool::new(false));
    let registrars: Vec<_> = (0..2)
        .map(|_| {
            let (registry, handled) = (registry.clone(), Arc::clone(&handled));
            thread::spawn(move || {
                let mut registered = 0;
                while registered < 150 {
                    let counts = Arc::clone(&handled);
                    let to = actor::consumer(move |_: u64| {
                        counts.fetch_add(1, Ordering::SeqCst);
                    });
                    if registry.register("name", &to).is_ok() {
                        registered += 1;
                        thread::yield_now();
                    }
                    // What it has, it handles.
                    to.close();
                    to.join();
                }
            })
        })
        .collect();
    let senders: Vec<_> = (0..3)
        .map(|_| {
            let registry = registry.clone();
            let (accepted, is_over) = (Arc::clone(&accepted), Arc::clone(&is_over));
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    if registry.send_early("name", 1_u64, 20, MS).is_ok() {
                        accepted.fetch_add(1, Ordering::SeqCst);
                    }
                    thread::yield_now();
                }
            })
        })
        .collect();
    registrars
        .into_iter()
        .for_each(|registrar| registrar.join().unwrap());
    is_over.store(true, Ordering::Relaxed);
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
    until(|| {
        let known = handled.load(Ordering::SeqCst) + lost.load(Ordering::SeqCst);
        known == accepted.load(Ordering::SeqCst)
    });
    assert!(handled.load(Ordering::SeqCst) > 0);
}

#[watched]
fn many_register_one_name_and_one_has_it() {
    for _ in 0..50 {
        let registry = Registry::new();
        let actors: Vec<_> = (0..4).map(|_| listener::<u32>().0).collect();
        let registered: Vec<_> = actors
            .iter()
            .map(|to| {
                let (registry, to) = (registry.clone(), to.clone());
                thread::spawn(move || registry.register("name", &to).is_ok())
            })
            .collect();
        let registered: Vec<_> = registered
            .into_iter()
            .map(|registers| registers.join().unwrap())
            .collect();
        assert_eq!(registered.iter().filter(|is| **is).count(), 1);
        let at = registered.iter().position(|is| *is).unwrap();
        assert_eq!(registry.address::<u32, ()>("name").unwrap(), actors[at]);
    }
}

#[watched]
fn there_is_one_registry_for_the_whole_program() {
    let (to, told) = listener::<u32>();
    actor::registry::global()
        .register("tests/one", &to)
        .unwrap();
    let sends = thread::spawn(|| actor::registry::global().send("tests/one", 7_u32).unwrap());
    sends.join().unwrap();
    assert_eq!(told.recv().unwrap(), 7);
}

/// Uses the registry when it is dropped.
struct Asks(Registry);

impl Drop for Asks {
    fn drop(&mut self) {
        self.0.names();
    }
}

#[watched]
fn a_message_that_no_actor_gets_may_use_the_registry_when_it_is_dropped() {
    let registry = Registry::new();
    let early = |limit| {
        let sent = registry.send_early("name", Asks(registry.clone()), 9, limit);
        sent.unwrap();
    };
    early(MS);
    until(|| registry.send_early("name", 0, 1, HOUR).is_ok());
    early(HOUR);
    let (other, _told) = listener::<u32>();
    registry.register("name", &other).unwrap(); // which accepts no such messages
}

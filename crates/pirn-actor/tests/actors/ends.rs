//! How actors end, and who hears of it.

use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::error::Refusal;
use pirn_actor::{self as actor, Actor, AskError, Builder, Context, Exit, Handler, Restarts};
use std::cell::RefCell;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

#[watched]
fn a_closed_actor_handles_what_it_has() {
    let gate = Gate::new();
    let (blocked, mut sum) = (gate.clone(), 0);
    let adds = actor::function(move |n: u32| {
        blocked.wait();
        sum += n;
        sum
    });
    let replies: Vec<_> = (1..=3).map(|n| adds.ask_later(n).unwrap()).collect();
    adds.close();
    assert_eq!(adds.send(4).unwrap_err().refusal(), &Refusal::Closed);
    gate.open();
    let answers: Vec<_> = replies
        .into_iter()
        .map(|reply| reply.recv().unwrap())
        .collect();
    assert_eq!(answers, [1, 3, 6]);
    assert_eq!(adds.join(), Exit::Closed);
}

#[watched]
fn an_actor_is_closed_when_nobody_can_send_to_it() {
    let (tell, told) = mpsc::channel();
    let listen = actor::consumer(move |n: u32| tell.send(n).unwrap());
    let monitor = listen.monitor();
    let other = listen.clone();
    other.send(1).unwrap();
    drop(other);
    listen.send(2).unwrap();
    drop(listen);
    assert_eq!(monitor.recv().unwrap(), Exit::Closed);
    assert!(told.iter().eq([1, 2]));
}

#[watched]
fn a_stopped_actor_finishes_its_message_only() {
    let (gate, begun) = (Gate::new(), Gate::new());
    let (blocked, begins) = (gate.clone(), begun.clone());
    let undelivered = Arc::new(Mutex::new(Vec::new()));
    let names = Arc::clone(&undelivered);
    let busy = Builder::new()
        .on_undelivered(move |name| names.lock().unwrap().push(name.to_string()))
        .function(move |n: u32| {
            begins.open();
            blocked.wait();
            n
        });
    let replies: Vec<_> = (1..=3).map(|n| busy.ask_later(n).unwrap()).collect();
    begun.wait();
    busy.stop();
    gate.open();
    let answers: Vec<_> = replies.into_iter().map(|reply| reply.recv()).collect();
    assert_eq!(answers, [Ok(1), Err(AskError::Gone), Err(AskError::Gone)]);
    assert_eq!(busy.join(), Exit::Stopped);
    assert_eq!(undelivered.lock().unwrap().len(), 2);
}

#[watched]
fn a_kill_interrupts_the_message() {
    let (reader, writer) = std::io::pipe().unwrap();
    let reads = actor::function(move |()| (&reader).read(&mut [0; 8]).map_err(|e| e.kind()));
    let reply = reads.ask_later(()).unwrap();
    until(|| reads.is_empty());
    reads.kill();
    assert_eq!(reads.join(), Exit::Killed);
    assert!(reply.recv().unwrap().is_err(), "the test has not written");
    drop(writer);
}

#[watched]
fn a_kill_ends_a_sleep_and_each_further_wait() {
    let (tell, told) = mpsc::channel();
    let begun = Gate::new();
    let begins = begun.clone();
    let sleeps = actor::consumer(move |()| {
        begins.open();
        for _ in 0..3 {
            let interrupted = thread::sleep_interruptible(Duration::from_secs(3600));
            tell.send(interrupted.is_err()).unwrap();
        }
    });
    sleeps.send(()).unwrap();
    begun.wait();
    sleeps.kill();
    assert_eq!(sleeps.join(), Exit::Killed);
    drop(sleeps);
    assert!(told.iter().eq([true; 3]));
}

#[watched]
fn an_idle_actor_can_be_ended_in_each_way() {
    for (end, exit) in [
        (<dyn Actor>::close as fn(&_), Exit::Closed),
        (<dyn Actor>::stop, Exit::Stopped),
        (<dyn Actor>::kill, Exit::Killed),
    ] {
        let idle = actor::consumer(|()| ());
        end(&*idle);
        assert_eq!(idle.join(), exit);
        assert_eq!(idle.exit(), Some(exit));
        end(&*idle);
        assert!(idle.send(()).is_err());
    }
}

#[watched]
fn an_idle_actor_with_nothing_to_drop_has_ended_when_it_is_told_to() {
    type End = fn(&(dyn Actor + 'static));
    let ends = [
        (<dyn Actor>::close as End, Exit::Closed),
        (<dyn Actor>::stop, Exit::Stopped),
        (<dyn Actor>::kill, Exit::Killed),
    ];
    for (end, exit) in ends {
        let counter = actor::spawn(7);
        assert_eq!(counter.run(|n| *n), Ok(7));
        end(&*counter);
        assert_eq!(counter.join(), exit);
        counter.close(); // changes nothing
        assert_eq!(counter.exit(), Some(exit));
        assert!(matches!(counter.run(|n| *n), Err(AskError::Gone)));
    }
    let fresh = actor::spawn(7);
    fresh.close();
    assert_eq!(fresh.exit(), Some(Exit::Closed)); // without a thread
}

#[watched]
fn who_watches_an_idle_actor_is_called_on_the_actors_thread() {
    let fresh = actor::spawn(7);
    let (tell, told) = mpsc::channel();
    let here = thread::current().id();
    fresh.on_exit(move |exit| tell.send((thread::current().id(), exit.clone())).unwrap());
    let monitor = fresh.monitor();
    fresh.stop();
    let (there, exit) = told.recv().unwrap();
    assert_eq!((monitor.recv(), exit), (Ok(Exit::Stopped), Exit::Stopped));
    assert_ne!(there, here);
}

#[watched]
fn the_recipe_of_an_idle_actor_is_dropped_on_the_actors_thread() {
    thread_local! {
        static OF_THREAD: RefCell<Option<mpsc::Sender<()>>> = const { RefCell::new(None) };
    }
    struct Dropped(mpsc::Sender<thread::ThreadId>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send(thread::current().id()).unwrap();
        }
    }
    let (tell, told) = mpsc::channel();
    let in_recipe = Dropped(tell);
    let counter = Builder::new().spawn(move || {
        let _ = &in_recipe;
        7
    });
    let counter = counter.unwrap();
    let (of_thread, ends) = mpsc::channel();
    let keep = move |n: &mut i32| {
        OF_THREAD.set(Some(of_thread));
        *n
    };
    assert_eq!(counter.run(keep), Ok(7));
    assert!(ends.recv().is_err()); // The thread has ended, so the actor is idle.
    counter.close();
    assert_ne!(told.recv().unwrap(), thread::current().id());
    assert_eq!(counter.join(), Exit::Closed);
}

#[watched]
fn the_state_is_dropped_on_the_actors_thread_before_the_end_is_told() {
    struct Resource(Arc<AtomicUsize>);
    impl Drop for Resource {
        fn drop(&mut self) {
            assert!(thread::current().is_virtual());
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let actor = actor::spawn(Resource(Arc::clone(&drops)));
    actor.run(|_| ()).unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    actor.close();
    actor.join();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[watched]
fn all_who_watch_are_told_once() {
    let told = Arc::new(AtomicUsize::new(0));
    let idle = actor::consumer(|()| ());
    let monitors: Vec<_> = (0..5).map(|_| idle.monitor()).collect();
    for _ in 0..5 {
        let told = Arc::clone(&told);
        idle.on_exit(move |exit| {
            assert_eq!(*exit, Exit::Stopped);
            told.fetch_add(1, Ordering::SeqCst);
        });
    }
    assert_eq!(idle.exit(), None);
    idle.stop();
    monitors
        .iter()
        .for_each(|monitor| assert_eq!(monitor.recv().unwrap(), Exit::Stopped));
    idle.join();
    let late = Arc::clone(&told);
    idle.on_exit(move |_| _ = late.fetch_add(1, Ordering::SeqCst));
    until(|| told.load(Ordering::SeqCst) == 6);
    assert_eq!(idle.monitor().try_recv(), Some(Exit::Stopped));
}

#[watched]
fn waiting_for_an_end_can_be_limited_and_interrupted() {
    let idle = actor::consumer(|()| ());
    let monitor = idle.monitor();
    assert_eq!(idle.join_timeout(Duration::from_millis(2)), None);
    assert_eq!(monitor.recv_timeout(Duration::from_millis(2)), Ok(None));
    let waiting = thread::spawn(move || monitor.recv());
    waiting.thread().interrupt();
    assert!(waiting.join().unwrap().is_err());
}

struct Fragile(Arc<AtomicUsize>);

impl Handler<bool> for Fragile {
    type Reply = usize;
    fn handle(&mut self, fine: bool, _: &Context<Self>) -> usize {
        assert!(fine, "fragile");
        self.0.load(Ordering::SeqCst)
    }
}

#[watched]
fn a_restarted_actor_keeps_its_mailbox_and_its_references() {
    let made = Arc::new(AtomicUsize::new(0));
    let makes = Arc::clone(&made);
    let builder = Builder::new().restarts(Restarts::at_most(2));
    let fragile = builder
        .spawn(move || {
            makes.fetch_add(1, Ordering::SeqCst);
            Fragile(Arc::clone(&makes))
        })
        .unwrap();
    let replies: Vec<_> = [true, false, true]
        .map(|fine| fragile.ask_later(fine).unwrap())
        .into_iter()
        .collect();
    let answers: Vec<_> = replies.into_iter().map(|reply| reply.recv()).collect();
    assert_eq!(answers[0], Ok(1));
    assert!(matches!(&answers[1], Err(AskError::Failed(_))));
    assert_eq!(answers[2], Ok(2));
    // Once more is allowed, twice more is not.
    assert!(fragile.ask(false).is_err());
    assert_eq!(fragile.ask(true), Ok(3));
    assert!(fragile.ask(false).is_err());
    assert!(matches!(fragile.join(), Exit::Failed(_)));
    assert_eq!(made.load(Ordering::SeqCst), 3);
}

#[watched]
fn a_recipe_that_fails_is_tried_again_and_then_the_end() {
    let tried = Arc::new(AtomicUsize::new(0));
    let tries = Arc::clone(&tried);
    let builder = Builder::new().restarts(Restarts::at_most(2));
    let none = builder
        .try_spawn(move || -> Result<(), String> {
            Err(format!("attempt {}", tries.fetch_add(1, Ordering::SeqCst)))
        })
        .unwrap();
    let Err(Exit::Failed(failure)) = none.ready() else {
        panic!("it is not ready")
    };
    assert_eq!(failure.to_string(), "attempt 2");
    assert_eq!(tried.load(Ordering::SeqCst), 3);
}

#[watched]
fn messages_wait_for_the_recipe() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let builder = Builder::new();
    let actor = builder
        .spawn(move || {
            blocked.wait();
            7
        })
        .unwrap();
    let reply = actor.run_later(|state| *state).unwrap();
    gate.open();
    assert_eq!(actor.ready(), Ok(()));
    assert_eq!(reply.recv(), Ok(7));
}

#[watched]
fn a_stop_during_a_pause_before_a_restart_ends_the_actor() {
    let hour = Duration::from_secs(3600);
    let failed = Gate::new();
    let fails = failed.clone();
    let builder = Builder::new().restarts(Restarts::at_most(9).backoff(hour..hour));
    let none = builder
        .try_spawn(move || -> Result<(), &str> {
            fails.open();
            Err("never")
        })
        .unwrap();
    failed.wait();
    none.kill();
    assert_eq!(none.join(), Exit::Killed);
}

#[watched]
fn a_weak_reference_does_not_keep_its_actor_open() {
    let actor = actor::spawn(7);
    let weak = actor.downgrade();
    assert_eq!(weak.upgrade().unwrap().run(|state| *state), Ok(7));
    let monitor = actor.monitor();
    drop(actor);
    assert_eq!(monitor.recv().unwrap(), Exit::Closed);
    until(|| weak.upgrade().is_none());
}

#[watched]
fn an_actor_that_has_ended_is_in_no_snapshot() {
    let named = |name: &str| {
        actor::snapshot::take()
            .iter()
            .any(|actor| &*actor.name == name)
    };
    let actor = Builder::new().name("seen-once").spawn_with(());
    assert!(named("seen-once"));
    actor.stop();
    actor.join();
    assert!(!named("seen-once"));
}

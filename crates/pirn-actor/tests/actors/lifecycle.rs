//! What states do when their actors begin and end, and deaths of others as messages.

use crate::common::{Gate, until, watched};
use pirn_actor::lifecycle::Hooks;
use pirn_actor::pool::Pool;
use pirn_actor::process::Inbox;
use pirn_actor::supervisor::Supervisor;
use pirn_actor::{
    self as actor, Actor, Address, Builder, Context, Exit, Handler, Overflow, Ref, Restarts,
};
use std::ops::Deref;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// What a state says that stops after a panic.
const FAILED: &str = "stopped: failed: panicked: assertion `left != right` failed: as it was told\n  \
    left: \"fail\"\n right: \"fail\"";

/// Says what happens to it.
struct Told(Sender<String>);

impl Told {
    fn hooks() -> Hooks<Told> {
        Hooks::new().started(Told::started).stopped(Told::stopped)
    }

    fn started(&mut self, context: &Context<Self>) {
        let _ = self.0.send(format!("{} started", context.name()));
        context.send_after(Duration::ZERO, "timer");
    }

    fn stopped(&mut self, exit: &Exit) {
        let _ = self.0.send(format!("stopped: {exit}"));
    }
}

impl Handler<&'static str> for Told {
    type Reply = ();
    fn handle(&mut self, message: &'static str, _: &Context<Self>) {
        let _ = self.0.send(message.to_string());
        assert_ne!(message, "fail", "as it was told");
    }
}

fn told(builder: Builder) -> (Ref<Told>, Receiver<String>) {
    let (tell, told) = mpsc::channel();
    let recipe = (move || Told(tell.clone()), Told::hooks());
    (builder.name("a").spawn(recipe).unwrap(), told)
}

#[watched]
fn a_state_starts_before_its_first_message_and_stops_after_its_last() {
    let ends = [
        (<dyn Actor>::close as fn(&_), Exit::Closed),
        (<dyn Actor>::stop, Exit::Stopped),
        (<dyn Actor>::kill, Exit::Killed),
    ];
    for (end, exit) in ends {
        let (actor, told) = told(Builder::new());
        actor.ask("first").unwrap();
        assert_eq!(told.recv().unwrap(), "a started");
        let mut messages = [told.recv().unwrap(), told.recv().unwrap()];
        messages.sort();
        assert_eq!(messages, ["first", "timer"]);
        end(&*actor);
        assert_eq!(actor.join(), exit);
        assert_eq!(told.recv().unwrap(), format!("stopped: {exit}"));
        drop(actor);
        assert!(told.recv().is_err(), "once, and the state is dropped");
    }
}

#[watched]
fn a_given_state_starts_at_once_and_stops_but_does_not_restart() {
    let (tell, told) = mpsc::channel();
    let builder = Builder::new().name("a").restarts(Restarts::at_most(1));
    let actor = builder.spawn_hooked(Told(tell), Told::hooks()).unwrap();
    let next = || told.iter().find(|said| said != "timer").unwrap();
    assert_eq!(next(), "a started");
    actor.ask("first").unwrap();
    assert_eq!(next(), "first");
    assert!(actor.ask("fail").is_err());
    let Exit::Failed(failure) = actor.join() else {
        panic!("it has failed")
    };
    assert!(failure.to_string().starts_with("panicked"), "{failure}");
    drop(actor);
    let rest = told.iter().filter(|said| said != "timer");
    assert!(rest.eq(["fail", FAILED]));
}

#[watched]
fn a_state_that_has_failed_stops_and_a_new_one_starts() {
    let (actor, told) = told(Builder::new().restarts(Restarts::at_most(1)));
    let next = || told.iter().find(|said| said != "timer").unwrap();
    assert_eq!(next(), "a started");
    assert!(actor.ask("fail").is_err());
    assert_eq!((next(), next()), ("fail".into(), FAILED.into()));
    assert_eq!(next(), "a started");
    assert!(actor.ask("fail").is_err());
    assert!(matches!(actor.join(), Exit::Failed(_)));
    drop(actor);
    let rest = told.iter().filter(|said| said != "timer");
    assert!(rest.eq(["fail", FAILED]));
}

/// Panics when it starts, or when it stops.
struct Careless {
    starts: bool,
}

impl Careless {
    fn hooks() -> Hooks<Careless> {
        Hooks::new()
            .started(Careless::started)
            .stopped(Careless::stopped)
    }

    fn started(&mut self, _: &Context<Self>) {
        assert!(self.starts, "it does not start");
    }
    fn stopped(&mut self, _: &Exit) {
        panic!("it does not stop");
    }
}

#[watched]
fn a_hook_that_panics_is_a_failure() {
    let begin = |starts| Builder::new().spawn((move || Careless { starts }, Careless::hooks()));
    let never = begin(false).unwrap();
    let Err(Exit::Failed(failure)) = never.ready() else {
        panic!("it has failed")
    };
    assert_eq!(failure.to_string(), "panicked: it does not start");
    let once = begin(true).unwrap();
    once.ready().unwrap();
    once.close();
    let Exit::Failed(failure) = once.join() else {
        panic!("it has failed")
    };
    assert_eq!(failure.to_string(), "panicked: it does not stop");
}

#[watched]
fn a_child_stops_when_it_is_restarted_with_another_one() {
    let (tell, told) = mpsc::channel();
    let app = Supervisor::one_for_all()
        .child("a", (move || Told(tell.clone()), Told::hooks()))
        .child("b", || 0_u32)
        .start()
        .unwrap();
    let next = || told.iter().find(|said| said != "timer").unwrap();
    assert_eq!(next(), "a started");
    let b = app.get::<Ref<u32>>("b").unwrap();
    assert!(b.run(|_| panic!("b fails")).is_err());
    assert_eq!(next(), "stopped: stopped");
    assert_eq!(next(), "a started");
}

#[watched]
fn each_state_of_a_pools_workers_starts_and_stops() {
    let (tell, told) = mpsc::channel();
    let pool = Builder::new()
        .name("p")
        .restarts(Restarts::at_most(1))
        .pool(2..=2)
        .spawn((move || Told(tell.clone()), Told::hooks()))
        .unwrap();
    let next = || told.iter().find(|said| said != "timer").unwrap();
    let mut started = [next(), next()];
    started.sort();
    assert_eq!(started, ["p/1 started", "p/2 started"]);
    assert!(pool.ask("fail").is_err());
    assert_eq!((next(), next()), ("fail".into(), FAILED.into()));
    let again = next();
    assert!(started.contains(&again), "{again}");
    pool.ask("last").unwrap();
    assert_eq!(next(), "last");
    pool.close();
    assert_eq!(pool.join(), Exit::Closed);
    drop(pool);
    let rest = told.iter().filter(|said| said != "timer");
    assert!(rest.eq(["stopped: closed"; 2]), "one for each worker");
}

/// Says when it starts and stops, and sends itself nothing, so its worker is free for the pool.
struct Quiet(Sender<String>);

impl Quiet {
    fn hooks() -> Hooks<Quiet> {
        Hooks::new().started(Quiet::started).stopped(Quiet::stopped)
    }

    fn started(&mut self, worker: &Context<Self>) {
        self.0.send(format!("{} started", worker.name())).unwrap();
    }
    fn stopped(&mut self, exit: &Exit) {
        self.0.send(format!("stopped: {exit}")).unwrap();
    }
}

struct Block(Gate, Gate);

impl Handler<Block> for Quiet {
    type Reply = ();
    fn handle(&mut self, Block(gate, begun): Block, _: &Context<Self>) {
        begun.open();
        gate.wait();
    }
}

#[watched]
fn workers_that_end_with_their_pool_or_before_it_stop_once() {
    let (tell, told) = mpsc::channel();
    let pool = Builder::new().name("p").pool(1..=2);
    let pool = pool
        .spawn((move || Quiet(tell.clone()), Quiet::hooks()))
        .unwrap();
    assert_eq!(told.recv().unwrap(), "p/1 started");
    let (gate, begun) = (Gate::new(), Gate::new());
    let blocks = || pool.send(Block(gate.clone(), begun.clone())).unwrap();
    blocks();
    begun.wait();
    blocks();
    assert_eq!(told.recv().unwrap(), "p/2 started");
    gate.open();
    assert_eq!(told.recv().unwrap(), "stopped: closed", "one too many");
    until(|| pool.workers().count == 1);
    pool.stop();
    assert_eq!(pool.join(), Exit::Stopped);
    drop(pool);
    assert!(told.iter().eq(["stopped: stopped"]));
}

#[watched]
fn a_pools_worker_sets_timers_and_watches_when_it_starts() {
    struct Worker(Ref<u32>, Sender<String>);
    impl Worker {
        fn started(&mut self, worker: &Context<Self>) {
            worker.send_after(Duration::ZERO, "timer");
            worker.watch(&self.0, |_| "down");
        }
    }
    impl Handler<&'static str> for Worker {
        type Reply = ();
        fn handle(&mut self, message: &'static str, worker: &Context<Self>) {
            self.1
                .send(format!("{}: {message}", worker.name()))
                .unwrap();
        }
    }
    let watched = actor::spawn(7);
    let (seen, (tell, told)) = (watched.clone(), mpsc::channel());
    let pool = Builder::new().name("p").pool(2..=2);
    let hooks = Hooks::new().started(Worker::started);
    let pool = pool
        .spawn((move || Worker(seen.clone(), tell.clone()), hooks))
        .unwrap();
    let both = || {
        let mut both = [told.recv().unwrap(), told.recv().unwrap()];
        both.sort();
        both
    };
    assert_eq!(both(), ["p/1: timer", "p/2: timer"]);
    watched.close();
    assert_eq!(both(), ["p/1: down", "p/2: down"]);
    drop(pool);
}

/// Watches others, and says what it hears of them.
struct Watcher {
    tell: Sender<(&'static str, Exit)>,
}

struct Watch<A>(&'static str, A);
struct Down(&'static str, Exit);
struct Fail;

impl<A: Deref<Target = dyn Actor>> Handler<Watch<A>> for Watcher {
    type Reply = ();
    fn handle(&mut self, Watch(name, actor): Watch<A>, context: &Context<Self>) {
        context.watch(&actor, move |exit| Down(name, exit));
    }
}

impl Handler<Down> for Watcher {
    type Reply = ();
    fn handle(&mut self, Down(name, exit): Down, _: &Context<Self>) {
        self.tell.send((name, exit)).unwrap();
    }
}

impl Handler<Fail> for Watcher {
    type Reply = ();
    fn handle(&mut self, Fail: Fail, _: &Context<Self>) {
        panic!("as it was told");
    }
}

#[watched]
fn deaths_of_actors_of_all_kinds_come_as_messages() {
    let (tell, told) = mpsc::channel();
    // Full as it is, it has room for these.
    let builder = Builder::new().capacity(1).overflow(Overflow::Fail);
    let watcher = builder.spawn_with(Watcher { tell });
    let actor = actor::spawn(7);
    let address: Address<u32> = actor::consumer(|_: u32| ());
    let each: Address<u32, u32> = actor::flow::each(|n: u32| n);
    let pool = Pool::fixed(2).spawn(|| 7).unwrap();
    let process = actor::process::spawn(|inbox: &mut Inbox<u32>| inbox.recv());
    let (first, last) = (actor::function(|n: u32| n), actor::function(|n: u32| n));
    let row = first.then(&last);
    let tree = Supervisor::one_for_one().child("a", || 0).start().unwrap();
    watcher.ask(Watch("actor", actor.clone())).unwrap();
    watcher.ask(Watch("address", address.clone())).unwrap();
    watcher.ask(Watch("each", each.clone())).unwrap();
    watcher.ask(Watch("pool", pool.clone())).unwrap();
    watcher.ask(Watch("process", process.clone())).unwrap();
    watcher.ask(Watch("row", row.clone())).unwrap();
    let watches_tree = watcher
        .run(|_| ())
        .and_then(|()| watcher.ask(Watch("tree", tree)));
    watches_tree.unwrap(); // and drops it
    assert_eq!(told.recv().unwrap(), ("tree", Exit::Stopped));
    let hears = |name, exit| assert_eq!(told.recv().unwrap(), (name, exit));
    actor.close();
    hears("actor", Exit::Closed);
    address.stop();
    hears("address", Exit::Stopped);
    each.kill();
    hears("each", Exit::Killed);
    pool.stop();
    hears("pool", Exit::Stopped);
    process.close();
    hears("process", Exit::Closed);
    row.close();
    hears("row", Exit::Closed);
    // One that has ended already.
    watcher.ask(Watch("actor", actor)).unwrap();
    hears("actor", Exit::Closed);
}

#[watched]
fn a_new_state_watches_nothing_and_an_actor_that_has_ended_neither() {
    let (tell, told) = mpsc::channel();
    let watcher = Builder::new()
        .restarts(Restarts::at_most(1))
        .spawn(move || Watcher { tell: tell.clone() })
        .unwrap();
    let actor = actor::spawn(7);
    watcher.ask(Watch("before", actor.clone())).unwrap();
    assert!(watcher.ask(Fail).is_err());
    watcher.ask(Watch("after", actor.clone())).unwrap();
    let other = actor::spawn(8);
    watcher.ask(Watch("other", other.clone())).unwrap();
    actor.close();
    assert_eq!(told.recv().unwrap(), ("after", Exit::Closed));
    drop(watcher);
    until(|| told.try_recv() == Err(mpsc::TryRecvError::Disconnected));
    other.close();
    assert_eq!(other.join(), Exit::Closed);
    assert_eq!(other.join_timeout(HOUR), Some(Exit::Closed));
}

impl Handler<Vec<Ref<u32>>> for Watcher {
    type Reply = ();
    fn handle(&mut self, actors: Vec<Ref<u32>>, context: &Context<Self>) {
        std::thread::scope(|scope| {
            for actor in &actors {
                scope.spawn(|| context.watch(actor, |exit| Down("one", exit)));
            }
        });
    }
}

#[watched]
fn threads_of_a_handler_may_watch_at_once() {
    let (tell, told) = mpsc::channel();
    let watcher = actor::spawn(Watcher { tell });
    let actors: Vec<_> = (0..50).map(actor::spawn).collect();
    watcher.ask(actors.clone()).unwrap();
    actors.iter().for_each(|actor| actor.close());
    assert_eq!(told.iter().take(50).count(), 50);
}

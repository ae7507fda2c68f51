//! Asks that would wait for ever are errors at once.

use crate::common::{Gate, watched};
use pirn::thread;
use pirn_actor::error::Refusal;
use pirn_actor::{self as actor, AskError, Builder, Context, Handler, Ref};
use std::time::Duration;

/// Asks the next one.
struct Link {
    next: Option<Ref<Link>>,
    timeout: Option<Duration>,
}
struct Join(Ref<Link>);
struct Pass;

impl Handler<Join> for Link {
    type Reply = ();
    fn handle(&mut self, Join(next): Join, _: &Context<Self>) {
        self.next = Some(next);
    }
}

impl Handler<Pass> for Link {
    type Reply = Result<u32, AskError>;
    fn handle(&mut self, _: Pass, _: &Context<Self>) -> Self::Reply {
        let Some(next) = &self.next else { return Ok(1) };
        let passed = match self.timeout {
            None => next.ask(Pass)?,
            Some(timeout) => next.ask_timeout(Pass, timeout)?,
        };
        passed.map(|length| length + 1)
    }
}

fn link(name: &str) -> Ref<Link> {
    let builder = Builder::new().name(name);
    builder.spawn_with(Link {
        next: None,
        timeout: None,
    })
}

/// A row of actors, each of which asks the next.
fn row(length: usize) -> Vec<Ref<Link>> {
    let row: Vec<_> = (0..length).map(|n| link(&format!("link-{n}"))).collect();
    for pair in row.windows(2) {
        pair[0].ask(Join(pair[1].clone())).unwrap();
    }
    row
}

#[watched]
fn a_row_is_no_circle() {
    assert_eq!(row(100)[0].ask(Pass), Ok(Ok(100)));
}

#[watched]
fn circles_of_all_lengths_are_found() {
    for length in [1, 2, 3, 100] {
        let row = row(length);
        row[length - 1].ask(Join(row[0].clone())).unwrap();
        let Ok(Err(AskError::Deadlock(cycle))) = row[0].ask(Pass) else {
            panic!("no deadlock of {length}")
        };
        assert_eq!(cycle.names().len(), length);
        // Any of them may be the last that begins to wait: they run at the same time.
        let first: usize = cycle.names().next().unwrap()["link-".len()..]
            .parse()
            .unwrap();
        let way = (first..first + length).map(|n| format!("link-{}", n % length));
        assert!(cycle.names().eq(way), "{cycle}");
        // Those in the circle refer to each other: they are not closed by themselves.
        row.iter().for_each(|actor| actor.stop());
        // And it was the ask only: the actors have gone on.
        row.iter().for_each(|link| drop(link.join()));
    }
}

#[watched]
fn the_error_names_who_waits_for_whom() {
    let (bank, shop) = (link("bank"), link("shop"));
    bank.ask(Join(shop.clone())).unwrap();
    shop.ask(Join(bank.clone())).unwrap();
    let Ok(Err(error)) = bank.ask(Pass) else {
        panic!("no deadlock")
    };
    // Either may be the last that looks: they run at the same time.
    let ways = [
        "shop waits for bank waits for shop",
        "bank waits for shop waits for bank",
    ];
    let texts = ways.map(|way| format!("asking would be a deadlock: {way}"));
    assert!(texts.contains(&error.to_string()), "{error}");
    bank.stop();
    shop.stop();
}

#[watched]
fn two_that_ask_each_other_at_once_do_not_both_fail_or_wait() {
    for _ in 0..200 {
        let (a, b) = (link("a"), link("b"));
        a.ask(Join(b.clone())).unwrap();
        b.ask(Join(a.clone())).unwrap();
        let asking = [a.clone(), b.clone()].map(|first| thread::spawn(move || first.ask(Pass)));
        let answers = asking.map(|asker| asker.join().unwrap().unwrap());
        // If they meet, one fails, and its answer is the other's error; each ends in any case.
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
        a.stop();
        b.stop();
    }
}

#[watched]
fn a_time_limit_does_not_hide_a_deadlock() {
    let (first, second) = (link("first"), link("second"));
    first.ask(Join(second.clone())).unwrap();
    let timeout = Some(Duration::from_secs(3600));
    first.run(move |link| link.timeout = timeout).unwrap();
    second.ask(Join(first.clone())).unwrap();
    // second's ask serves first's, and so ends with it: neither actor gives up earlier.
    let Ok(Err(AskError::Deadlock(cycle))) = first.ask(Pass) else {
        panic!("no deadlock")
    };
    let mut names: Vec<_> = cycle.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["first", "second"]);
    first.stop();
    second.stop();
}

#[watched]
fn waiting_for_room_is_an_edge_too() {
    struct Feeder(Option<Ref<Feeder>>);
    struct Fill;
    struct Know(Ref<Feeder>);
    impl Handler<Know> for Feeder {
        type Reply = ();
        fn handle(&mut self, Know(other): Know, _: &Context<Self>) {
            self.0 = Some(other);
        }
    }
    impl Handler<()> for Feeder {
        type Reply = ();
        fn handle(&mut self, (): (), _: &Context<Self>) {}
    }
    impl Handler<Fill> for Feeder {
        type Reply = Refusal;
        fn handle(&mut self, _: Fill, context: &Context<Self>) -> Refusal {
            let this = context.this();
            loop {
                if let Err(error) = this.send(()) {
                    return error.refusal().clone();
                }
            }
        }
    }
    let small = Builder::new().name("small").capacity(4);
    let feeder = small.spawn_with(Feeder(None));
    let refusal = feeder.ask(Fill).unwrap();
    assert_eq!(
        refusal.to_string(),
        "waiting for room would be a deadlock: small waits for small"
    );
}

#[watched]
fn threads_are_no_edges() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let busy = actor::function(move |()| blocked.wait());
    let asker = {
        let busy = busy.clone();
        thread::spawn(move || busy.ask(()))
    };
    let other = {
        let busy = busy.clone();
        actor::function(move |()| busy.ask(()))
    };
    let asking = other.ask_later(()).unwrap();
    gate.open();
    assert_eq!(asking.recv(), Ok(Ok(())));
    assert_eq!(asker.join().unwrap(), Ok(()));
}

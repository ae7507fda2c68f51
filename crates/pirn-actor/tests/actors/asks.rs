//! Asking, and answers.

use crate::common::{Gate, until, watched};
use pirn::{scope, thread};
use pirn_actor::{self as actor, AskError, Context, Exit, Handler, Ref};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(3600);

#[watched]
fn an_ask_returns_what_the_handler_returns() {
    let square = actor::function(|n: u64| n * n);
    assert_eq!(square.ask(7), Ok(49));
    let from_a_thread =
        thread::spawn(move || (1..100).map(|n| square.ask(n).unwrap()).sum::<u64>());
    assert_eq!(
        from_a_thread.join().unwrap(),
        (1..100).map(|n| n * n).sum::<u64>()
    );
}

#[watched]
fn many_ask_one() {
    let mut sum = 0;
    let add = actor::function(move |n: u64| {
        sum += n;
        sum
    });
    let askers: Vec<_> = (0..100)
        .map(|_| {
            let add = add.clone();
            thread::spawn(move || (0..100).for_each(|_| _ = add.ask(1).unwrap()))
        })
        .collect();
    askers.into_iter().for_each(|asker| asker.join().unwrap());
    assert_eq!(add.ask(0), Ok(10_000));
}

#[watched]
fn messages_of_one_sender_are_handled_in_order() {
    let (tell, told) = mpsc::channel();
    let listen = actor::consumer(move |n: u32| tell.send(n).unwrap());
    let sender = {
        let listen = listen.clone();
        thread::spawn(move || (0..10_000).for_each(|n| listen.send(n).unwrap()))
    };
    sender.join().unwrap();
    listen.close();
    assert_eq!(listen.join(), Exit::Closed);
    assert!(told.iter().eq(0..10_000));
}

#[watched]
fn an_ask_that_is_late_times_out_and_is_not_handled() {
    let gate = Gate::new();
    let (blocked, mut handled) = (gate.clone(), 0);
    let busy = actor::function(move |wait: bool| {
        if wait {
            blocked.wait();
        }
        handled += 1;
        handled
    });
    let first = busy.ask_later(true).unwrap();
    assert_eq!(
        busy.ask_timeout(false, Duration::from_millis(5)),
        Err(AskError::TimedOut)
    );
    drop(busy.ask_later(false).unwrap());
    gate.open();
    assert_eq!(first.recv(), Ok(1));
    assert_eq!(busy.ask(false), Ok(2));
}

#[watched]
fn a_request_that_was_skipped_because_it_is_late_has_timed_out() {
    let (gate, begun) = (Gate::new(), Gate::new());
    let (blocked, begins) = (gate.clone(), begun.clone());
    let busy = actor::function(move |()| {
        begins.open();
        blocked.wait();
    });
    let first = busy.ask_later(()).unwrap();
    begun.wait();
    let (tell, told) = mpsc::channel();
    let opens = gate.clone();
    let asks = actor::function(move |()| {
        let reply = busy.ask_later(()).unwrap();
        thread::sleep(Duration::from_millis(2)); // past the deadline of this message
        opens.open();
        busy.close();
        busy.join();
        tell.send(reply.recv()).unwrap();
    });
    // It may be answered nonetheless, if this thread is later still.
    let _ = asks.ask_timeout((), Duration::from_millis(1));
    // If the message itself was skipped, it has not told anything.
    drop(asks);
    gate.open();
    assert_eq!(first.recv(), Ok(()));
    assert!(matches!(told.recv(), Ok(Err(AskError::TimedOut)) | Err(_)));
}

#[watched]
fn a_late_request_whose_drop_panics_does_not_stop_its_actor() {
    struct Fragile;
    impl Drop for Fragile {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let gate = Gate::new();
    let blocked = gate.clone();
    let busy = actor::function(move |fragile: Option<Fragile>| {
        blocked.wait();
        fragile.map(core::mem::forget).is_some()
    });
    let first = busy.ask_later(None).unwrap();
    drop(busy.ask_later(Some(Fragile)).unwrap());
    gate.open();
    assert_eq!(first.recv(), Ok(false));
    assert_eq!(busy.ask(Some(Fragile)), Ok(true));
}

#[watched]
fn an_interrupted_ask_ends() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let busy = actor::function(move |()| blocked.wait());
    let asker = {
        let busy = busy.clone();
        thread::spawn(move || busy.ask(()))
    };
    asker.thread().interrupt();
    assert_eq!(asker.join().unwrap(), Err(AskError::Interrupted));
    gate.open();
}

#[watched]
fn a_request_that_panics_fails_and_those_behind_it_are_gone() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let careless = actor::function(move |n: u32| {
        blocked.wait();
        assert_ne!(n, 1, "not one");
        n
    });
    let replies: Vec<_> = (0..3).map(|n| careless.ask_later(n).unwrap()).collect();
    gate.open();
    let answers: Vec<_> = replies.into_iter().map(|reply| reply.recv()).collect();
    assert_eq!(answers[0], Ok(0));
    let Err(AskError::Failed(failure)) = &answers[1] else {
        panic!("{answers:?}")
    };
    assert!(failure.to_string().contains("not one"), "{failure}");
    assert_eq!(answers[2], Err(AskError::Gone));
    let Exit::Failed(failure) = careless.join() else {
        panic!("it has failed")
    };
    assert!(failure.to_string().contains("not one"), "{failure}");
    assert_eq!(careless.ask(5), Err(AskError::Gone));
}

#[watched]
fn replies_are_futures() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let square = actor::function(move |n: u64| {
        blocked.wait();
        n * n
    });
    let reply = square.ask_later(4).unwrap();
    let awaiting = thread::spawn(move || pirn::block_on(reply));
    gate.open();
    assert_eq!(awaiting.join().unwrap(), Ok(16));
}

#[watched]
fn a_reply_can_be_tried() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let busy = actor::function(move |()| blocked.wait());
    let reply = busy.ask_later(()).unwrap().try_recv().unwrap_err();
    gate.open();
    assert_eq!(busy.ask(()), Ok(()));
    assert_eq!(reply.try_recv().unwrap(), Ok(()));
}

#[watched]
fn code_runs_between_messages() {
    let list = actor::spawn(vec![3, 1, 2]);
    list.run_detached(|list: &mut Vec<i32>| list.push(7))
        .unwrap();
    assert_eq!(list.run(|list| list.iter().sum::<i32>()), Ok(13));
    let later = list.run_later(|list| list.len()).unwrap();
    assert_eq!(later.recv(), Ok(4));
}

struct Relay(Option<Ref<Relay>>);
struct Left;

impl Handler<Left> for Relay {
    type Reply = Option<Duration>;

    /// The time left, as the last of the row sees it.
    fn handle(&mut self, _: Left, context: &Context<Relay>) -> Option<Duration> {
        match &self.0 {
            Some(next) => next.ask(Left).unwrap(),
            None => Some(
                context
                    .deadline()?
                    .saturating_duration_since(std::time::Instant::now()),
            ),
        }
    }
}

#[watched]
fn deadlines_travel_with_asks() {
    let last = actor::spawn(Relay(None));
    let middle = actor::spawn(Relay(Some(last)));
    let first = actor::spawn(Relay(Some(middle)));
    assert_eq!(first.ask(Left), Ok(None));
    let left = first.ask_timeout(Left, LONG).unwrap().unwrap();
    assert!(left <= LONG && left > LONG - 600 * SECOND, "{left:?}");
}

/// Waits for what never comes, unless it is interrupted; and what it was asked last.
struct Blocks(mpsc::Sender<Result<(), thread::Interrupted>>);

impl Handler<bool> for Blocks {
    type Reply = bool;
    fn handle(&mut self, wait: bool, _: &Context<Blocks>) -> bool {
        if wait {
            self.0.send(thread::sleep_interruptible(LONG)).unwrap();
        }
        thread::is_interrupted()
    }
}

#[watched]
fn a_handler_that_waits_is_interrupted_at_the_askers_deadline() {
    let (tell, told) = mpsc::channel();
    let blocks = actor::spawn(Blocks(tell));
    let soon = Duration::from_millis(5);
    let in_time = |ask: &dyn Fn() -> Result<bool, AskError>| {
        // On a busy machine the time may be up before the message is begun.
        let interrupted = std::iter::repeat_with(|| {
            let answer = ask();
            // The interrupted handler's answer may come first.
            assert!(
                matches!(answer, Err(AskError::TimedOut) | Ok(true)),
                "{answer:?}"
            );
            told.recv_timeout(Duration::from_millis(50)).ok()
        });
        assert_eq!(interrupted.flatten().next(), Some(Err(thread::Interrupted)));
        // The next request finds nothing of it.
        assert_eq!(blocks.ask(false), Ok(false));
    };
    in_time(&|| blocks.ask_timeout(true, soon));
    in_time(&|| actor::time::with_deadline(Instant::now() + soon, || blocks.ask(true)));
    in_time(&|| {
        let timed_out = scope::Builder::new().timeout(soon).open(|s| {
            let asked = s.fork(|| Ok::<_, AskError>(blocks.ask(true)));
            // It may be that the scope is over before the asker's answer is there.
            Ok(match s.join() {
                Ok(all) => asked.get(&all),
                Err(_) => Err(AskError::TimedOut),
            })
        });
        timed_out.unwrap()
    });
}

#[watched]
fn a_request_that_is_skipped_since_its_time_is_up_has_timed_out() {
    let (gate, (tell, told)) = (Gate::new(), mpsc::channel());
    let blocked = gate.clone();
    let busy = actor::function(move |wait: bool| {
        if wait {
            blocked.wait();
        }
    });
    busy.send(true).unwrap();
    let asks = actor::spawn(AsksLate(busy, gate, tell));
    let answer = std::iter::repeat_with(|| {
        // On a busy machine the time may be up before the message is begun.
        let _ = asks.ask_timeout(Left, Duration::from_millis(5));
        told.recv_timeout(Duration::from_millis(50)).ok()
    });
    assert_eq!(answer.flatten().next(), Some(Err(AskError::TimedOut)));
}

/// Asks, and looks for the answer when the request has been skipped.
struct AsksLate(
    actor::Address<bool>,
    Gate,
    mpsc::Sender<Result<(), AskError>>,
);

impl Handler<Left> for AsksLate {
    type Reply = ();
    fn handle(&mut self, _: Left, context: &Context<Self>) {
        let AsksLate(busy, gate, tell) = self;
        let later = busy.ask_later(false).unwrap();
        thread::sleep_until(context.deadline().unwrap());
        gate.open();
        busy.close();
        busy.join();
        tell.send(later.recv()).unwrap();
    }
}

#[watched]
fn an_ask_ends_with_the_deadline_of_what_it_is_for() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let busy = actor::function(move |()| blocked.wait());
    let (tell, told) = mpsc::channel();
    let asks = actor::function(move |()| tell.send(busy.ask(())).unwrap());
    // The outer ask may see the answer that the inner one's end has made possible, or be late, too.
    let inner = loop {
        let _ = asks.ask_timeout((), Duration::from_millis(5));
        // It tells nothing if it was late before it was begun.
        if let Ok(inner) = told.recv_timeout(Duration::from_millis(100)) {
            break inner;
        }
    };
    assert_eq!(inner, Err(AskError::TimedOut));
    gate.open();
}

#[watched]
fn asking_from_a_platform_thread_works() {
    let square = actor::function(|n: u64| n * n);
    let asked = std::thread::spawn(move || square.ask(3)).join().unwrap();
    assert_eq!(asked, Ok(9));
}

#[watched]
fn an_actor_has_no_thread_while_it_is_idle() {
    let square = actor::function(|n: u64| n * n);
    let before = pirn::metrics::snapshot()["ended"];
    square.ask(3).unwrap();
    until(|| pirn::metrics::snapshot()["ended"] > before);
    assert_eq!(square.ask(4), Ok(16));
}

#[watched]
fn an_actor_may_run_on_platform_threads() {
    let builder = actor::Builder::new().platform_threads();
    let is_virtual = builder.function(|()| thread::current().is_virtual());
    assert_eq!(is_virtual.ask(()), Ok(false));
    let named = thread::Builder::new().name("the-actor".to_string());
    let name = actor::Builder::new()
        .threads(named)
        .function(|()| thread::current().name().map(str::to_string));
    assert_eq!(name.ask(()), Ok(Some("the-actor".to_string())));
}

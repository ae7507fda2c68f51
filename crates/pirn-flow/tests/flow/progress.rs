//! How far a long task is.

use crate::common::{Gate, HOUR, watched};
use pirn::thread::{self, Panic};
use pirn_actor::{self as actor, AskError, Context, Handler};
use pirn_flow::progress::{self, Progress};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

#[watched]
fn an_asker_sees_the_progress_while_it_waits() {
    // The task goes on when its report has been seen.
    let (seen, sees) = mpsc::channel();
    let count = actor::function(move |(all, mut progress): (u32, Progress)| {
        progress.phase("counting");
        for n in 1..=all {
            progress.report(f64::from(n) / f64::from(all));
            while sees.recv().unwrap() < f64::from(n) / f64::from(all) {}
        }
        all
    });
    let mut reports = Vec::new();
    let counted = progress::ask(
        &count,
        |progress| (4, progress),
        |report| {
            seen.send(report.done).unwrap();
            reports.push(report);
        },
    );
    assert_eq!(counted, Ok(4));
    let done: Vec<_> = reports
        .iter()
        .map(|report| report.done)
        .filter(|done| *done > 0.0)
        .collect();
    assert_eq!(done, [0.25, 0.5, 0.75, 1.0]);
    assert!(reports.iter().all(|report| &*report.phase == "counting"));
    assert_eq!(reports.last().unwrap().to_string(), "counting: 100 %");
}

#[watched]
fn a_slow_watcher_gets_the_latest_report_and_the_task_does_not_wait() {
    let (mut progress, mut reports) = Progress::new();
    (0..100).for_each(|n| progress.report(f64::from(n) / 100.0));
    assert_eq!(reports.next().unwrap().done, 0.99);
    progress.report(7.0);
    progress.report(f64::NAN);
    assert_eq!(reports.next().unwrap().done, 1.0);
    progress.report(-1.0);
    assert!(progress.is_watched());
    drop(progress);
    assert_eq!(
        reports.next().unwrap().done,
        0.0,
        "the last one is not lost"
    );
    assert_eq!(reports.next(), None);
    assert_eq!(reports.latest().done, 0.0);
}

#[watched]
fn the_reports_end_with_the_message_handled_or_not() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let busy = actor::consumer(move |_: Option<Progress>| blocked.wait());
    busy.send(None).unwrap();
    let (progress, reports) = Progress::new();
    busy.send(Some(progress)).unwrap();
    busy.stop();
    gate.open();
    assert_eq!(reports.count(), 0);
}

#[watched]
fn a_task_learns_that_it_is_not_watched() {
    let (progress, reports) = Progress::new();
    drop(reports);
    assert!(!progress.is_watched());
}

#[watched]
fn an_ask_with_progress_ends_as_any_other() {
    let careless = actor::function(|_: Progress| panic!("careless"));
    let asked: Result<(), _> = progress::ask(&careless, |progress| progress, |_| ());
    assert!(matches!(asked, Err(AskError::Failed(_))), "{asked:?}");
    careless.join();
    assert_eq!(
        progress::ask(&careless, |progress| progress, |_| ()),
        Err(AskError::Gone)
    );

    let sleeps = actor::consumer(|_: Progress| {
        let _ = thread::sleep_interruptible(HOUR);
    });
    let asker = {
        let sleeps = sleeps.clone();
        thread::spawn(move || progress::ask(&sleeps, |progress| progress, |_| ()))
    };
    asker.thread().interrupt();
    assert_eq!(asker.join().unwrap(), Err(AskError::Interrupted));
    // Within a deadline.
    let late = sleeps.clone();
    let (tell, told) = mpsc::channel();
    let asks = actor::function(move |()| {
        tell.send(progress::ask(&late, |progress| progress, |_| ()))
            .unwrap();
    });
    // On a busy machine the time may be up before the message is begun.
    let asked = std::iter::repeat_with(|| {
        let _ = asks.ask_timeout((), Duration::from_millis(5));
        told.recv_timeout(Duration::from_millis(50)).ok()
    });
    // The handler is interrupted at that moment, and its answer may come first.
    let asked = asked.flatten().next();
    assert!(
        matches!(asked, Some(Err(AskError::TimedOut) | Ok(()))),
        "{asked:?}"
    );
    sleeps.kill();
}

struct AsksItself;

impl Handler<Progress> for AsksItself {
    type Reply = Result<(), AskError>;
    fn handle(&mut self, _: Progress, context: &Context<Self>) -> Self::Reply {
        progress::ask(&context.this(), |progress| progress, |_| ())?
    }
}

#[watched]
fn a_circle_is_a_deadlock_here_too() {
    let actor = actor::spawn(AsksItself);
    let answer = progress::ask(&actor, |progress| progress, |_| ()).unwrap();
    assert!(matches!(answer, Err(AskError::Deadlock(_))), "{answer:?}");
}

#[watched]
fn an_answer_ends_the_reports_of_a_progress_that_is_kept() {
    let kept = Arc::new(Mutex::new(None));
    let keeps = Arc::clone(&kept);
    let actor = actor::function(move |mut progress: Progress| {
        progress.report(0.5);
        *keeps.lock().unwrap() = Some(progress);
    });
    let mut last = 0.0;
    let answer = progress::ask(&actor, |progress| progress, |report| last = report.done);
    assert_eq!((answer, last), (Ok(()), 0.5));
    assert!(!kept.lock().unwrap().as_ref().unwrap().is_watched());
}

#[watched]
fn a_panic_of_the_watcher_comes_out() {
    let actor = actor::function(|mut progress: Progress| progress.report(0.5));
    let panic = Panic::catch(|| progress::ask(&actor, |progress| progress, |_| panic!("seen")));
    assert_eq!(panic.unwrap_err().message(), Some("seen"));
}

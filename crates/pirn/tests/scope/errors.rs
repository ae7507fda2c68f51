//! The errors of scopes, converted to the types of other libraries.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use crate::common::watched;
use crate::fixture::*;
use pirn::scope::{self, Builder, Failure, JoinError, SubtaskError};
use pirn::thread::{self, Interrupted, Panic};

/// Returns every way in which a scope can fail, with errors of this type.
fn all_failures<E: Send>(error: fn() -> E) -> Vec<JoinError<E>> {
    let failed = pirn::scope::open(|s| {
        s.fork(|| Err::<(), _>(error()));
        s.join()?;
        Ok(())
    });
    let panicked = pirn::scope::open(|s| {
        s.fork(|| -> Result<(), E> { panic!("the subtask") });
        s.join()?;
        Ok(())
    });
    let timed_out = Builder::new().timeout(Duration::ZERO).open(|s| {
        s.join()?;
        Ok(())
    });
    let interrupted = pirn::scope::open(|s| {
        s.fork(|| {
            let _ = forever::<()>();
            Ok(())
        });
        thread::current().interrupt();
        s.join()?;
        Ok(())
    });
    assert!(thread::take_interrupt());
    let cancelled = pirn::scope::open(|s| {
        s.cancel();
        s.join()?;
        Ok(())
    });
    let none = scope::open_with(scope::any_successful::<u8, E>(), |s| {
        s.join()?;
        Ok(())
    });
    let threads = thread::Builder::new().name("a\0b".into());
    let fork = Builder::new().threads(threads).open(|s| {
        s.fork(|| Ok(()));
        s.join()?;
        Ok(())
    });
    let all = [
        failed,
        panicked,
        timed_out,
        interrupted,
        cancelled,
        none,
        fork,
    ];
    all.into_iter().map(|result| result.unwrap_err()).collect()
}

const TEXTS: [&str; 7] = [
    "a subtask failed: broken",
    "a subtask panicked: the subtask",
    "the scope's time was up before its subtasks ended",
    "the scope's owner was interrupted",
    "the scope was cancelled by its owner",
    "nothing was forked in a scope that needs one result",
    "a subtask could not be started: ",
];

/// An error to fail with.
#[derive(Debug, PartialEq)]
struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken")
    }
}

impl Error for Broken {}

#[watched]
fn texts_and_sources() {
    let all = all_failures(|| Broken);
    for (error, text) in all.iter().zip(TEXTS) {
        assert!(error.to_string().starts_with(text), "{error}");
    }
    let sources = all.iter().map(|error| error.source().is_some());
    assert!(sources.eq([true, true, false, true, false, false, true]));
    assert_eq!(all[0].source().unwrap().downcast_ref(), Some(&Broken));
    assert!(all[1].source().unwrap().is::<Panic>());
    assert!(all[3].source().unwrap().is::<Interrupted>());
    let interrupts = all.iter().map(|error| pirn::thread::is_interrupt(error));
    assert!(interrupts.eq([false, false, false, true, false, false, false]));
}

#[watched]
fn failures_of_subtasks() {
    let failure = Failure::Failed(Broken);
    assert_eq!(failure.to_string(), TEXTS[0]);
    assert_eq!(failure.source().unwrap().downcast_ref(), Some(&Broken));
    let failure = Failure::<Broken>::Panicked(Panic::new(Box::new("the subtask")));
    assert_eq!(failure.to_string(), TEXTS[1]);
    assert!(failure.source().unwrap().is::<Panic>());
}

#[watched]
fn flattened_into_io_errors() {
    let all = all_failures(|| io::Error::from(io::ErrorKind::NotFound));
    let flat: Vec<io::Error> = all.into_iter().map(JoinError::flatten).collect();
    let kinds: Vec<_> = flat.iter().map(io::Error::kind).collect();
    use io::ErrorKind::{InvalidInput, NotFound, Other, TimedOut};
    let interrupted = io::Error::from(Interrupted).kind();
    let expected = [
        NotFound,
        Other,
        TimedOut,
        interrupted,
        Other,
        Other,
        InvalidInput,
    ];
    assert_eq!(kinds, expected);
    assert!(flat[1].to_string().contains("the subtask"));
    assert!(pirn::thread::is_interrupt(&flat[3]));
    assert!(
        flat.iter()
            .filter(|error| pirn::thread::is_interrupt(*error))
            .count()
            == 1
    );
}

#[watched]
fn flattened_into_boxes() {
    type Boxed = Box<dyn Error + Send + Sync>;
    let flat: Vec<Boxed> = all_failures(|| Boxed::from(Broken))
        .into_iter()
        .map(JoinError::flatten)
        .collect();
    assert!(flat[0].is::<Broken>(), "not wrapped");
    for (error, text) in flat.iter().zip(TEXTS).skip(1) {
        assert!(error.to_string().starts_with(text), "{error}");
        assert!(error.is::<JoinError<Infallible>>());
    }
}

/// Takes any error, and like `anyhow::Error` does not implement `Error` itself.
#[derive(Debug)]
struct Any(Box<dyn Error + Send + Sync>);

impl<E: Error + Send + Sync + 'static> From<E> for Any {
    fn from(error: E) -> Any {
        Any(Box::new(error))
    }
}

#[watched]
fn flattened_into_any() {
    fn fail(interrupted: bool) -> Result<(), Any> {
        let result = pirn::scope::open(|s| {
            s.fork(|| {
                if interrupted {
                    thread::sleep_interruptible(FOREVER)?;
                }
                Err::<(), Any>(Broken.into())
            });
            if interrupted {
                thread::current().interrupt();
            }
            s.join()?;
            Ok(())
        });
        result.map_err(JoinError::flatten)
    }
    assert!(fail(false).unwrap_err().0.is::<Broken>());
    assert!(pirn::thread::is_interrupt(&*fail(true).unwrap_err().0));
    assert!(thread::take_interrupt());
    let flat: Vec<Any> = all_failures(|| Any::from(Broken))
        .into_iter()
        .map(JoinError::flatten)
        .collect();
    assert_eq!(flat[4].0.to_string(), TEXTS[4]);
}

#[watched]
fn errors_convert_with_the_question_mark() {
    let result = pirn::scope::open(|s| {
        let first = s.fork(|| Ok(()));
        let number: u8 = "seven".parse()?; // the scope's own code
        first.get(&s.join()?);
        Ok(number)
    });
    let error: JoinError<std::num::ParseIntError> = result.unwrap_err();
    assert!(matches!(error, JoinError::Failed(_)));
    let failure = Failure::Failed(Broken);
    assert!(matches!(
        JoinError::from(failure),
        JoinError::Failed(Broken)
    ));
    let failure = Failure::<Broken>::Panicked(Panic::new(Box::new("text")));
    assert!(matches!(
        SubtaskError::from(failure),
        SubtaskError::Panicked(_)
    ));
}

#[watched]
fn errors_of_subtasks_read_late() {
    let texts = scope::open_with(scope::await_all_successful(), |s| {
        let failed = s.fork(|| Err::<(), _>(Broken));
        until(|| s.is_cancelled());
        let unavailable = s.fork(|| Ok(()));
        let unjoined = s.join().unwrap_err();
        let errors = [failed, unavailable].map(|subtask| subtask.result(&unjoined).unwrap_err());
        assert!(errors.iter().all(|error| error.source().is_none()));
        Ok(errors.map(|error| error.to_string()))
    });
    let expected = [
        "the joiner has taken the subtask's result",
        "the subtask had not completed when its scope was cancelled",
    ];
    assert_eq!(texts.unwrap(), expected);
}

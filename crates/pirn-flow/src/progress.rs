//! Progress: reports of a long task to a thread that waits for it.
//!
//! A message to an actor carries the [`Progress`] beside its other data. Only the latest report is
//! kept: a task does not wait for its watcher, and a slow watcher misses some reports.

use crate::wait::{Line, locked, wait};
use core::fmt;
use pirn::{scope, thread};
use pirn_actor::AskError;
use pirn_actor::address::Ask;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};

/// Asks with a message that carries a [`Progress`], and calls `on_report` with its reports until
/// the answer comes. The running thread waits for the answer; `on_report` runs on another thread.
///
/// # Errors
/// See [`AskError`].
///
/// # Panics
/// If `on_report` panics: with its panic, after the answer has come.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use pirn_flow::progress::{self, Progress};
///
/// let sum = actor::function(|(numbers, mut progress): (Vec<u64>, Progress)| {
///     let all = numbers.len() as f64;
///     let add = |(n, number)| {
///         progress.report(n as f64 / all);
///         number
///     };
///     numbers.into_iter().enumerate().map(add).sum::<u64>()
/// });
/// let numbers = vec![1, 2, 3];
/// let sum = progress::ask(&sum, |progress| (numbers, progress), |report| println!("{report}"));
/// assert_eq!(sum, Ok(6));
/// ```
pub fn ask<M, A: Ask<M>>(
    actor: &A,
    message: impl FnOnce(Progress) -> M,
    on_report: impl FnMut(Report) + Send,
) -> Result<A::Reply, AskError> {
    let (progress, reports) = Progress::new();
    let board = Arc::clone(&reports.0);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| reports.for_each(on_report));
        let answer = actor.ask(message(progress));
        end(&board);
        watcher.join().unwrap_or_else(|panic| resume_unwind(panic));
        answer
    })
}

/// Reports how far a task is. It is sent along in a message.
///
/// # Examples
/// ```
/// use pirn_flow::progress::Progress;
///
/// let (mut progress, reports) = Progress::new();
/// let import = pirn::thread::spawn(move || {
///     progress.phase("import");
///     (0..3).for_each(|row| progress.report(f64::from(row) / 3.0));
/// });
/// for report in reports {
///     println!("{report}"); // import: 33 %
/// }
/// import.join().unwrap();
/// ```
pub struct Progress(Arc<Mutex<Board>>);

/// How far a task is.
///
/// # Examples
/// ```
/// let (mut progress, reports) = pirn_flow::progress::Progress::new();
/// progress.phase("weaving");
/// progress.report(0.25);
/// let report = reports.latest();
/// assert_eq!((report.done, &*report.phase), (0.25, "weaving"));
/// assert_eq!(report.to_string(), "weaving: 25 %");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The part that is done: from 0.0 (nothing) to 1.0 (all).
    pub done: f64,
    /// What the task is doing, in words. Empty if it has not said.
    pub phase: Arc<str>,
}

impl fmt::Display for Report {
    /// Writes phase and percentage.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.phase.is_empty() {
            write!(f, "{}: ", self.phase)?;
        }
        write!(f, "{:.0} %", self.done * 100.0)
    }
}

/// The latest report, and the thread that watches.
#[derive(Default)]
struct Board {
    report: Report,
    is_new: bool,
    /// No more reports will come.
    is_over: bool,
    watcher: Line,
}

/// Notes that no more reports will come.
fn end(board: &Mutex<Board>) {
    let mut board = locked(board);
    board.is_over = true;
    board.watcher.wake(1);
}

impl Progress {
    /// Makes a progress and its reports.
    ///
    /// # Examples
    /// See [`Progress`].
    pub fn new() -> (Progress, Reports) {
        let board = Arc::<Mutex<Board>>::default();
        (Progress(Arc::clone(&board)), Reports(board))
    }

    /// Reports how much is done: from 0.0 (nothing) to 1.0 (all). Values outside are clamped, and
    /// NaN is ignored.
    pub fn report(&mut self, done: f64) {
        if !done.is_nan() {
            self.tell(|report| report.done = done.clamp(0.0, 1.0));
        }
    }

    /// Reports what the task is doing.
    pub fn phase(&mut self, phase: impl Into<Arc<str>>) {
        let phase = phase.into();
        self.tell(|report| report.phase = phase);
    }

    /// Returns false if the [`Reports`] are gone.
    pub fn is_watched(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    fn tell(&self, change: impl FnOnce(&mut Report)) {
        let mut board = locked(&self.0);
        change(&mut board.report);
        board.is_new = true;
        board.watcher.wake(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        end(&self.0);
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress")
            .field(&locked(&self.0).report)
            .finish()
    }
}

/// The reports of one [`Progress`], for a thread that waits for the task.
///
/// As an iterator it waits for a report that it has not returned yet. It ends when the `Progress`
/// is dropped, with the task or with a message that is never handled; and when the running thread
/// is interrupted, or its [deadline](pirn::scope::deadline()) passes.
///
/// # Examples
/// See [`Progress`].
pub struct Reports(Arc<Mutex<Board>>);

impl Reports {
    /// Returns the latest report, without waiting for one.
    pub fn latest(&self) -> Report {
        locked(&self.0).report.clone()
    }
}

impl Iterator for Reports {
    type Item = Report;

    fn next(&mut self) -> Option<Report> {
        let unseen = |board: &mut Board| match core::mem::take(&mut board.is_new) {
            true => Some(Some(board.report.clone())),
            false => board.is_over.then_some(None),
        };
        wait(
            &self.0,
            |board| &mut board.watcher,
            scope::deadline(),
            unseen,
        )
        .ok()?
    }
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reports").field(&self.latest()).finish()
    }
}

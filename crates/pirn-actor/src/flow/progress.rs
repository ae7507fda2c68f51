//! Progress: what a long task tells its asker while it is at it.
//!
//! A message carries the [`Progress`], beside whatever else it carries. Only the latest report is
//! kept: a task does not wait for those who watch it, and a slow watcher misses some.

use crate::actor::{Address, Handle, Ref};
use crate::error::{AskError, SendError};
use crate::identity::current_limit;
use crate::poison::locked;
use crate::reply::Reply;
use crate::time::Limit;
use core::fmt;
use pirn::thread::{self, Thread};
use std::sync::{Arc, Mutex};

/// Reports how far a task is. Goes along in a message; see [`Address::ask_progress`].
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Progress};
///
/// struct Import(Vec<u32>, Progress);
/// let import = actor::function(|Import(rows, mut progress): Import| {
///     progress.phase("import");
///     for n in 0..rows.len() {
///         progress.report(n as f64 / rows.len() as f64);
///     }
///     rows.len()
/// });
/// let (progress, reports) = Progress::new();
/// let imported = import.ask_later(Import(vec![1, 2, 3], progress)).unwrap();
/// for report in reports {
///     println!("{report}"); // import: 33 %
/// }
/// assert_eq!(imported.recv(), Ok(3));
/// ```
pub struct Progress(Arc<Mutex<Board>>);

/// How far a task is.
///
/// # Examples
/// ```
/// let (mut progress, reports) = pirn_actor::Progress::new();
/// progress.phase("weaving");
/// progress.report(0.25);
/// let report = reports.latest();
/// assert_eq!((report.done, &*report.phase), (0.25, "weaving"));
/// assert_eq!(report.to_string(), "weaving: 25 %");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// What has been done: from 0.0, nothing, to 1.0, all.
    pub done: f64,
    /// What is being done, in words. Empty if nothing was said.
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

/// The latest report, and who watches.
struct Board {
    report: Report,
    is_new: bool,
    /// Nothing more will be reported.
    is_over: bool,
    watcher: Option<Thread>,
}

impl Progress {
    /// Makes a progress, and what watches it.
    ///
    /// # Examples
    /// See [`Progress`].
    pub fn new() -> (Progress, Reports) {
        let board = Arc::new(Mutex::new(Board {
            report: Report {
                done: 0.0,
                phase: "".into(),
            },
            is_new: false,
            is_over: false,
            watcher: None,
        }));
        (Progress(Arc::clone(&board)), Reports(board))
    }

    /// Says how much is done: from 0.0, nothing, to 1.0, all. Values beyond are taken for these,
    /// and one that is no number is ignored.
    pub fn report(&mut self, done: f64) {
        if !done.is_nan() {
            self.tell(|report| report.done = done.clamp(0.0, 1.0));
        }
    }

    /// Says what is being done.
    pub fn phase(&mut self, phase: impl Into<Arc<str>>) {
        let phase = phase.into();
        self.tell(|report| report.phase = phase);
    }

    /// Returns false if nobody watches any more.
    pub fn is_watched(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    fn tell(&self, change: impl FnOnce(&mut Report)) {
        let mut board = locked(&self.0);
        change(&mut board.report);
        board.is_new = true;
        board.wake();
    }
}

impl Board {
    fn wake(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            watcher.unpark();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let mut board = locked(&self.0);
        board.is_over = true;
        board.wake();
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
/// As an iterator it waits for a report that has not been seen. It ends when the `Progress` is
/// dropped, with the task or with a message that is never handled; and when the running thread is
/// interrupted, or handles a message whose asker's time is up.
///
/// # Examples
/// See [`Progress`].
pub struct Reports(Arc<Mutex<Board>>);

impl Reports {
    /// Returns the latest report, without waiting for one.
    pub fn latest(&self) -> Report {
        locked(&self.0).report.clone()
    }

    fn next_within(&mut self, limit: Limit) -> Option<Report> {
        loop {
            {
                let mut board = locked(&self.0);
                if core::mem::take(&mut board.is_new) {
                    return Some(board.report.clone());
                }
                if board.is_over {
                    return None;
                }
                board.watcher = Some(thread::current());
            }
            limit.park().ok()?;
        }
    }
}

impl Iterator for Reports {
    type Item = Report;

    fn next(&mut self) -> Option<Report> {
        self.next_within(current_limit())
    }
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reports").field(&self.latest()).finish()
    }
}

/// Waits for an answer, and watches the progress meanwhile.
fn watch<R>(
    mut reply: Reply<R>,
    mut reports: Reports,
    on_report: impl FnMut(Report),
) -> Result<R, AskError> {
    let limit = current_limit();
    {
        let _waits = reply.waits(limit)?;
        core::iter::from_fn(|| reports.next_within(limit)).for_each(on_report);
    }
    reply.recv()
}

impl<M, R> Address<M, R> {
    /// Sends a message that carries a [`Progress`], and calls `on_report` with what that says, on
    /// the running thread, while it waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`].
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{self as actor, Progress};
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
    /// let sum = sum.ask_progress(
    ///     |progress| (numbers, progress),
    ///     |report| println!("{report}"),
    /// );
    /// assert_eq!(sum, Ok(6));
    /// ```
    pub fn ask_progress(
        &self,
        message: impl FnOnce(Progress) -> M,
        on_report: impl FnMut(Report),
    ) -> Result<R, AskError> {
        let (progress, reports) = Progress::new();
        let asked = self.ask_later(message(progress));
        watch(
            asked.map_err(SendError::into_ask_error)?,
            reports,
            on_report,
        )
    }
}

impl<S: Send + 'static> Ref<S> {
    /// Does what [`Address::ask_progress`] does.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn ask_progress<M: Send + 'static>(
        &self,
        message: impl FnOnce(Progress) -> M,
        on_report: impl FnMut(Report),
    ) -> Result<S::Reply, AskError>
    where
        S: Handle<M, Reply: 'static>,
    {
        let (progress, reports) = Progress::new();
        let asked = self.ask_later(message(progress));
        watch(
            asked.map_err(SendError::into_ask_error)?,
            reports,
            on_report,
        )
    }
}

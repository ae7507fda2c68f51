//! Mapping over an iterator with bounded concurrency.

use super::error::{MapError, SubmitError, TaskError};
use super::invoke::Group;
use super::queue::Queue;
use super::watched::WaitLimit;
use super::{Task, ThreadPerTask};
use crate::thread::Panic;
use core::fmt;
use core::iter::FusedIterator;
use core::panic::Location;
use pirn_rt::vthread::record::Place;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

impl ThreadPerTask {
    /// Calls `f` on each item, each on its own thread, at most `limit` at a time. The results are
    /// in the order of the items.
    ///
    /// The iterator is lazy. Each [`next`](Iterator::next) first takes items and starts threads
    /// until there are `limit` of them, counting those that have ended but whose results have not
    /// been returned. Then it waits for the first of them. So at most `limit` items and results are
    /// in memory, but one slow item holds up the others; [`map_unordered`](Self::map_unordered)
    /// does not have this drawback.
    ///
    /// Dropping the iterator early [cancels](Task::cancel) the running tasks, but does not wait for
    /// them; closing the executor does that.
    ///
    /// The error of an item is [`MapError::Panicked`]; the iteration goes on after it.
    /// [`MapError::Submit`] and [`MapError::Interrupted`] end the iteration. `Interrupted` is
    /// returned if the thread is interrupted while it waits in `next`, and cancels the running
    /// tasks.
    ///
    /// # Panics
    /// If `limit` is 0.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    ///
    /// let executor = ThreadPerTask::new();
    /// let squares = executor.map(1..=4, 2, |n| n * n);
    /// let squares: Vec<i32> = squares.collect::<Result<_, _>>()?;
    /// assert_eq!(squares, [1, 4, 9, 16]);
    /// # Ok::<(), pirn::executor::MapError>(())
    /// ```
    #[track_caller]
    pub fn map<I, F, T>(&self, items: I, limit: usize, f: F) -> Map<'_, I::IntoIter, F, T>
    where
        I: IntoIterator,
        I::Item: Send + 'static,
        F: Fn(I::Item) -> T + Send + Sync + 'static,
        T: Send + 'static,
    {
        Map {
            source: Source::new(self, items.into_iter(), limit, f),
            running: Group(VecDeque::new()),
        }
    }

    /// Maps items as [`map`](Self::map) does, but returns the results in the order in which they
    /// are ready, each with the index of its item.
    ///
    /// Here `limit` threads can run at any time, whichever of them end first. Results that have not
    /// been returned yet count.
    ///
    /// # Panics
    /// If `limit` is 0.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use std::sync::Mutex;
    /// use std::sync::mpsc;
    ///
    /// let (second_is_done, wait_for_second) = mpsc::channel();
    /// let (send, receive) = (Mutex::new(second_is_done), Mutex::new(wait_for_second));
    /// let executor = ThreadPerTask::new();
    /// let mut lengths = executor.map_unordered(["warp", "weft!"], 2, move |word| {
    ///     if word == "warp" {
    ///         receive.lock().unwrap().recv().unwrap();
    ///     }
    ///     word.len()
    /// });
    /// let (index, length) = lengths.next().unwrap();
    /// assert_eq!((index, length?), (1, 5));
    /// send.lock().unwrap().send(()).unwrap();
    /// let (index, length) = lengths.next().unwrap();
    /// assert_eq!((index, length?), (0, 4));
    /// # Ok::<(), pirn::executor::MapError>(())
    /// ```
    #[track_caller]
    pub fn map_unordered<I, F, T>(
        &self,
        items: I,
        limit: usize,
        f: F,
    ) -> MapUnordered<'_, I::IntoIter, F, T>
    where
        I: IntoIterator,
        I::Item: Send + 'static,
        F: Fn(I::Item) -> T + Send + Sync + 'static,
        T: Send + 'static,
    {
        MapUnordered {
            source: Source::new(self, items.into_iter(), limit, f),
            running: Running(HashMap::new()),
            results: Queue::new(),
        }
    }
}

/// The items still to come, and the function to apply to them.
struct Source<'e, I, F> {
    executor: &'e ThreadPerTask,
    /// `None` if there are no more items, or no more are wanted.
    items: Option<I>,
    /// The number of items that have been taken.
    taken: usize,
    limit: usize,
    /// The call of `map`, on whose behalf threads are spawned.
    place: Place,
    f: Arc<F>,
    /// The reason for which the last item taken could not be submitted, and the item's index.
    refused: Option<(usize, SubmitError)>,
}

impl<'e, I: Iterator, F> Source<'e, I, F> {
    #[track_caller]
    fn new(executor: &'e ThreadPerTask, items: I, limit: usize, f: F) -> Source<'e, I, F> {
        assert!(limit > 0, "with a limit of 0 threads nothing can be mapped");
        Source {
            place: Location::caller(),
            executor,
            items: Some(items),
            taken: 0,
            limit,
            f: Arc::new(f),
            refused: None,
        }
    }

    /// Takes an item and submits the task that `make` makes of it, unless `running` is at the
    /// limit.
    fn start<G, R>(
        &mut self,
        running: usize,
        make: impl FnOnce(usize, I::Item, Arc<F>) -> G,
    ) -> Option<(usize, Task<R>)>
    where
        G: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        if running >= self.limit {
            return None;
        }
        let Some(item) = self.items.as_mut()?.next() else {
            self.items = None;
            return None;
        };
        let index = self.taken;
        self.taken += 1;
        let task = make(index, item, Arc::clone(&self.f));
        match self.executor.submit_at(self.place, task) {
            Ok(task) => Some((index, task)),
            Err(error) => {
                self.items = None;
                self.refused = Some((index, error));
                None
            }
        }
    }

    fn size_hint(&self, running: usize) -> (usize, Option<usize>) {
        let (low, high) = match &self.items {
            Some(items) => items.size_hint(),
            None => (0, Some(0)),
        };
        let more = running + usize::from(self.refused.is_some());
        // The lower bound stays, because an interrupt may end the iteration at any time.
        let high = high.and_then(|high| high.checked_add(more));
        (low.saturating_add(more).min(1), high)
    }

    fn debug(&self, name: &str, running: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("taken", &self.taken)
            .field("running", &running)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// Results in the order of the items. See [`ThreadPerTask::map`].
///
/// # Examples
/// ```
/// use pirn::executor::ThreadPerTask;
///
/// let executor = ThreadPerTask::new();
/// let mut squares = executor.map(1.., 4, |n: u64| n * n); // at most 4 ahead
/// assert_eq!(squares.next().unwrap()?, 1);
/// assert_eq!(squares.next().unwrap()?, 4);
/// # Ok::<(), pirn::executor::MapError>(())
/// ```
#[must_use = "iterators are lazy: nothing starts before the first `next`"]
pub struct Map<'e, I, F, T> {
    source: Source<'e, I, F>,
    running: Group<T>,
}

impl<I, F, T> Iterator for Map<'_, I, F, T>
where
    I: Iterator,
    I::Item: Send + 'static,
    F: Fn(I::Item) -> T + Send + Sync + 'static,
    T: Send + 'static,
{
    type Item = Result<T, MapError>;

    fn next(&mut self) -> Option<Self::Item> {
        let tasks = &mut self.running.0;
        let call = |_, item, f: Arc<F>| move || f(item);
        while let Some((_, task)) = self.source.start(tasks.len(), call) {
            tasks.push_back(task);
        }
        let Some(first) = tasks.front() else {
            let (_, error) = self.source.refused.take()?;
            return Some(Err(MapError::Submit(error)));
        };
        match first.wait(WaitLimit::UNTIL_INTERRUPTED) {
            Ok(result) => {
                tasks.pop_front();
                Some(result.map_err(|error| match error {
                    TaskError::Panicked(panicked) => MapError::Panicked(panicked),
                    TaskError::Cancelled => unreachable!("nobody else has the task"),
                }))
            }
            Err(_) => {
                self.source.items = None;
                self.source.refused = None;
                self.running = Group(VecDeque::new()); // Cancels those in it.
                Some(Err(MapError::Interrupted))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.source.size_hint(self.running.0.len())
    }
}

impl<I, F, T> FusedIterator for Map<'_, I, F, T> where Self: Iterator {}

impl<I: Iterator, F, T> fmt::Debug for Map<'_, I, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.debug("Map", self.running.0.len(), f)
    }
}

/// Tasks by the indices of their items; cancelled when their results are no longer wanted.
struct Running(HashMap<usize, Task<()>>);

impl Drop for Running {
    fn drop(&mut self) {
        for task in self.0.values() {
            task.cancel();
        }
    }
}

/// Results in the order in which they are ready, with the indices of their items. See
/// [`ThreadPerTask::map_unordered`].
///
/// # Examples
/// ```
/// use pirn::executor::ThreadPerTask;
///
/// let executor = ThreadPerTask::new();
/// let words = ["warp", "weft!"];
/// for (index, length) in executor.map_unordered(words, 2, str::len) {
///     assert_eq!(words[index].len(), length?);
/// }
/// # Ok::<(), pirn::executor::MapError>(())
/// ```
#[must_use = "iterators are lazy: nothing starts before the first `next`"]
pub struct MapUnordered<'e, I, F, T> {
    source: Source<'e, I, F>,
    running: Running,
    results: Queue<(usize, Result<T, Panic>)>,
}

impl<I, F, T> Iterator for MapUnordered<'_, I, F, T>
where
    I: Iterator,
    I::Item: Send + 'static,
    F: Fn(I::Item) -> T + Send + Sync + 'static,
    T: Send + 'static,
{
    /// The index of the item, and its result. The index that comes with [`MapError::Interrupted`]
    /// is the number of items that were taken.
    type Item = (usize, Result<T, MapError>);

    fn next(&mut self) -> Option<Self::Item> {
        let (tasks, results) = (&mut self.running.0, &self.results);
        let call =
            |index, item, f: Arc<F>| results.feed(move || f(item), move |result| (index, result));
        while let Some((index, task)) = self.source.start(tasks.len(), call) {
            tasks.insert(index, task);
        }
        if tasks.is_empty() {
            let (index, error) = self.source.refused.take()?;
            return Some((index, Err(MapError::Submit(error))));
        }
        match results.take(WaitLimit::UNTIL_INTERRUPTED) {
            Ok((index, result)) => {
                tasks.remove(&index);
                Some((index, result.map_err(MapError::Panicked)))
            }
            Err(_) => {
                self.source.items = None;
                self.source.refused = None;
                self.running = Running(HashMap::new()); // Cancels those in it.
                Some((self.source.taken, Err(MapError::Interrupted)))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.source.size_hint(self.running.0.len())
    }
}

impl<I, F, T> FusedIterator for MapUnordered<'_, I, F, T> where Self: Iterator {}

impl<I: Iterator, F, T> fmt::Debug for MapUnordered<'_, I, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.debug("MapUnordered", self.running.0.len(), f)
    }
}

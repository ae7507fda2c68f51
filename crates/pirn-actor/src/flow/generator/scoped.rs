//! Generators that borrow.

use super::{Generator, Out, TimedOut};
use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::time::Duration;
use pirn::thread::{Builder, Interrupted, Scope};

/// Makes a generator as [`generate`](crate::generate()) does, whose producer may borrow what
/// outlives the scope. The scope waits for the end of the producer.
///
/// # Panics
/// If no thread can be had.
///
/// # Examples
/// ```
/// use pirn::thread::{self, Interrupted};
///
/// let words = vec!["warp".to_string(), "weft".to_string()];
/// let length: usize = thread::scope(|scope| {
///     let words = pirn_actor::generate_scoped(scope, 8, |out| {
///         words.iter().try_for_each(|word| out.give(word.as_str()))
///     });
///     words.map(|word: Result<&str, Interrupted>| word.unwrap().len()).sum()
/// });
/// assert_eq!(length, 8);
/// ```
#[track_caller]
pub fn generate_scoped<'scope, T, E, F>(
    scope: &'scope Scope<'scope, '_>,
    ahead: usize,
    produce: F,
) -> ScopedGenerator<'scope, T, E>
where
    T: Send + 'scope,
    E: Send + 'scope,
    F: FnOnce(&mut Out<T>) -> Result<(), E> + Send + 'scope,
{
    let mut generator = Generator::new(ahead);
    let producer = Builder::new().spawn_scoped(scope, generator.producer(produce));
    let producer = producer.expect("a thread for a producer");
    generator.producers.push(producer.thread().clone());
    generator.exchange.all_started();
    ScopedGenerator {
        generator,
        scope: PhantomData,
    }
}

/// A [`Generator`] whose producer belongs to a scope: see [`generate_scoped`].
///
/// It cannot leave the scope, which waits for a producer that waits for a consumer to take its
/// items.
///
/// # Examples
/// ```
/// use pirn::thread::{self, Interrupted};
///
/// let numbers = [1, 2, 3];
/// let first = thread::scope(|scope| {
///     let mut items = pirn_actor::generate_scoped::<_, Interrupted, _>(scope, 1, |out| {
///         numbers.iter().try_for_each(|n| out.give(n))
///     });
///     items.next()
/// });
/// assert_eq!(first, Some(Ok(&1)));
/// ```
#[must_use = "a generator that is dropped interrupts its producers"]
pub struct ScopedGenerator<'scope, T, E> {
    generator: Generator<T, E>,
    scope: PhantomData<&'scope ()>,
}

impl<T, E: From<Interrupted>> ScopedGenerator<'_, T, E> {
    /// Does what [`Generator::next_timeout`] does.
    ///
    /// # Errors
    /// The same.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<Result<T, E>>, TimedOut> {
        self.generator.next_timeout(timeout)
    }
}

impl<T, E: From<Interrupted>> Iterator for ScopedGenerator<'_, T, E> {
    type Item = Result<T, E>;

    fn next(&mut self) -> Option<Result<T, E>> {
        self.generator.next()
    }
}

impl<T, E: From<Interrupted>> FusedIterator for ScopedGenerator<'_, T, E> {}

impl<T, E> fmt::Debug for ScopedGenerator<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.generator.fmt(f)
    }
}

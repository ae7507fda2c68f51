//! The choice between virtual threads and platform threads, with their configuration.

use super::names::Names;
use super::{Builder, Thread};
use core::fmt;
use core::panic::Location;
use pirn_rt::vthread::{self, record::Place};
use std::io;

/// The threads that an [executor](crate::executor::ThreadPerTask::with), a
/// [scope](crate::scope::Builder::threads) or a server starts: virtual threads or platform threads.
///
/// # Examples
/// ```
/// use pirn::executor::ThreadPerTask;
/// use pirn::thread::{self, PlatformThreads, Threads};
///
/// let needs_the_kernels_threads = true;
/// let threads = match needs_the_kernels_threads {
///     true => Threads::from(PlatformThreads::new().name_counter("worker-", 1)),
///     false => Threads::from(thread::Builder::new().name_counter("worker-", 1)),
/// };
/// let executor = ThreadPerTask::with(threads);
/// let name = executor.submit(|| thread::current().name().map(str::to_owned))?;
/// assert_eq!(name.join()?.as_deref(), Some("worker-1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Threads {
    /// Virtual threads, made by this builder.
    Virtual(Builder),
    /// Platform threads with this configuration.
    Platform(PlatformThreads),
}

impl Threads {
    /// Starts a thread that runs `f`, and that cannot be joined.
    ///
    /// # Errors
    /// If there is no room for another thread, or a platform thread's name contains a NUL byte.
    ///
    /// # Panics
    /// As [`Builder::spawn`].
    ///
    /// # Examples
    /// ```
    /// use pirn::thread::{Builder, PlatformThreads, Threads};
    /// use std::sync::mpsc;
    ///
    /// let kinds = [Threads::from(Builder::new()), Threads::from(PlatformThreads::new())];
    /// for (threads, expected) in kinds.into_iter().zip([true, false]) {
    ///     let (tell, told) = mpsc::channel();
    ///     threads.spawn(move || tell.send(pirn::thread::current().is_virtual()).unwrap())?;
    ///     assert_eq!(told.recv(), Ok(expected));
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn(&self, f: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.start(Location::caller(), f).map(drop)
    }

    /// Calls `run` on a new thread, on behalf of `place`. Returns the thread, unless only that
    /// thread itself can tell which it is.
    pub(crate) fn start(
        &self,
        place: Place,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<Option<Thread>> {
        match self {
            Threads::Virtual(builder) => {
                let handle = builder.clone().spawn_at(place, run)?;
                Ok(Some(handle.thread().clone()))
            }
            Threads::Platform(platform) => {
                let builder = platform.builder()?;
                vthread::force_platform(|| builder.spawn(run))?;
                Ok(None)
            }
        }
    }
}

impl Default for Threads {
    /// Returns unnamed virtual threads.
    fn default() -> Threads {
        Threads::Virtual(Builder::new())
    }
}

impl From<Builder> for Threads {
    fn from(builder: Builder) -> Threads {
        Threads::Virtual(builder)
    }
}

impl From<PlatformThreads> for Threads {
    fn from(platform: PlatformThreads) -> Threads {
        Threads::Platform(platform)
    }
}

/// Configures the platform threads of an executor or a scope, as [`Builder`] configures virtual
/// ones.
///
/// # Examples
/// ```
/// use pirn::executor::ThreadPerTask;
/// use pirn::thread::PlatformThreads;
///
/// let threads = PlatformThreads::new().name_counter("io-", 0).stack_size(128 << 10);
/// let executor = ThreadPerTask::with(threads);
/// let name = executor.submit(|| std::thread::current().name().map(str::to_owned))?;
/// assert_eq!(name.join()?.as_deref(), Some("io-0"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "it only configures threads"]
pub struct PlatformThreads {
    names: Names,
    stack_size: Option<usize>,
}

impl PlatformThreads {
    /// Returns a configuration of unnamed threads with `std`'s default stack size.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use pirn::thread::PlatformThreads;
    ///
    /// let executor = ThreadPerTask::with(PlatformThreads::new());
    /// let task = executor.submit(|| std::thread::current().name().is_none())?;
    /// assert!(task.join()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new() -> PlatformThreads {
        PlatformThreads::default()
    }

    /// Names threads `{prefix}{start}`, `{prefix}{start + 1}`, … in the order in which they are
    /// started. Clones share the counter.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use pirn::thread::PlatformThreads;
    ///
    /// let executor = ThreadPerTask::with(PlatformThreads::new().name_counter("worker-", 1));
    /// assert_eq!(executor.submit(|| ())?.thread().name(), Some("worker-1"));
    /// assert_eq!(executor.submit(|| ())?.thread().name(), Some("worker-2"));
    /// # Ok::<(), pirn::executor::SubmitError>(())
    /// ```
    pub fn name_counter(mut self, prefix: impl Into<String>, start: u64) -> PlatformThreads {
        self.names = Names::counter(prefix.into(), start);
        self
    }

    /// Sets the size of the stack in bytes, as [`std::thread::Builder::stack_size`] takes it.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use pirn::thread::PlatformThreads;
    ///
    /// let executor = ThreadPerTask::with(PlatformThreads::new().stack_size(64 << 20));
    /// let task = executor.submit(|| std::hint::black_box([1u8; 8 << 20]).len())?; // on the stack
    /// assert_eq!(task.join()?, 8 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stack_size(mut self, size: usize) -> PlatformThreads {
        self.stack_size = Some(size);
        self
    }

    /// Returns a builder for the next thread.
    pub(crate) fn builder(&self) -> io::Result<std::thread::Builder> {
        let mut builder = std::thread::Builder::new();
        if let Some(name) = self.names.next()? {
            builder = builder.name(name);
        }
        if let Some(size) = self.stack_size {
            builder = builder.stack_size(size);
        }
        Ok(builder)
    }
}

impl fmt::Debug for PlatformThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlatformThreads")
            .field("name", &self.names.pattern())
            .field("stack_size", &self.stack_size)
            .finish()
    }
}

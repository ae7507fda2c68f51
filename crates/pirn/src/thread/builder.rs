//! Building threads.

use super::names::Names;
use super::scheduler::{Scheduler, UsersScheduler};
use super::scoped::{Scope, ScopedJoinHandle};
use super::{JoinHandle, Panic, Thread, current};
use core::fmt;
use core::panic::Location;
use pirn_rt::sched::ClosureBody;
use pirn_rt::sched::runtime::{self, Runtime};
use pirn_rt::sched::{self, Cause};
use pirn_rt::stack::{LARGEST_STACK, SizeClass};
use pirn_rt::vthread::Dispatch;
use pirn_rt::vthread::record::{Attributes, Place};
use pirn_rt::vthread::{Ready, ThreadRef};
use std::io;
use std::sync::Arc;

/// Configures virtual threads before they are spawned.
///
/// A clone spawns another thread with the same configuration.
///
/// # Examples
/// ```
/// use pirn::thread;
///
/// let handle = thread::Builder::new()
///     .name("worker".into())
///     .stack_size(64 << 10)
///     .spawn(|| thread::current().name().map(str::to_owned))?;
/// assert_eq!(handle.join().unwrap().as_deref(), Some("worker"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "a builder spawns nothing by itself"]
pub struct Builder {
    names: Names,
    stack_size: Option<usize>,
    scheduler: Option<Arc<dyn Dispatch>>,
    on_panic: Option<Arc<OnPanic>>,
}

type OnPanic = dyn Fn(&Thread, &Panic) + Send + Sync;

impl Builder {
    /// Returns a builder of unnamed threads with the default stack size and scheduler.
    #[inline]
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Names the thread. Panic messages of the runtime, `Debug` output and dumps show the name.
    pub fn name(mut self, name: String) -> Builder {
        self.names = Names::Fixed(name);
        self
    }

    /// Names threads `{prefix}{start}`, `{prefix}{start + 1}`, … in the order in which this builder
    /// and its clones spawn them.
    ///
    /// # Examples
    /// ```
    /// let workers = pirn::thread::Builder::new().name_counter("worker-", 1);
    /// let first = workers.clone().spawn(|| ())?;
    /// let second = workers.spawn(|| ())?;
    /// assert_eq!(first.thread().name(), Some("worker-1"));
    /// assert_eq!(second.thread().name(), Some("worker-2"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name_counter(mut self, prefix: impl Into<String>, start: u64) -> Builder {
        self.names = Names::counter(prefix.into(), start);
        self
    }

    /// Sets the size of the stack in bytes, rounded up to whole pages, at least 16 KiB and at most
    /// 1 GiB. The runtime uses about 6 KiB of it. This is address space only: memory is used as the
    /// stack grows.
    ///
    /// The stacks of one process can have 44 different sizes besides the powers of two; after that
    /// they are rounded up to a power of two.
    ///
    /// By default the first 4,096 threads alive have 2 MiB each, those beyond 256 KiB (2 MiB with
    /// debug assertions), unless `PIRN_STACK_SIZE`, [`Config`](crate::Config) or `RUST_MIN_STACK`
    /// sets another size.
    pub fn stack_size(mut self, size: usize) -> Builder {
        self.stack_size = Some(size);
        self
    }

    /// Sets the scheduler that runs the thread, in place of the default one.
    ///
    /// # Examples
    /// ```
    /// # use pirn::{Runnable, Scheduler, thread};
    /// # use std::sync::{Arc, Mutex, mpsc};
    /// /// Sends runnable threads to the thread that runs them.
    /// struct ToReceiver(Mutex<mpsc::Sender<Runnable>>);
    /// # impl Scheduler for ToReceiver {
    /// #     fn schedule(&self, thread: Runnable) {
    /// #         let _ = self.0.lock().unwrap().send(thread);
    /// #     }
    /// # }
    /// let (sender, receiver) = mpsc::channel();
    /// let scheduler = Arc::new(ToReceiver(Mutex::new(sender)));
    /// let handle = thread::Builder::new().scheduler(scheduler).spawn(|| 6 * 7)?;
    /// while !handle.is_finished() {
    ///     receiver.recv().unwrap().run(); // on this platform thread
    /// }
    /// assert_eq!(handle.join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn scheduler(mut self, scheduler: Arc<dyn Scheduler>) -> Builder {
        self.scheduler = Some(Arc::new(UsersScheduler(scheduler)));
        self
    }

    /// Sets a function that is called when the closure of a thread of this builder panics, on that
    /// thread, after its stack has been unwound.
    ///
    /// The panic hook has written the message by then, as of any panic; this function learns of
    /// those that end a thread. A joiner gets the panic all the same. It is for threads that no
    /// thread joins. [Scopes](mod@crate::scope) and executors do not call it: a panic of theirs is
    /// the result of the subtask or task. If the function panics itself, only the panic hook is
    /// called.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread::{Builder, Panic, Thread};
    /// use std::sync::mpsc;
    ///
    /// let (report, reports) = mpsc::channel();
    /// let workers = Builder::new()
    ///     .name_counter("worker-", 1)
    ///     .on_panic(move |thread: &Thread, panic: &Panic| {
    ///         let _ = report.send(format!("{} {panic}", thread.name().unwrap()));
    ///     });
    /// workers.spawn(|| panic!("out of stock"))?;
    /// assert_eq!(reports.recv().unwrap(), "worker-1 panicked: out of stock");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[doc(alias = "uncaughtExceptionHandler")]
    pub fn on_panic(mut self, f: impl Fn(&Thread, &Panic) + Send + Sync + 'static) -> Builder {
        self.on_panic = Some(Arc::new(f));
        self
    }

    /// Spawns a virtual thread.
    ///
    /// # Errors
    /// * `InvalidInput`: the stack is larger than 1 GiB.
    /// * `OutOfMemory`: there is no memory or no address space for the stack; the text names the
    ///   limit.
    /// * other kinds, from the first spawn only: the runtime could not start (an unsupported
    ///   kernel, C library or processor; a bad setting; no platform threads for the carriers).
    ///
    /// # Panics
    /// If the name contains a NUL byte, as in `std`.
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_at(Location::caller(), f)
    }

    /// Spawns a thread on behalf of `place`.
    #[inline]
    pub(crate) fn spawn_at<F, T>(self, place: Place, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.names.assert_valid();
        let thread = match &self.on_panic {
            None => self.launch(place, |attributes| ClosureBody::allocate(attributes, f)),
            Some(handler) => {
                let f = reporting(handler, f);
                self.launch(place, |attributes| ClosureBody::allocate(attributes, f))
            }
        };
        thread.map(JoinHandle::new)
    }

    /// Spawns a virtual thread in a scope. The thread may borrow from the scope's environment.
    ///
    /// # Errors
    /// The same as for [`spawn`](Self::spawn).
    ///
    /// # Panics
    /// The same as for [`spawn`](Self::spawn).
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    /// let words = ["warp", "weft"];
    /// thread::scope(|s| {
    ///     let handle = thread::Builder::new().name("counter".into()).spawn_scoped(s, || words.len())?;
    ///     assert_eq!(handle.join().unwrap(), 2);
    ///     Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_scoped<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        f: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.names.assert_valid();
        let place = Location::caller();
        let thread = match &self.on_panic {
            None => self.launch(place, |attributes| scope.allocate(attributes, f)),
            Some(handler) => {
                let f = reporting(handler, f);
                self.launch(place, |attributes| scope.allocate(attributes, f))
            }
        };
        Ok(scope.handle_of(thread?))
    }

    /// Makes a thread and hands it to its scheduler.
    fn launch(
        &self,
        place: Place,
        allocate: impl FnOnce(Attributes) -> Option<(ThreadRef, Ready)>,
    ) -> io::Result<ThreadRef> {
        let (thread, ready) = self.make(place, allocate)?;
        sched::schedule(ready, Cause::Start);
        Ok(thread)
    }

    /// Makes a thread on behalf of `place` by `allocate`, which returns `None` if there is no
    /// memory. The caller must start the thread.
    pub(crate) fn make<R>(
        &self,
        place: Place,
        allocate: impl FnOnce(Attributes) -> Option<R>,
    ) -> io::Result<R> {
        let runtime = runtime::ensure_started()?;
        let name = self.names.next()?.map(String::into_boxed_str);
        let class = self.size_class(runtime)?;
        runtime.reserve_stack(class)?;
        let attributes = Attributes {
            home: runtime.home(),
            name,
            class,
            scheduler: self.scheduler.clone(),
            place,
        };
        allocate(attributes).ok_or_else(|| {
            runtime.stacks.unreserve(class, 1);
            io::Error::new(io::ErrorKind::OutOfMemory, "no memory for a virtual thread")
        })
    }

    fn size_class(&self, runtime: &Runtime) -> io::Result<SizeClass> {
        match self.stack_size {
            None => Ok(runtime.settings.default_class),
            Some(bytes) if bytes > LARGEST_STACK => Err(invalid(format!(
                "a stack of {bytes} bytes was asked for; at most 1 GiB is possible"
            ))),
            Some(bytes) => Ok(SizeClass::for_bytes(bytes)),
        }
    }
}

/// Returns a closure that calls `f`, tells `handler` of a panic, and panics with the same payload.
///
/// In a box, so that the code of a thread is not compiled twice for each closure.
#[cold]
fn reporting<'a, T>(
    handler: &Arc<OnPanic>,
    f: impl FnOnce() -> T + Send + 'a,
) -> Box<dyn FnOnce() -> T + Send + 'a> {
    let handler = Arc::clone(handler);
    Box::new(move || {
        Panic::catch(f).unwrap_or_else(|panic| {
            let _ = Panic::catch(|| handler(&current(), &panic));
            panic.resume()
        })
    })
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.names.pattern())
            .field("stack_size", &self.stack_size)
            .field("scheduler", &self.scheduler.as_ref().map(|_| "custom"))
            .finish()
    }
}

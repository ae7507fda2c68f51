//! A descriptor for async code, on the runtime's own poller.
//!
//! Each direction has a [`TaskPlace`], in which the poll functions keep the last waker; a future
//! has one of its own, which it takes out of the descriptor's list when it is dropped. The
//! descriptor stays as it is, mostly blocking, so threads may use it at the same time as tasks do.

use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll};
use pirn_rt::blocking::fds::readiness::Interest;
use pirn_rt::blocking::task::{self, TaskPlace};
use pirn_rt::poison::locked;
use pirn_rt::{sched::runtime, sys};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Mutex;
#[cfg(any(feature = "futures-io", feature = "hyper-io", feature = "tokio-io"))]
use std::sync::atomic::AtomicBool;

#[cfg(feature = "futures-io")]
mod futures;
#[cfg(feature = "hyper-io")]
mod hyper;
#[cfg(feature = "tokio-io")]
mod tokio;
#[cfg(any(feature = "futures-io", feature = "hyper-io", feature = "tokio-io"))]
mod transfer;

/// A descriptor that async code waits for without blocking the thread that polls it.
///
/// It makes a socket, a pipe or the like usable in futures that [`block_on`](crate::block_on) runs,
/// or any other executor, on virtual and on platform threads. Carriers of virtual threads take the
/// events and wake the tasks, so no async runtime is needed.
///
/// With the features `futures-io`, `hyper-io` and `tokio-io` it implements the traits for reading
/// and writing of these crates, and so does `&AsyncIo`. Any crate of a protocol that is written
/// against such traits and needs no runtime then works on it. These implementations use the
/// descriptor itself, with calls that do not wait, whatever its flags are. They never call
/// [`Read`](io::Read) or [`Write`](io::Write) of `T`.
///
/// The descriptor's flags are left alone. If it blocks, as a socket of `std` does, threads can read
/// and write it with `std` while tasks use the `AsyncIo`. Time limits such as
/// [`set_read_timeout`](std::net::TcpStream::set_read_timeout) hold for these threads only.
///
/// # Several tasks
/// Any number of tasks may use the futures of one `AsyncIo`. The poll functions and the traits keep
/// one waker per direction, from the last call: one task may read while another one writes, but
/// of two tasks that poll for the same direction only one is woken.
///
/// # Files
/// A regular file is always ready. Reading or writing it through the traits waits for the disk: a
/// virtual thread parks, a platform thread blocks.
///
/// # Wakers
/// [`Waker::wake`](core::task::Waker::wake) is called by the carrier that takes the event, as
/// platform code: it should not block for long, and a panic aborts the process. The wakers of
/// `block_on` and of the known executors only make their task runnable.
///
/// # Examples
///
/// An echo in async code, on a virtual thread:
///
/// ```
/// # #[cfg(feature = "futures-io")] {
/// use futures_util::{AsyncReadExt, AsyncWriteExt};
/// use pirn::{AsyncIo, block_on, thread};
/// use std::net::{Shutdown, TcpListener, TcpStream};
/// use std::io::{Read, Write};
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?;
/// let server = thread::spawn(move || {
///     let stream = AsyncIo::new(listener.accept()?.0)?;
///     block_on(futures_util::io::copy(&stream, &mut &stream))
/// });
///
/// let mut stream = TcpStream::connect(address)?;
/// stream.write_all(b"warp")?;
/// stream.shutdown(Shutdown::Write)?;
/// assert_eq!(server.join().unwrap()?, 4);
/// let mut answer = String::new();
/// stream.read_to_string(&mut answer)?;
/// assert_eq!(answer, "warp");
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct AsyncIo<T> {
    // Dropped before the descriptor is closed, so that the close wakes no thread.
    reading: Mutex<TaskPlace>,
    writing: Mutex<TaskPlace>,
    /// Whether an attempt has found that it is not a socket.
    #[cfg(any(feature = "futures-io", feature = "hyper-io", feature = "tokio-io"))]
    plain: AtomicBool,
    io: T,
}

impl<T: AsFd> AsyncIo<T> {
    /// Makes a descriptor usable in async code. Starts the runtime if there are no virtual threads
    /// yet.
    ///
    /// # Errors
    /// If the runtime cannot start (in the child of a fork, for example), or the kernel cannot
    /// report the descriptor's events: `/proc/sys/fs/epoll/max_user_watches` is reached, or memory
    /// is short. A descriptor without events, such as a regular file, is not an error.
    pub fn new(io: T) -> io::Result<AsyncIo<T>> {
        runtime::ensure_started()?;
        task::prepare(io.as_fd().as_raw_fd())?;
        Ok(AsyncIo {
            reading: Mutex::new(TaskPlace::new(Interest::Read)),
            writing: Mutex::new(TaskPlace::new(Interest::Write)),
            #[cfg(any(feature = "futures-io", feature = "hyper-io", feature = "tokio-io"))]
            plain: AtomicBool::new(false),
            io,
        })
    }

    /// Waits until the descriptor can be read without waiting, or accepted from, or is closed by
    /// the peer or broken. Returns at once if it is so already.
    ///
    /// Others may be faster: a read after this may still find nothing, and then waits if the
    /// descriptor blocks.
    ///
    /// # Errors
    /// If the descriptor's events cannot be waited for, as for [`new`](Self::new).
    ///
    /// # Examples
    /// ```
    /// use pirn::{AsyncIo, block_on};
    /// use std::net::{TcpListener, TcpStream};
    ///
    /// let listener = AsyncIo::new(TcpListener::bind("127.0.0.1:0")?)?;
    /// let _client = TcpStream::connect(listener.get_ref().local_addr()?)?;
    /// let (stream, _) = block_on(async {
    ///     listener.readable().await?;
    ///     listener.get_ref().accept()
    /// })?;
    /// # drop(stream);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn readable(&self) -> io::Result<()> {
        let mut place = TaskPlace::new(Interest::Read);
        poll_fn(|context| self.poll_ready(&mut place, READABLE, context)).await
    }

    /// Waits until the descriptor can be written without waiting, or is connected, or is broken.
    /// Returns at once if it is so already.
    ///
    /// # Errors
    /// As for [`readable`](Self::readable).
    pub async fn writable(&self) -> io::Result<()> {
        let mut place = TaskPlace::new(Interest::Write);
        poll_fn(|context| self.poll_ready(&mut place, WRITABLE, context)).await
    }

    /// Polls whether the descriptor is [readable](Self::readable). If it is not, the task of
    /// `context` is woken when it may be, and no other one that has called this before.
    ///
    /// # Errors
    /// As for [`readable`](Self::readable).
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(&mut locked(&self.reading), READABLE, context)
    }

    /// Polls whether the descriptor is [writable](Self::writable). If it is not, the task of
    /// `context` is woken when it may be, and no other one that has called this before.
    ///
    /// # Errors
    /// As for [`readable`](Self::readable).
    pub fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(&mut locked(&self.writing), WRITABLE, context)
    }

    /// Calls `operation`, and while that fails with [`WouldBlock`](io::ErrorKind::WouldBlock) waits
    /// for the descriptor to become readable, and calls it again. Returns its result.
    ///
    /// `operation` must use this descriptor, and not wait by itself: it makes a call with
    /// `MSG_DONTWAIT`, for example, or the descriptor is non-blocking. (A read with `std` of a
    /// descriptor that blocks would park the thread, and so never fail in this way: await
    /// [`readable`](Self::readable) before it.)
    ///
    /// # Errors
    /// The errors of `operation` and of [`readable`](Self::readable).
    ///
    /// # Examples
    /// ```
    /// use pirn::{AsyncIo, block_on, thread};
    /// use std::net::UdpSocket;
    ///
    /// let socket = UdpSocket::bind("127.0.0.1:0")?;
    /// socket.set_nonblocking(true)?;
    /// let address = socket.local_addr()?;
    /// let socket = AsyncIo::new(socket)?;
    ///
    /// let sender = thread::spawn(move || {
    ///     UdpSocket::bind("127.0.0.1:0")?.send_to(b"weft", address)
    /// });
    /// let mut buffer = [0; 16];
    /// let (length, _) = block_on(socket.read_with(|socket| socket.recv_from(&mut buffer)))?;
    /// assert_eq!(&buffer[..length], b"weft");
    /// assert_eq!(sender.join().unwrap()?, 4);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn read_with<R>(&self, operation: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.perform(Interest::Read, operation).await
    }

    /// Calls `operation`, and while that fails with [`WouldBlock`](io::ErrorKind::WouldBlock) waits
    /// for the descriptor to become writable, and calls it again. Returns its result.
    ///
    /// What is said of the operation of [`read_with`](Self::read_with) holds here, too.
    ///
    /// # Errors
    /// The errors of `operation` and of [`writable`](Self::writable).
    pub async fn write_with<R>(&self, operation: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.perform(Interest::Write, operation).await
    }

    async fn perform<R>(
        &self,
        interest: Interest,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        let mut place = TaskPlace::new(interest);
        poll_fn(|context| {
            let attempt = || match operation(&self.io) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => None,
                result => Some(result),
            };
            place.poll(self.number(), context.waker(), attempt)
        })
        .await?
    }

    /// Polls whether the descriptor has one of these events of `poll`.
    fn poll_ready(
        &self,
        place: &mut TaskPlace,
        events: i16,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let fd = self.number();
        let attempt = || (sys::events_now(fd, events) != 0).then_some(());
        place.poll(fd, context.waker(), attempt)
    }

    fn number(&self) -> i32 {
        self.io.as_fd().as_raw_fd()
    }
}

/// What `poll` is asked; it reports errors, hang-ups and closed descriptors in any case.
const READABLE: i16 = libc::POLLIN | libc::POLLRDHUP;
const WRITABLE: i16 = libc::POLLOUT;

impl<T> AsyncIo<T> {
    /// Returns the owner of the descriptor.
    pub fn get_ref(&self) -> &T {
        &self.io
    }

    /// Returns the owner of the descriptor, to change it.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.io
    }

    /// Returns the owner of the descriptor, unchanged. Tasks that wait for it are not woken any
    /// more.
    pub fn into_inner(self) -> T {
        self.io
    }
}

impl<T: AsFd> AsFd for AsyncIo<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl<T: fmt::Debug> fmt::Debug for AsyncIo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncIo").field(&self.io).finish()
    }
}

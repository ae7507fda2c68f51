//! Reading and writing, as the traits of all crates need it.

use super::AsyncIo;
use core::sync::atomic::Ordering;
use core::task::{Context, Poll};
use libc::iovec;
use pirn_libc::once;
use pirn_rt::poison::locked;
use pirn_rt::sys::{Errno, SysResult};
#[cfg(feature = "futures-io")]
use std::io::IoSliceMut;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;

/// The most buffers that the kernel takes at once.
const MOST: usize = libc::UIO_MAXIOV as usize;

impl<T: AsFd> AsyncIo<T> {
    /// Polls a read into one buffer.
    ///
    /// # Safety
    /// `buffer` is valid for writes of `length` bytes. They need not be initialised; as many as the
    /// result says are afterwards.
    #[cfg(any(feature = "hyper-io", feature = "tokio-io"))]
    pub(super) unsafe fn poll_read_into(
        &self,
        context: &mut Context<'_>,
        buffer: *mut u8,
        length: usize,
    ) -> Poll<io::Result<usize>> {
        let buffer = iovec {
            iov_base: buffer.cast(),
            iov_len: length,
        };
        // SAFETY: the caller's contract.
        unsafe { self.poll_read_all(context, &[buffer]) }
    }

    /// Polls a read into several buffers.
    #[cfg(feature = "futures-io")]
    pub(super) fn poll_read_slices(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        // SAFETY: `IoSliceMut` is an `iovec` on Unix, by its documentation; so the buffers are
        // valid.
        unsafe {
            let buffers = core::slice::from_raw_parts(buffers.as_ptr().cast(), buffers.len());
            self.poll_read_all(context, buffers)
        }
    }

    /// # Safety
    /// The buffers are valid for writes.
    unsafe fn poll_read_all(
        &self,
        context: &mut Context<'_>,
        buffers: &[iovec],
    ) -> Poll<io::Result<usize>> {
        let Some((buffers, wanted)) = accepted(buffers) else {
            return Poll::Ready(Ok(0));
        };
        let fd = self.number();
        let attempt = || {
            // SAFETY: the caller's contract.
            let socket = || unsafe { once::READ.on_socket(fd, buffers) };
            // SAFETY: the caller's contract.
            self.attempt(socket, || unsafe { once::READ.on_any(fd, buffers) })
        };
        locked(&self.reading).poll_read(fd, context.waker(), wanted, attempt)
    }

    /// Polls a write of several buffers.
    pub(super) fn poll_write_slices(
        &self,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // SAFETY: `IoSlice` is an `iovec` on Unix, by its documentation.
        let buffers: &[iovec] =
            unsafe { core::slice::from_raw_parts(buffers.as_ptr().cast(), buffers.len()) };
        let Some((buffers, _)) = accepted(buffers) else {
            return Poll::Ready(Ok(0));
        };
        let fd = self.number();
        let attempt = || {
            // SAFETY: the slices are valid for reads.
            let socket = || unsafe { once::WRITE.on_socket(fd, buffers) };
            // SAFETY: the slices are valid for reads.
            self.attempt(socket, || unsafe { once::WRITE.on_any(fd, buffers) })
        };
        locked(&self.writing).poll_write(fd, context.waker(), attempt)
    }

    /// Makes an attempt in the way that suits the descriptor.
    fn attempt(
        &self,
        socket: impl FnOnce() -> SysResult,
        other: impl FnOnce() -> SysResult,
    ) -> SysResult {
        // Relaxed, both: only saves an attempt. The other way suits sockets as well.
        if !self.plain.load(Ordering::Relaxed) {
            match socket() {
                Err(Errno(libc::ENOTSOCK)) => self.plain.store(true, Ordering::Relaxed),
                result => return result,
            }
        }
        other()
    }

    /// Ends what is written to a socket. Other descriptors stay open until they are closed. A
    /// connection that its peer has reset has ended: tokio, too, takes that for no error.
    pub(super) fn end_writing(&self) -> io::Result<()> {
        match once::end_writing(self.number()) {
            Ok(_) | Err(Errno(libc::ENOTSOCK | libc::ENOTCONN)) => Ok(()),
            Err(e) => Err(io::Error::from_raw_os_error(e.0)),
        }
    }
}

/// Returns the buffers that the kernel takes, and their number of bytes. `None`: it takes no bytes.
fn accepted(buffers: &[iovec]) -> Option<(&[iovec], usize)> {
    let buffers = &buffers[..buffers.len().min(MOST)];
    let bytes = buffers
        .iter()
        .fold(0usize, |sum, b| sum.saturating_add(b.iov_len));
    (bytes > 0).then_some((buffers, bytes))
}

/// Implements a trait of a crate for `AsyncIo` and for a reference to one, which tasks can share.
macro_rules! for_both {
    ($(#[$doc:meta])* impl $name:ident { $($methods:tt)* }) => {
        $(#[$doc])*
        impl<T: AsFd> $name for AsyncIo<T> { $($methods)* }

        $(#[$doc])*
        impl<T: AsFd> $name for &AsyncIo<T> { $($methods)* }
    };
}
pub(super) use for_both;

/// The methods that the traits for writing have in common; the last one has another name in each.
macro_rules! write_methods {
    ($end:ident) => {
        fn poll_write(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_slices(context, &[IoSlice::new(buffer)])
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffers: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_slices(context, buffers)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn $end(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(self.end_writing())
        }
    };
}
pub(super) use write_methods;

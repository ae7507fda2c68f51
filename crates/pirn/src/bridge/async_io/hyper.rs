//! The traits of `hyper`.

use super::AsyncIo;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use hyper::rt::{Read, ReadBufCursor, Write};
use std::io::{self, IoSlice};
use std::os::fd::AsFd;

fn read<T: AsFd>(
    io: &AsyncIo<T>,
    context: &mut Context<'_>,
    mut buffer: ReadBufCursor<'_>,
) -> Poll<io::Result<()>> {
    // SAFETY: only written to.
    let room = unsafe { buffer.as_mut() };
    let (start, length) = (room.as_mut_ptr().cast(), room.len());
    // SAFETY: the room is valid for writes.
    let done = ready!(unsafe { io.poll_read_into(context, start, length) })?;
    // SAFETY: the kernel has written as many bytes as it says.
    unsafe { buffer.advance(done) };
    Poll::Ready(Ok(()))
}

/// Reads from the descriptor. Needs the feature `hyper-io`.
impl<T: AsFd> Read for &AsyncIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        read(&self, context, buffer)
    }
}

/// Writes to the descriptor. Shutting down ends what is written to a socket. Needs the feature
/// `hyper-io`.
impl<T: AsFd> Write for &AsyncIo<T> {
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

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.end_writing())
    }
}

/// Reads from the descriptor. Needs the feature `hyper-io`.
impl<T: AsFd> Read for AsyncIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        read(&self, context, buffer)
    }
}

/// Writes to the descriptor. Shutting down ends what is written to a socket. Needs the feature
/// `hyper-io`.
impl<T: AsFd> Write for AsyncIo<T> {
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

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.end_writing())
    }
}

//! The traits of `hyper`.

use super::AsyncIo;
use super::transfer::{for_both, write_methods};
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

for_both! {
    /// Reads from the descriptor. Needs the feature `hyper-io`.
    impl Read {
        fn poll_read(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            read(&self, context, buffer)
        }
    }
}

for_both! {
    /// Writes to the descriptor. Shutting down ends what is written to a socket. Needs the feature
    /// `hyper-io`.
    impl Write {
        write_methods!(poll_shutdown);

        fn is_write_vectored(&self) -> bool {
            true
        }
    }
}

//! The traits of `futures-io`.

use super::AsyncIo;
use super::transfer::{for_both, write_methods};
use core::pin::Pin;
use core::task::{Context, Poll};
use futures_io::{AsyncRead, AsyncWrite};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsFd;

for_both! {
    /// Reads from the descriptor. Needs the feature `futures-io`.
    impl AsyncRead {
        fn poll_read(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            self.poll_read_slices(context, &mut [IoSliceMut::new(buffer)])
        }

        fn poll_read_vectored(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffers: &mut [IoSliceMut<'_>],
        ) -> Poll<io::Result<usize>> {
            self.poll_read_slices(context, buffers)
        }
    }
}

for_both! {
    /// Writes to the descriptor. Closing ends what is written to a socket. Needs the feature
    /// `futures-io`.
    impl AsyncWrite {
        write_methods!(poll_close);
    }
}

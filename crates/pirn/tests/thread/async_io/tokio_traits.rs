//! The traits for reading and writing of `tokio`. (A module of its own, because the methods of the
//! other traits have the same names.)

use std::io::IoSlice;

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::traits::tcp_pair;
use crate::common::{crowd, watched};
use pirn::{AsyncIo, block_on, thread};

#[watched]
fn the_traits_of_tokio() {
    crowd(|_| {
        let (ours, theirs) = tcp_pair();
        let other = thread::spawn(move || {
            let io = AsyncIo::new(theirs).unwrap();
            block_on(async {
                let (mut reader, mut writer) = (&io, &io);
                let copied = tokio::io::copy(&mut reader, &mut writer).await.unwrap();
                writer.shutdown().await.unwrap();
                copied
            })
        });
        let mut io = AsyncIo::new(ours).unwrap();
        assert!(io.is_write_vectored());
        block_on(async {
            let slices = [
                IoSlice::new(b"warp"),
                IoSlice::new(b""),
                IoSlice::new(b"weft"),
            ];
            assert_eq!(io.write_vectored(&slices).await.unwrap(), 8);
            io.flush().await.unwrap();
            let mut buffer = [0; 8];
            io.read_exact(&mut buffer).await.unwrap();
            assert_eq!(&buffer, b"warpweft");
            io.shutdown().await.unwrap();
            assert_eq!(io.read(&mut buffer).await.unwrap(), 0);
        });
        assert_eq!(other.join().unwrap(), 8);
    });
}

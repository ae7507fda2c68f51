//! The traits for reading and writing of `futures-io` and `hyper`.

use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write, pipe};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;

use futures_util::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{TempDir, crowd, on_virtual, pattern, watched};
use pirn::{AsyncIo, block_on, thread};

pub fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// An echo by a task; the other side is `std`'s.
fn echo<S: AsFd + Send + 'static>(ours: S, mut theirs: impl Read + Write) {
    let server = thread::spawn(move || {
        let io = AsyncIo::new(ours).unwrap();
        block_on(futures_util::io::copy(&io, &mut &io)).unwrap()
    });
    let mut buffer = [0; 5];
    for round in 0..20 {
        let word = format!("{round:05}");
        theirs.write_all(word.as_bytes()).unwrap();
        theirs.read_exact(&mut buffer).unwrap();
        assert_eq!(buffer, word.as_bytes());
    }
    drop(theirs);
    assert_eq!(server.join().unwrap(), 100);
}

#[watched]
fn an_echo_over_tcp_and_over_unix_sockets() {
    crowd(|i| match i % 2 {
        0 => {
            let (ours, theirs) = UnixStream::pair().unwrap();
            echo(ours, theirs);
        }
        _ => {
            let (ours, theirs) = tcp_pair();
            echo(ours, theirs);
        }
    });
}

/// More than the socket's buffers hold, both ways at once: neither may wait for the other.
async fn exchange<T: AsFd>(io: &AsyncIo<T>, bytes: &[u8]) -> Vec<u8> {
    let write = async {
        let mut writer = io;
        writer.write_all(bytes).await.unwrap();
        writer.flush().await.unwrap();
        writer.close().await.unwrap();
    };
    let read = async {
        let mut all = Vec::new();
        let mut reader = io;
        reader.read_to_end(&mut all).await.unwrap();
        all
    };
    futures_util::future::join(write, read).await.1
}

#[watched]
fn both_directions_at_once() {
    for tcp in [false, true] {
        let (there, here) = (pattern(4 << 20), pattern(5 << 20));
        if tcp {
            let (ours, theirs) = tcp_pair();
            swap(ours, theirs, &there, &here);
        } else {
            let (ours, theirs) = UnixStream::pair().unwrap();
            swap(ours, theirs, &there, &here);
        }
    }
}

fn swap<S: AsFd + Send>(ours: S, theirs: S, there: &[u8], here: &[u8]) {
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let io = AsyncIo::new(theirs).unwrap();
            block_on(exchange(&io, here))
        });
        let io = AsyncIo::new(ours).unwrap();
        assert!(block_on(exchange(&io, there)) == here);
        assert!(other.join().unwrap() == there);
    });
}

/// One task reads and another one writes, on threads of their own.
#[watched]
fn two_tasks_share_one() {
    let (ours, mut theirs) = tcp_pair();
    let io = AsyncIo::new(ours).unwrap();
    let bytes = pattern(3 << 20);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut all = Vec::new();
            block_on((&io).read_to_end(&mut all)).unwrap();
            all
        });
        scope.spawn(|| {
            block_on(async {
                (&io).write_all(&bytes).await.unwrap();
                (&io).close().await.unwrap();
            });
        });
        io::copy(&mut theirs.try_clone().unwrap(), &mut theirs).unwrap();
        theirs.shutdown(Shutdown::Write).unwrap();
        assert!(reader.join().unwrap() == bytes);
    });
}

/// A pipe is no socket: it is tried in another way.
#[watched]
fn pipes_and_files() {
    let (reader, writer) = pipe().unwrap();
    let bytes = pattern(1 << 20);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = AsyncIo::new(writer).unwrap();
            block_on(async {
                writer.write_all(&bytes).await.unwrap();
                writer.close().await.unwrap();
            });
        });
        let mut all = Vec::new();
        block_on(AsyncIo::new(reader).unwrap().read_to_end(&mut all)).unwrap();
        assert!(all == bytes);
    });

    let folder = TempDir::new("async-io-traits");
    let path = folder.join("file");
    let mut file = AsyncIo::new(std::fs::File::create_new(&path).unwrap()).unwrap();
    on_virtual(move || {
        block_on(async {
            file.write_all(&bytes).await.unwrap();
            let mut file = AsyncIo::new(std::fs::File::open(path).unwrap()).unwrap();
            let mut all = Vec::new();
            file.read_to_end(&mut all).await.unwrap();
            assert!(all == bytes);
        });
    });
}

#[watched]
fn errors_and_empty_buffers() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut io = AsyncIo::new(ours).unwrap();
    block_on(async {
        assert_eq!(io.read(&mut []).await.unwrap(), 0);
        assert_eq!(io.write(&[]).await.unwrap(), 0);
        drop(theirs);
        assert_eq!(io.read(&mut [0]).await.unwrap(), 0);
        let broken = io.write(b"x").await.unwrap_err();
        assert_eq!(broken.kind(), io::ErrorKind::BrokenPipe);
    });
    let listener = AsyncIo::new(TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let refused = block_on((&listener).read(&mut [0])).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::NotConnected);
}

#[watched]
fn a_connection_that_was_reset_has_been_shut_down() {
    let (ours, theirs) = tcp_pair();
    (&ours).write_all(b"warp").unwrap();
    theirs.peek(&mut [0]).unwrap();
    drop(theirs); // What has come is unread, so the kernel resets the connection.
    let mut io = AsyncIo::new(ours).unwrap();
    block_on(async {
        let reset = io.read(&mut [0]).await.unwrap_err();
        assert_eq!(reset.kind(), io::ErrorKind::ConnectionReset);
        io.close().await.unwrap();
    });
}

#[watched]
fn the_traits_of_hyper() {
    use ::hyper::rt::{Read, ReadBuf, Write};
    let (ours, theirs) = tcp_pair();
    let other = thread::spawn(move || {
        let mut theirs = theirs;
        io::copy(&mut theirs.try_clone().unwrap(), &mut theirs).unwrap();
    });
    let mut io = AsyncIo::new(ours).unwrap();
    let mut io = Pin::new(&mut io);
    block_on(async {
        assert!(io.is_write_vectored());
        let sent = poll_fn(|context| io.as_mut().poll_write(context, b"warp")).await;
        assert_eq!(sent.unwrap(), 4);
        let slices = [IoSlice::new(b"we"), IoSlice::new(b"ft")];
        let sent = poll_fn(|context| io.as_mut().poll_write_vectored(context, &slices)).await;
        assert_eq!(sent.unwrap(), 4);
        poll_fn(|context| io.as_mut().poll_flush(context))
            .await
            .unwrap();
        let mut bytes = [0; 8];
        let mut buffer = ReadBuf::new(&mut bytes);
        while buffer.filled().len() < 8 {
            let read = poll_fn(|context| io.as_mut().poll_read(context, buffer.unfilled()));
            read.await.unwrap();
        }
        assert_eq!(buffer.filled(), b"warpweft");
        poll_fn(|context| io.as_mut().poll_shutdown(context))
            .await
            .unwrap();
    });
    other.join().unwrap();
}

//! `AsyncIo`: tasks of async code wait for descriptors.

use std::future::{Future, poll_fn};
use std::io::{self, Read, Seek, Write, pipe};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use crate::common::{TempDir, crowd, on_virtual, sys, virtual_crowd, watched};
use pirn::thread;
use pirn::{AsyncIo, block_on};

mod ends;
#[cfg(feature = "tokio-io")]
mod h2;
#[cfg(all(feature = "futures-io", feature = "hyper-io", feature = "tokio-io"))]
mod tokio_traits;
#[cfg(all(feature = "futures-io", feature = "hyper-io", feature = "tokio-io"))]
mod traits;

/// Counts its wakes, and lets a thread wait for them.
struct Bell(Mutex<usize>, Condvar);

impl Bell {
    fn new() -> Arc<Bell> {
        Arc::new(Bell(Mutex::new(0), Condvar::new()))
    }

    fn rings(&self) -> usize {
        *self.0.lock().unwrap()
    }

    /// Waits until there have been `count` wakes.
    fn wait(&self, count: usize) {
        let rings = self.0.lock().unwrap();
        drop(self.1.wait_while(rings, |rings| *rings < count).unwrap());
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
    }
}

/// Polls a future once.
fn poll_once<F: Future>(future: Pin<&mut F>, bell: &Arc<Bell>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(bell))))
}

fn poll_readable<T: AsFd>(io: &AsyncIo<T>, bell: &Arc<Bell>) -> Poll<io::Result<()>> {
    io.poll_readable(&mut Context::from_waker(&Waker::from(Arc::clone(bell))))
}

fn poll_writable<T: AsFd>(io: &AsyncIo<T>, bell: &Arc<Bell>) -> Poll<io::Result<()>> {
    io.poll_writable(&mut Context::from_waker(&Waker::from(Arc::clone(bell))))
}

/// Receives without waiting.
fn receive(io: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (fd, start, length) = (io.as_fd().as_raw_fd(), buffer.as_mut_ptr(), buffer.len());
    // SAFETY: the buffer is valid for writes of its length.
    let count = unsafe { libc::recv(fd, start.cast(), length, libc::MSG_DONTWAIT) };
    sys::check(count as i64).map(|count| count as usize)
}

/// Sends without waiting.
fn send(io: &impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    let (fd, flags) = (
        io.as_fd().as_raw_fd(),
        libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
    );
    // SAFETY: the buffer is valid for reads of its length.
    let count = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) };
    sys::check(count as i64).map(|count| count as usize)
}

async fn read_byte(io: &AsyncIo<UnixStream>) -> u8 {
    let mut byte = [0];
    let count = io.read_with(|io| receive(io, &mut byte)).await.unwrap();
    assert_eq!(count, 1);
    byte[0]
}

fn pair() -> (AsyncIo<UnixStream>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (AsyncIo::new(ours).unwrap(), theirs)
}

#[watched]
fn a_task_accepts_and_reads_what_comes_later() {
    crowd(|_| {
        let listener = AsyncIo::new(TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
        let address = listener.get_ref().local_addr().unwrap();
        let client = thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"weft").unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).unwrap();
            rest
        });
        block_on(async {
            listener.readable().await.unwrap();
            let stream = AsyncIo::new(listener.get_ref().accept().unwrap().0).unwrap();
            let mut buffer = [0; 4];
            stream.readable().await.unwrap();
            stream.get_ref().read_exact(&mut buffer).unwrap();
            assert_eq!(&buffer, b"weft");
            stream.writable().await.unwrap();
            stream.get_ref().write_all(b"warp").unwrap();
        });
        assert_eq!(client.join().unwrap(), b"warp");
    });
}

/// Each byte may arrive at any moment of the other side's attempt and wait.
#[watched]
fn ten_thousand_hand_overs_between_two_tasks() {
    const ROUNDS: usize = 10_000;
    async fn write_byte(io: &AsyncIo<UnixStream>, byte: u8) {
        assert_eq!(io.write_with(|io| send(io, &[byte])).await.unwrap(), 1);
    }
    let game = || {
        let (ours, theirs) = pair();
        let theirs = AsyncIo::new(theirs).unwrap();
        let other = thread::spawn(move || {
            block_on(async {
                for _ in 0..ROUNDS {
                    let byte = read_byte(&theirs).await;
                    write_byte(&theirs, !byte).await;
                }
            });
        });
        block_on(async {
            for round in 0..ROUNDS {
                write_byte(&ours, round as u8).await;
                assert_eq!(read_byte(&ours).await, !(round as u8));
            }
        });
        other.join().unwrap();
    };
    game();
    on_virtual(game);
}

#[watched]
fn a_task_and_blocking_code_share_a_descriptor() {
    virtual_crowd(|_| {
        let (ours, mut theirs) = pair();
        let ours = Arc::new(ours);
        let io = Arc::clone(&ours);
        // With `std` here, with a task there. Each reads one byte: together both.
        let blocking = thread::spawn(move || {
            let mut byte = [0];
            io.get_ref().read_exact(&mut byte).unwrap();
            byte[0]
        });
        let io = Arc::clone(&ours);
        let task = thread::spawn(move || block_on(read_byte(&io)));
        theirs.write_all(&[1, 2]).unwrap();
        let mut bytes = [blocking.join().unwrap(), task.join().unwrap()];
        bytes.sort_unstable();
        assert_eq!(bytes, [1, 2]);
        assert_eq!(sys::status_flags(ours.get_ref()) & libc::O_NONBLOCK, 0);
    });
}

#[watched]
fn a_close_by_the_peer_is_readable_and_writable() {
    let (ours, theirs) = pair();
    let bell = Bell::new();
    assert!(poll_readable(&ours, &bell).is_pending());
    drop(theirs);
    bell.wait(1);
    assert!(poll_readable(&ours, &bell).is_ready());
    block_on(ours.writable()).unwrap();
    let end = block_on(ours.read_with(|io| receive(io, &mut [0; 8])));
    assert_eq!(end.unwrap(), 0);
    let broken = block_on(ours.write_with(|io| send(io, b"x")));
    assert_eq!(broken.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[watched]
fn a_pipe_becomes_readable_and_writable() {
    let (reader, mut writer) = pipe().unwrap();
    let reader = AsyncIo::new(reader).unwrap();
    let bell = Bell::new();
    assert!(poll_readable(&reader, &bell).is_pending());
    writer.write_all(&[7; 100]).unwrap();
    bell.wait(1);
    assert!(poll_readable(&reader, &bell).is_ready());
    let writer = AsyncIo::new(writer).unwrap();
    // Full.
    sys::set_nonblocking(writer.get_ref(), true);
    let filled = block_on(async {
        let mut filled = 0;
        while let Poll::Ready(result) = poll_writable(&writer, &bell) {
            result.unwrap();
            filled += writer.get_ref().write(&[7; 4096]).unwrap();
        }
        filled
    });
    let mut buffer = vec![0; 100 + filled];
    reader.get_ref().read_exact(&mut buffer).unwrap();
    assert_eq!(buffer, vec![7; 100 + filled]);
    bell.wait(2);
    assert!(poll_writable(&writer, &bell).is_ready());
}

/// epoll refuses it: it is always ready.
#[watched]
fn a_regular_file_is_always_ready() {
    let folder = TempDir::new("async-io");
    let file = std::fs::File::create_new(folder.join("file")).unwrap();
    let file = AsyncIo::new(file).unwrap();
    let work = move || {
        block_on(async {
            file.writable().await.unwrap();
            let written = file.write_with(|mut file| file.write(b"weft")).await;
            assert_eq!(written.unwrap(), 4);
            file.readable().await.unwrap();
            file.get_ref().rewind().unwrap();
        });
        let never = block_on(file.read_with(|_| Err::<(), _>(io::ErrorKind::WouldBlock.into())));
        // Nothing would ever wake the task.
        assert_eq!(never.unwrap_err().kind(), io::ErrorKind::Unsupported);
    };
    on_virtual(work);
}

/// One event wakes all, though the runtime wakes a few at a time.
#[watched]
fn all_tasks_that_wait_for_one_descriptor_are_woken() {
    const TASKS: usize = 100;
    let (ours, mut theirs) = pair();
    let bells: Vec<_> = (0..TASKS).map(|_| Bell::new()).collect();
    let mut futures: Vec<_> = bells.iter().map(|_| Box::pin(ours.readable())).collect();
    for (future, bell) in futures.iter_mut().zip(&bells) {
        assert!(poll_once(future.as_mut(), bell).is_pending());
    }
    theirs.write_all(b"x").unwrap();
    for (future, bell) in futures.iter_mut().zip(&bells) {
        bell.wait(1);
        assert!(poll_once(future.as_mut(), bell).is_ready());
    }
}

#[watched]
fn each_direction_keeps_its_last_waker() {
    let (ours, mut theirs) = pair();
    let [first, last, other] = [(); 3].map(|()| Bell::new());
    assert!(poll_readable(&ours, &first).is_pending());
    assert!(poll_readable(&ours, &last).is_pending());
    assert_eq!(Arc::strong_count(&first), 1, "it is not needed any more");
    // Full: the other direction waits as well.
    while send(&ours, &[0; 4096]).is_ok() {}
    assert!(poll_writable(&ours, &other).is_pending());

    theirs.write_all(b"x").unwrap();
    last.wait(1);
    assert_eq!(first.rings(), 0);
    let mut buffer = vec![0; 1 << 16];
    while poll_writable(&ours, &other).is_pending() {
        assert!(theirs.read(&mut buffer).unwrap() > 0);
    }
    other.wait(1);
}

#[watched]
fn its_futures_go_from_thread_to_thread() {
    fn is_send(_: &impl Send) {}
    fn is_sync(_: &impl Sync) {}
    let (ours, mut theirs) = pair();
    is_sync(&ours);
    is_send(&ours);
    is_send(&ours.read_with(|io| receive(io, &mut [0])));
    let ours = Arc::new(ours);
    let bell = Bell::new();
    let io = Arc::clone(&ours);
    let mut future = Box::pin(async move { io.readable().await });
    assert!(poll_once(future.as_mut(), &bell).is_pending());
    let polled = thread::spawn(move || block_on(future));
    theirs.write_all(b"x").unwrap();
    polled.join().unwrap().unwrap();
}

/// Both directions wait at once, in one task.
#[watched]
fn one_task_waits_for_both_directions() {
    crowd(|_| {
        let (ours, mut theirs) = pair();
        while send(&ours, &[0; 4096]).is_ok() {}
        let other = thread::spawn(move || {
            theirs.write_all(b"x").unwrap();
            let mut sink = vec![0; 1 << 20];
            while theirs.read(&mut sink).unwrap() > 0 {}
        });
        block_on(async {
            let (mut readable, mut writable) = (false, false);
            poll_fn(|context| {
                readable = readable || ours.poll_readable(context).is_ready();
                writable = writable || ours.poll_writable(context).is_ready();
                if readable && writable {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
            read_byte(&ours).await;
        });
        drop(ours);
        other.join().unwrap();
    });
}

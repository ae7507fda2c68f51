//! Several messages at once, event counters, and reading and writing with flags.

use std::net::UdpSocket;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use std::{io, mem, ptr};

use libc::{c_int, c_uint, iovec, mmsghdr, timespec};

use super::{checked, nowhere, on_more_than_carriers};
use crate::common::{on_virtual, pattern, sys, watched};
use pirn::thread;

/// Sends each of some texts as a message of its own.
fn send_all(fd: RawFd, texts: &[&[u8]]) -> (Result<c_int, i32>, Vec<c_uint>) {
    let mut vectors: Vec<_> = texts
        .iter()
        .map(|text| iovec {
            iov_base: text.as_ptr().cast_mut().cast(),
            iov_len: text.len(),
        })
        .collect();
    let mut messages = around(&mut vectors);
    // SAFETY: this many messages, with a buffer each.
    let result = unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), messages.len() as c_uint, 0) };
    (
        checked(result),
        messages.iter().map(|m| m.msg_len).collect(),
    )
}

/// Receives up to `count` messages.
fn receive_all(
    fd: RawFd,
    count: usize,
    flags: c_int,
    timeout: Option<&mut timespec>,
) -> Result<Vec<Vec<u8>>, i32> {
    let mut buffers = vec![[0u8; 16]; count];
    let mut vectors: Vec<_> = buffers
        .iter_mut()
        .map(|buffer| iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        })
        .collect();
    let mut messages = around(&mut vectors);
    let timeout = timeout.map_or(ptr::null_mut(), |time| time as *mut _);
    // SAFETY: this many messages, with a buffer each; a time or null.
    let received =
        unsafe { libc::recvmmsg(fd, messages.as_mut_ptr(), count as c_uint, flags, timeout) };
    let received = checked(received)? as usize;
    let texts = buffers.iter().zip(&messages).take(received);
    Ok(texts
        .map(|(buffer, m)| buffer[..m.msg_len as usize].to_vec())
        .collect())
}

fn around(vectors: &mut [iovec]) -> Vec<mmsghdr> {
    let message = |vector: &mut iovec| {
        // SAFETY: plain data.
        let mut message: mmsghdr = unsafe { mem::zeroed() };
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
        message
    };
    vectors.iter_mut().map(message).collect()
}

/// Returns two sockets that are connected.
fn datagrams() -> [UdpSocket; 2] {
    let [a, b] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    [a, b]
}

#[watched]
fn receiving_several_messages() {
    let [a, b] = datagrams();
    let (sender, receiver) = (a.as_raw_fd(), b.as_raw_fd());
    // With this flag one message is enough, and there are as many as threads.
    on_more_than_carriers(
        || {
            let texts = receive_all(receiver, 1, libc::MSG_WAITFORONE, None).unwrap();
            assert_eq!(texts, [b"one"]);
        },
        || assert_eq!(send_all(sender, &[b"one"]), (Ok(1), vec![3])),
    );
}

#[watched]
fn several_messages_are_as_on_a_platform_thread() {
    let [a, b] = datagrams();
    let (sender, receiver) = (a.as_raw_fd(), b.as_raw_fd());
    let f = move || {
        let texts: [&[u8]; 3] = [b"one", b"two", b"three"];
        assert_eq!(send_all(sender, &texts), (Ok(3), vec![3, 3, 5]));
        assert_eq!(receive_all(receiver, 3, 0, None).unwrap(), texts);
        // Fewer than there is room for.
        assert_eq!(send_all(sender, &texts).0, Ok(3));
        let received = receive_all(receiver, 5, libc::MSG_WAITFORONE, None);
        assert_eq!(received.unwrap(), texts);
        assert_eq!(send_all(sender, &texts).0, Ok(3));
        let received = receive_all(receiver, 5, libc::MSG_DONTWAIT, None);
        assert_eq!(received.unwrap(), texts);
        assert_eq!(
            receive_all(receiver, 5, libc::MSG_DONTWAIT, None),
            Err(libc::EAGAIN)
        );
        // The timeout is checked when a message has come.
        assert_eq!(send_all(sender, &texts[..1]).0, Ok(1));
        let (tv_sec, tv_nsec) = (0, 0);
        let mut none = timespec { tv_sec, tv_nsec };
        let received = receive_all(receiver, 5, 0, Some(&mut none)).unwrap();
        assert_eq!((received.len(), none.tv_sec, none.tv_nsec), (1, 0, 0));
        none.tv_nsec = -1;
        assert_eq!(
            receive_all(receiver, 5, 0, Some(&mut none)),
            Err(libc::EINVAL)
        );
        assert_eq!(send_all(-1, &texts).0, Err(libc::EBADF));
        assert_eq!(receive_all(-1, 1, 0, None), Err(libc::EBADF));
        assert_eq!(receive_all(receiver, 0, 0, None), Ok(vec![]));
        // SAFETY: the kernel copes with any address.
        unsafe {
            let result =
                libc::recvmmsg(receiver, nowhere(), 1, libc::MSG_DONTWAIT, ptr::null_mut());
            assert!(matches!(checked(result), Err(libc::EFAULT | libc::EAGAIN)));
            assert_eq!(
                checked(libc::sendmmsg(sender, nowhere(), 1, 0)),
                Err(libc::EFAULT)
            );
        }
    };
    f();
    on_virtual(f);
}

#[watched]
fn messages_arrive_while_others_are_awaited() {
    let [a, b] = datagrams();
    let receiver = b.as_raw_fd();
    let waiting = thread::spawn(move || receive_all(receiver, 3, 0, None).unwrap());
    for text in ["one", "two", "three"] {
        thread::sleep(Duration::from_millis(5));
        a.send(text.as_bytes()).unwrap();
    }
    assert_eq!(
        waiting.join().unwrap(),
        [b"one".as_slice(), b"two", b"three"]
    );
    drop(b);
}

#[watched]
fn streams_take_messages_whole() {
    let data = pattern(1 << 20);
    let f = |spawn: &dyn Fn(UnixStream, Vec<u8>)| {
        let (sender, mut receiver) = UnixStream::pair().unwrap();
        spawn(sender, data.clone());
        let mut received = Vec::new();
        io::Read::read_to_end(&mut receiver, &mut received).unwrap();
        assert!(received == [&data[..], &data[..]].concat(), "damaged");
    };
    let send = |socket: UnixStream, data: Vec<u8>| {
        let sent = send_all(socket.as_raw_fd(), &[&data, &data]);
        assert_eq!(sent, (Ok(2), vec![1 << 20; 2]));
    };
    f(&|socket, data| drop(std::thread::spawn(move || send(socket, data))));
    f(&|socket, data| drop(thread::spawn(move || send(socket, data))));
}

#[watched]
fn event_counters() {
    // SAFETY: no pointers.
    let counter = sys::own(unsafe { libc::eventfd(0, libc::EFD_SEMAPHORE | libc::EFD_CLOEXEC) });
    let counter = counter.unwrap();
    let fd = counter.as_raw_fd();
    let take = || {
        let mut value = 0;
        // SAFETY: room for the value.
        let result = unsafe { libc::eventfd_read(fd, &mut value) };
        assert_eq!(checked(result), Ok(0));
        assert_eq!(value, 1);
    };
    // SAFETY: no pointers.
    let add = |value: u64| checked(unsafe { libc::eventfd_write(fd, value) });
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(add(u64::MAX), Err(libc::EINVAL)));
    });
    on_more_than_carriers(take, || assert_eq!(add(1), Ok(0)));
    // A full counter makes it wait.
    assert_eq!(add(u64::MAX - 1), Ok(0));
    on_more_than_carriers(|| assert_eq!(add(1), Ok(0)), take);
}

type Flagged = unsafe extern "C" fn(c_int, *const iovec, c_int, i64, c_int) -> isize;

unsafe extern "C" {
    fn preadv64v2(fd: c_int, iov: *const iovec, count: c_int, offset: i64, flags: c_int) -> isize;
    fn pwritev64v2(fd: c_int, iov: *const iovec, count: c_int, offset: i64, flags: c_int) -> isize;
}

/// Calls one of the four functions on a buffer.
fn flagged(
    f: Flagged,
    fd: RawFd,
    buffer: &mut [u8],
    offset: i64,
    flags: c_int,
) -> Result<i64, i32> {
    let vector = iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: one buffer.
    checked(unsafe { f(fd, &vector, 1, offset, flags) } as i64)
}

#[watched]
fn reading_and_writing_with_flags_waits() {
    let (reader, writer) = io::pipe().unwrap();
    let (reader, writer) = (reader.as_raw_fd(), writer.as_raw_fd());
    for (read, write) in [
        (libc::preadv2 as Flagged, libc::pwritev2 as Flagged),
        (preadv64v2, pwritev64v2),
    ] {
        for flags in [0, libc::RWF_HIPRI] {
            on_more_than_carriers(
                || assert_eq!(flagged(read, reader, &mut [0], -1, flags), Ok(1)),
                || assert_eq!(flagged(write, writer, &mut [1], -1, flags), Ok(1)),
            );
        }
    }
}

#[watched]
fn reading_and_writing_with_flags_is_as_on_a_platform_thread() {
    let folder = crate::common::TempDir::new("flagged");
    let path = folder.join("file");
    let f = move || {
        let mut options = std::fs::File::options();
        let file = options
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(&path);
        let file = file.unwrap();
        let fd = file.as_raw_fd();
        for (read, write) in [
            (libc::preadv2 as Flagged, libc::pwritev2 as Flagged),
            (preadv64v2, pwritev64v2),
        ] {
            for flags in [0, libc::RWF_DSYNC] {
                assert_eq!(flagged(write, fd, &mut [b'a', b'b', b'c'], 2, flags), Ok(3));
            }
            for flags in [0, libc::RWF_HIPRI, libc::RWF_NOWAIT] {
                let mut buffer = [0; 8];
                assert_eq!(flagged(read, fd, &mut buffer, 1, flags), Ok(4));
                assert_eq!(&buffer[..4], b"\0abc");
            }
            assert_eq!(flagged(read, fd, &mut [0], -2, 0), Err(libc::EINVAL));
            assert_eq!(
                flagged(read, fd, &mut [0], 0, 1 << 30),
                Err(libc::EOPNOTSUPP)
            );
            assert_eq!(flagged(read, -1, &mut [0], -1, 0), Err(libc::EBADF));
        }
    };
    f();
    on_virtual(f);
}

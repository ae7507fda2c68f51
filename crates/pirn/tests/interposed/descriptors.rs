//! Descriptors and sockets, under all names of the functions.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::{io, mem, ptr};

use libc::{c_int, c_long, c_void, iovec, msghdr, pollfd, size_t, sockaddr, socklen_t, ssize_t};

use super::{checked, everywhere, nowhere};
use crate::common::{on_virtual, sys, watched};

unsafe extern "C" {
    fn fcntl64(fd: c_int, command: c_int, ...) -> c_int;
    fn __read_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t) -> ssize_t;
    fn __recv_chk(
        fd: c_int,
        buffer: *mut c_void,
        length: size_t,
        room: size_t,
        flags: c_int,
    ) -> ssize_t;
    fn __recvfrom_chk(
        fd: c_int,
        buffer: *mut c_void,
        length: size_t,
        room: size_t,
        flags: c_int,
        address: *mut sockaddr,
        address_length: *mut socklen_t,
    ) -> ssize_t;
    fn __poll_chk(fds: *mut pollfd, count: c_long, timeout: c_int, room: size_t) -> c_int;
    fn __ppoll_chk(
        fds: *mut pollfd,
        count: c_long,
        timeout: *const libc::timespec,
        mask: *const libc::sigset_t,
        room: size_t,
    ) -> c_int;
    fn epoll_pwait2(
        epoll: c_int,
        events: *mut libc::epoll_event,
        count: c_int,
        timeout: *const libc::timespec,
        mask: *const libc::sigset_t,
    ) -> c_int;
}

#[watched]
fn making_duplicating_and_closing() {
    everywhere(|| {
        // SAFETY: room for two; numbers of our own.
        unsafe {
            let mut ends = [0; 2];
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            drop(ends.map(|fd| sys::own(fd).unwrap()));
            assert_eq!(
                libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK),
                0
            );
            let [reader, _writer] = ends.map(|fd| sys::own(fd).unwrap());
            let mut byte = 0u8;
            let read = libc::read(reader.as_raw_fd(), (&raw mut byte).cast(), 1);
            assert_eq!(checked(read as i64), Err(libc::EAGAIN));
            let copy = fcntl64(reader.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 600);
            assert!(copy >= 600);
            assert_eq!(libc::dup3(reader.as_raw_fd(), copy, libc::O_CLOEXEC), copy);
            assert_eq!(checked(libc::dup3(copy, copy, 0)), Err(libc::EINVAL));
            let number = copy as u32;
            assert_eq!(libc::close_range(number, number, 0), 0);
            assert_eq!(checked(fcntl64(copy, libc::F_GETFD)), Err(libc::EBADF));
            let mut waiting: c_int = -1;
            assert_eq!(
                libc::ioctl(reader.as_raw_fd(), libc::FIONREAD, &mut waiting),
                0
            );
            assert_eq!(waiting, 0);
        }
    });
}

#[watched]
fn waiting_for_descriptors() {
    everywhere(|| {
        let (reader, _writer) = io::pipe().unwrap();
        let time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 2_000_000,
        };
        // SAFETY: structures of our own, with their sizes; a time and no mask.
        unsafe {
            let epoll = sys::own(libc::epoll_create(1)).unwrap();
            let fd = epoll.as_raw_fd();
            let mut event = libc::epoll_event {
                events: libc::EPOLLIN as u32,
                u64: 7,
            };
            let add = libc::EPOLL_CTL_ADD;
            assert_eq!(libc::epoll_ctl(fd, add, reader.as_raw_fd(), &mut event), 0);
            assert_eq!(
                checked(epoll_pwait2(fd, &mut event, 1, &time, ptr::null())),
                Ok(0)
            );
            let mut poll = pollfd {
                fd: reader.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            let size = size_of::<pollfd>();
            assert_eq!(checked(__poll_chk(&mut poll, 1, 2, size)), Ok(0));
            assert_eq!(
                checked(__ppoll_chk(&mut poll, 1, &time, ptr::null(), size)),
                Ok(0)
            );
            let none = ptr::null();
            assert_eq!(
                checked(libc::epoll_pwait(fd, &mut event, 1, 2, none)),
                Ok(0)
            );
            drop(_writer);
            // A child that another test starts may have the other end for a moment.
            assert_eq!(
                checked(epoll_pwait2(fd, &mut event, 1, ptr::null(), ptr::null())),
                Ok(1)
            );
            assert_eq!(checked(__poll_chk(&mut poll, 1, -1, size)), Ok(1));
            assert_eq!(checked(libc::epoll_create(0)), Err(libc::EINVAL));
        }
    });
}

#[watched]
fn sending_and_receiving() {
    everywhere(|| {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: room for two; buffers of the lengths given; no addresses.
        unsafe {
            let mut ends = [0; 2];
            assert_eq!(
                libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()),
                0
            );
            let [from, to] = ends.map(|fd| sys::own(fd).unwrap());
            let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
            let mut vector = iovec {
                iov_base: b"ab".as_ptr().cast_mut().cast(),
                iov_len: 2,
            };
            let mut message: msghdr = mem::zeroed();
            message.msg_iov = &mut vector;
            message.msg_iovlen = 1;
            for _ in 0..2 {
                assert_eq!(libc::send(from, vector.iov_base, 2, 0), 2);
                assert_eq!(libc::sendmsg(from, &message, 0), 2);
                assert_eq!(libc::sendto(from, vector.iov_base, 2, 0, ptr::null(), 0), 2);
            }
            let mut text = [0u8; 2];
            let buffer = text.as_mut_ptr().cast::<c_void>();
            let (nobody, none) = (ptr::null_mut(), ptr::null_mut());
            (*message.msg_iov).iov_base = buffer;
            let receive: [&dyn Fn() -> ssize_t; 6] = [
                &|| libc::recv(to, buffer, 2, 0),
                &|| libc::recvfrom(to, buffer, 2, 0, nobody, none),
                &|| __recv_chk(to, buffer, 2, 2, 0),
                &|| __recvfrom_chk(to, buffer, 2, 2, 0, nobody, none),
                &|| __read_chk(to, buffer, 2, 2),
                &|| libc::recvmsg(to, (&raw const message).cast_mut(), 0),
            ];
            for receive in receive {
                assert_eq!(receive(), 2);
                assert_eq!(text, *b"ab");
                text = [0; 2];
            }
            let bad = libc::recv(to, nowhere(), 2, libc::MSG_DONTWAIT);
            assert!(matches!(
                checked(bad as i64),
                Err(libc::EAGAIN | libc::EFAULT)
            ));
        }
    });
}

#[watched]
fn accepting_says_who_comes() {
    everywhere(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        // SAFETY: room for an address, and its length.
        unsafe {
            let mut address: libc::sockaddr_in = mem::zeroed();
            let mut length = size_of_val(&address) as socklen_t;
            let place = (&raw mut address).cast();
            let flags = libc::SOCK_CLOEXEC;
            let socket = libc::accept4(listener.as_raw_fd(), place, &mut length, flags);
            drop(sys::own(socket).unwrap());
            assert_eq!(
                u16::from_be(address.sin_port),
                client.local_addr().unwrap().port()
            );
        }
    });
}

#[watched]
fn accepting_from_what_is_no_listener() {
    on_virtual(|| ()); // From here on platform threads poll before they accept, too.
    everywhere(|| {
        let (reader, _writer) = io::pipe().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        drop(listener.accept().unwrap());
        let accept = |socket: &dyn AsRawFd, flags: c_int| {
            let none = ptr::null_mut();
            // SAFETY: no room for an address is asked for.
            checked(unsafe { libc::accept4(socket.as_raw_fd(), none, ptr::null_mut(), flags) })
        };
        assert_eq!(accept(&listener, -1), Err(libc::EINVAL));
        assert_eq!(accept(&client, 0), Err(libc::EINVAL));
        assert_eq!(accept(&reader, 0), Err(libc::ENOTSOCK));
    });
}

//! System calls on Unix sockets.

use super::files::{self, Fd};
use core::ffi::{CStr, c_int};
use core::mem::{offset_of, zeroed};
use pirn_rt::sys::{self, Errno, SysResult, call, uninterrupted};
use std::ffi::CString;

/// Makes a stream socket. `flags` are additional ones.
pub(super) fn socket(flags: c_int) -> Result<Fd, Errno> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | flags;
    // SAFETY: no pointers.
    let fd = unsafe { call!(libc::SYS_socket, libc::AF_UNIX, kind, 0) };
    fd.map(|fd| Fd(fd as c_int))
}

/// Returns the address of a name in an open folder. It leads to that folder for sure, by this
/// thread's table of descriptors, and fits: an address has 108 bytes.
fn address(folder: &Fd, name: &CStr) -> Result<(libc::sockaddr_un, usize), Errno> {
    // SAFETY: all zeros is a valid address.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let path = format!(
        "/proc/thread-self/fd/{}/{}",
        folder.0,
        name.to_string_lossy()
    );
    if path.len() >= address.sun_path.len() {
        return Err(Errno(libc::ENAMETOOLONG));
    }
    for (place, byte) in address.sun_path.iter_mut().zip(path.bytes()) {
        *place = byte as libc::c_char;
    }
    let len = offset_of!(libc::sockaddr_un, sun_path) + path.len() + 1;
    Ok((address, len))
}

/// Makes a socket that listens under this name, which only its owner may connect to.
///
/// It gets the name when it listens, and another before: between `bind` and `listen` the kernel
/// refuses all that connect, as if the process were gone. Tools gave up then, and a process that
/// looks for stale sockets would have removed it.
///
/// # Errors
/// `EEXIST` if there is a file of this name.
pub(super) fn listen(folder: &Fd, name: &CStr) -> Result<Fd, Errno> {
    // SAFETY: no arguments.
    let thread = unsafe { call!(libc::SYS_gettid) }?;
    let early = format!("{}.{thread}", name.to_string_lossy());
    let early = CString::new(early).unwrap_or_default();
    let socket = listen_early(folder, &early).or_else(|error| {
        files::remove(folder.0, &early); // Of a process that was killed before it listened.
        match error {
            Errno(libc::EADDRINUSE) => listen_early(folder, &early),
            error => Err(error),
        }
    })?;
    files::rename_new(folder, &early, name)
        .inspect_err(|_| files::remove(folder.0, &early))
        .map(|_| socket)
}

/// Makes a socket that listens under this name.
fn listen_early(folder: &Fd, name: &CStr) -> Result<Fd, Errno> {
    const BACKLOG: c_int = 16;
    let socket = socket(libc::SOCK_NONBLOCK)?;
    let (address, len) = address(folder, name)?;
    // SAFETY: an address and its length.
    unsafe {
        // The file gets the mode that the socket has.
        call!(libc::SYS_fchmod, socket.0, 0o600)?;
        call!(libc::SYS_bind, socket.0, &raw const address, len)?;
        call!(libc::SYS_listen, socket.0, BACKLOG)?;
    }
    Ok(socket)
}

/// Returns whether somebody listens under this name.
pub(super) fn is_served(folder: &Fd, name: &CStr) -> Result<bool, Errno> {
    let socket = socket(libc::SOCK_NONBLOCK)?;
    let (address, len) = address(folder, name)?;
    // SAFETY: an address and its length.
    let connected = unsafe { call!(libc::SYS_connect, socket.0, &raw const address, len) };
    Ok(!matches!(
        connected,
        Err(Errno(libc::ECONNREFUSED | libc::ENOENT))
    ))
}

/// Waits for up to `nanos` ns until a descriptor is readable. Returns whether it is.
pub(super) fn is_readable_within(fd: &Fd, nanos: u64) -> bool {
    let deadline = pirn_rt::time::Deadline::after_nanos(nanos);
    while !deadline.has_passed() {
        if sys::poll_until(fd.0, deadline) {
            return true;
        }
    }
    false
}

/// Takes a connection.
pub(super) fn accept(listener: &Fd) -> Result<Fd, Errno> {
    // SAFETY: no address is asked for.
    let fd =
        uninterrupted(|| unsafe { call!(libc::SYS_accept4, listener.0, 0, 0, libc::SOCK_CLOEXEC) });
    fd.map(|fd| Fd(fd as c_int))
}

/// Returns the process that connected, and its user.
pub(super) fn peer(connection: &Fd) -> Result<libc::ucred, Errno> {
    // SAFETY: the type of this option's value.
    unsafe { sys::socket_option(connection.0, libc::SO_PEERCRED) }
}

/// Limits how long one receiving or sending call may wait.
pub(super) fn limit(connection: &Fd, option: c_int, seconds: i64) -> SysResult {
    let time = libc::timeval {
        tv_sec: seconds,
        tv_usec: 0,
    };
    let (level, len) = (libc::SOL_SOCKET, size_of_val(&time));
    // SAFETY: a `timeval`, as these options take.
    unsafe {
        call!(
            libc::SYS_setsockopt,
            connection.0,
            level,
            option,
            &raw const time,
            len
        )
    }
}

/// Receives some bytes; 0 at the end.
pub(super) fn receive(connection: &Fd, buffer: &mut [u8]) -> SysResult {
    let (start, len) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: the buffer is writable for its length.
    uninterrupted(|| unsafe { call!(libc::SYS_recvfrom, connection.0, start, len, 0, 0, 0) })
}

/// Sends some of these bytes. No signal comes if the other end is closed.
pub(super) fn send(connection: &Fd, bytes: &[u8]) -> SysResult {
    let (start, len, flags) = (bytes.as_ptr(), bytes.len(), libc::MSG_NOSIGNAL);
    // SAFETY: the bytes are readable for their length.
    uninterrupted(|| unsafe { call!(libc::SYS_sendto, connection.0, start, len, flags, 0, 0) })
}

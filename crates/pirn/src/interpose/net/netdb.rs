//! `netdb.h`, `pwd.h`, `grp.h`: looking up names of hosts, services, users and groups.
//!
//! They read files, ask name servers and talk to daemons, from inside libc, for seconds if need be,
//! and end by themselves: on the pool as a whole. Those that return a pointer to static data do so
//! as ever.

use crate::blocking::offload;
use crate::glibc::symbols::real;
use crate::interpose::fs::calls::libc_calls;
use core::ffi::{c_char, c_int, c_void};
use libc::{
    addrinfo, gid_t, group, hostent, passwd, protoent, servent, size_t, sockaddr, socklen_t, uid_t,
};

libc_calls! {
    /// `getaddrinfo`: what `std::net::ToSocketAddrs` calls. Returns an `EAI_` number.
    fn getaddrinfo(node: *const c_char, service: *const c_char, hints: *const addrinfo, list: *mut *mut addrinfo) -> c_int;
    /// `getnameinfo`. Returns an `EAI_` number.
    fn getnameinfo(
        address: *const sockaddr, length: socklen_t, host: *mut c_char, host_size: socklen_t,
        service: *mut c_char, service_size: socklen_t, flags: c_int,
    ) -> c_int;
    /// `gethostbyname_r`. Returns an error number.
    fn gethostbyname_r(
        name: *const c_char, entry: *mut hostent, buffer: *mut c_char, size: size_t,
        result: *mut *mut hostent, error: *mut c_int,
    ) -> c_int;
    /// `gethostbyname2_r`. Returns an error number.
    fn gethostbyname2_r(
        name: *const c_char, family: c_int, entry: *mut hostent, buffer: *mut c_char, size: size_t,
        result: *mut *mut hostent, error: *mut c_int,
    ) -> c_int;
    /// `gethostbyaddr_r`. Returns an error number.
    fn gethostbyaddr_r(
        address: *const c_void, length: socklen_t, family: c_int, entry: *mut hostent, buffer: *mut c_char,
        size: size_t, result: *mut *mut hostent, error: *mut c_int,
    ) -> c_int;
    /// `getservbyname`.
    fn getservbyname(name: *const c_char, protocol: *const c_char) -> *mut servent;
    /// `getservbyport`.
    fn getservbyport(port: c_int, protocol: *const c_char) -> *mut servent;
    /// `getprotobyname`.
    fn getprotobyname(name: *const c_char) -> *mut protoent;
}

libc_calls! {
    /// `getpwnam`.
    fn getpwnam(name: *const c_char) -> *mut passwd;
    /// `getpwuid`.
    fn getpwuid(user: uid_t) -> *mut passwd;
    /// `getpwnam_r`. Returns an error number.
    fn getpwnam_r(name: *const c_char, entry: *mut passwd, buffer: *mut c_char, size: size_t, result: *mut *mut passwd) -> c_int;
    /// `getpwuid_r`: what `std::env::home_dir` calls. Returns an error number.
    fn getpwuid_r(user: uid_t, entry: *mut passwd, buffer: *mut c_char, size: size_t, result: *mut *mut passwd) -> c_int;
    /// `getgrnam`.
    fn getgrnam(name: *const c_char) -> *mut group;
    /// `getgrgid`.
    fn getgrgid(id: gid_t) -> *mut group;
    /// `getgrnam_r`. Returns an error number.
    fn getgrnam_r(name: *const c_char, entry: *mut group, buffer: *mut c_char, size: size_t, result: *mut *mut group) -> c_int;
    /// `getgrgid_r`. Returns an error number.
    fn getgrgid_r(id: gid_t, entry: *mut group, buffer: *mut c_char, size: size_t, result: *mut *mut group) -> c_int;
    /// `getgrouplist`.
    fn getgrouplist(user: *const c_char, id: gid_t, groups: *mut gid_t, count: *mut c_int) -> c_int;
}

unsafe extern "C" {
    fn __h_errno_location() -> *mut c_int;
}

/// Runs a lookup that reports through `h_errno`, which each thread has its own of.
fn with_h_errno(lookup: impl FnOnce() -> *mut hostent) -> *mut hostent {
    let (entry, error) = offload::bounded(|| {
        let entry = lookup();
        // SAFETY: always points to the running thread's `h_errno`.
        (entry, unsafe { *__h_errno_location() })
    });
    // SAFETY: as above.
    unsafe { *__h_errno_location() = error };
    entry
}

/// `gethostbyname`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyname(name: *const c_char) -> *mut hostent {
    // SAFETY: the caller's contract.
    with_h_errno(|| unsafe { real!(fn gethostbyname(name: *const c_char) -> *mut hostent) })
}

/// `gethostbyname2`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyname2(name: *const c_char, family: c_int) -> *mut hostent {
    // SAFETY: the caller's contract.
    with_h_errno(|| unsafe {
        real!(fn gethostbyname2(name: *const c_char, family: c_int) -> *mut hostent)
    })
}

/// `gethostbyaddr`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostbyaddr(
    address: *const c_void,
    length: socklen_t,
    family: c_int,
) -> *mut hostent {
    // SAFETY: the caller's contract.
    with_h_errno(|| unsafe {
        real!(fn gethostbyaddr(address: *const c_void, length: socklen_t, family: c_int) -> *mut hostent)
    })
}

//! `netdb.h`, `pwd.h`, `grp.h`: lookup of names of hosts, services, users and groups.
//!
//! They read files, ask name servers and talk to daemons, from inside libc, sometimes for seconds,
//! and end by themselves. So each runs on the pool as a whole. Functions that return a pointer to
//! static data still do so.

use crate::Text;
use crate::net::names;
use crate::registry::interposed;
use core::ffi::{CStr, c_char, c_int, c_void};
use libc::{
    addrinfo, gid_t, group, hostent, passwd, protoent, servent, sigevent, size_t, sockaddr,
    socklen_t, spwd, timespec, uid_t,
};
use pirn_rt::blocking::pool;
use pirn_rt::glibc::symbols::real;
use pirn_rt::vthread::wait_reason::WaitReason;

interposed! {
    family "Names of hosts, services, users, groups" for Scaling,
        cannot "keep carriers free in the resolver's own functions (`res_query` and its kin), nor \
            where lists are read entry by entry (`getpwent`)";

    Pool as {
        /// `std::net::ToSocketAddrs` calls this. Returns an `EAI_` number.
        fn getaddrinfo(node: Text, service: Text, hints: *const addrinfo, list: *mut *mut addrinfo)
            -> c_int = match names::getaddrinfo(node, service, hints, list) {
                Some(result) => result,
                None => pool::bounded(WaitReason::call(c"getaddrinfo"), || libcs!()),
            };
        /// Returns an `EAI_` number.
        fn getnameinfo(
            address: *const sockaddr, length: socklen_t, host: *mut c_char, host_size: socklen_t,
            service: *mut c_char, service_size: socklen_t, flags: c_int,
        ) -> c_int = match names::getnameinfo(
            address, length, host, host_size, service, service_size, flags,
        ) {
            Some(result) => result,
            None => pool::bounded(WaitReason::call(c"getnameinfo"), || libcs!()),
        };
        /// Returns an error number.
        fn gethostbyname_r(
            name: Text, entry: *mut hostent, buffer: *mut c_char, size: size_t,
            result: *mut *mut hostent, error: *mut c_int,
        ) -> c_int = gethostbyname2_r(name, libc::AF_INET, entry, buffer, size, result, error);
        /// Returns an error number.
        fn gethostbyname2_r(
            name: Text, family: c_int, entry: *mut hostent, buffer: *mut c_char, size: size_t,
            result: *mut *mut hostent, error: *mut c_int,
        ) -> c_int = match names::asked(name, family) {
            Some(name) => pool::bounded(WaitReason::call(c"gethostbyname2_r"), || real!(
                fn gethostbyname2_r(
                    name: Text, family: c_int, entry: *mut hostent, buffer: *mut c_char,
                    size: size_t, result: *mut *mut hostent, error: *mut c_int
                ) -> c_int
            )),
            None => names::not_found_in(result, error),
        };
        /// Returns an error number.
        fn gethostbyaddr_r(
            address: *const c_void, length: socklen_t, family: c_int, entry: *mut hostent, buffer: *mut c_char,
            size: size_t, result: *mut *mut hostent, error: *mut c_int,
        ) -> c_int = match names::is_simulated() {
            true => names::not_found_in(result, error),
            false => pool::bounded(WaitReason::call(c"gethostbyaddr_r"), || libcs!()),
        };
    }
    Pool {
        fn getservbyname(name: Text, protocol: Text) -> *mut servent;
        fn getservbyport(port: c_int, protocol: Text) -> *mut servent;
        fn getprotobyname(name: Text) -> *mut protoent;
        fn getprotobynumber(protocol: c_int) -> *mut protoent;
        /// Returns an error number; so do the following functions.
        fn getservbyname_r(
            name: Text, protocol: Text, entry: *mut servent, buffer: *mut c_char, size: size_t,
            result: *mut *mut servent,
        ) -> c_int;
        fn getservbyport_r(
            port: c_int, protocol: Text, entry: *mut servent, buffer: *mut c_char, size: size_t,
            result: *mut *mut servent,
        ) -> c_int;
        fn getprotobyname_r(
            name: Text, entry: *mut protoent, buffer: *mut c_char, size: size_t,
            result: *mut *mut protoent,
        ) -> c_int;
        fn getprotobynumber_r(
            protocol: c_int, entry: *mut protoent, buffer: *mut c_char, size: size_t,
            result: *mut *mut protoent,
        ) -> c_int;
    }

    Pool {
        fn getpwnam(name: Text) -> *mut passwd;
        fn getpwuid(user: uid_t) -> *mut passwd;
        /// Returns an error number.
        fn getpwnam_r(
            name: Text, entry: *mut passwd, buffer: *mut c_char, size: size_t, result: *mut *mut passwd
        ) -> c_int;
        /// `std::env::home_dir` calls this. Returns an error number.
        fn getpwuid_r(
            user: uid_t, entry: *mut passwd, buffer: *mut c_char, size: size_t, result: *mut *mut passwd
        ) -> c_int;
        fn getspnam(name: Text) -> *mut spwd;
        /// Returns an error number.
        fn getspnam_r(
            name: Text, entry: *mut spwd, buffer: *mut c_char, size: size_t, result: *mut *mut spwd,
        ) -> c_int;
        fn getgrnam(name: Text) -> *mut group;
        fn getgrgid(id: gid_t) -> *mut group;
        /// Returns an error number.
        fn getgrnam_r(
            name: Text, entry: *mut group, buffer: *mut c_char, size: size_t, result: *mut *mut group
        ) -> c_int;
        /// Returns an error number.
        fn getgrgid_r(
            id: gid_t, entry: *mut group, buffer: *mut c_char, size: size_t, result: *mut *mut group
        ) -> c_int;
        fn getgrouplist(user: Text, id: gid_t, groups: *mut gid_t, count: *mut c_int) -> c_int;
    }
    Dedicated {
        /// Returns an `EAI_` number.
        fn gai_suspend(list: *const *const c_void, count: c_int, timeout: *const timespec) -> c_int;
        /// Returns an `EAI_` number.
        fn getaddrinfo_a(mode: c_int, list: *mut *mut c_void, count: c_int, event: *mut sigevent) -> c_int;
    }
    Pool as {
        fn gethostbyname(name: Text) -> *mut hostent
            = match names::asked(name, libc::AF_INET) {
                Some(name) => with_h_errno(c"gethostbyname", || {
                    real!(fn gethostbyname(name: Text) -> *mut hostent)
                }),
                None => names::not_found(),
            };
        fn gethostbyname2(name: Text, family: c_int) -> *mut hostent
            = match names::asked(name, family) {
                Some(name) => with_h_errno(c"gethostbyname2", || {
                    real!(fn gethostbyname2(name: Text, family: c_int) -> *mut hostent)
                }),
                None => names::not_found(),
            };
        fn gethostbyaddr(address: *const c_void, length: socklen_t, family: c_int) -> *mut hostent
            = match names::is_simulated() {
                true => names::not_found(),
                false => with_h_errno(c"gethostbyaddr", || libcs!()),
            };
    }
}

unsafe extern "C" {
    fn __h_errno_location() -> *mut c_int;
}

/// Runs a lookup that reports through `h_errno`, a thread-local.
fn with_h_errno(name: &'static CStr, lookup: impl FnOnce() -> *mut hostent) -> *mut hostent {
    let (entry, error) = pool::bounded(WaitReason::call(name), || {
        let entry = lookup();
        // SAFETY: always points to the running thread's `h_errno`.
        (entry, unsafe { *__h_errno_location() })
    });
    // SAFETY: always points to the running thread's `h_errno`.
    unsafe { *__h_errno_location() = error };
    entry
}

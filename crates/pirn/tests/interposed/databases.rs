//! Names of hosts, services, users and groups.

use std::ffi::CStr;
use std::{mem, ptr};

use libc::{
    addrinfo, c_char, c_int, c_void, gid_t, group, hostent, passwd, protoent, servent, size_t,
    sockaddr_in, socklen_t,
};

use super::everywhere;
use crate::common::{child, on_virtual, watched};

/// glibc's `struct gaicb`.
#[repr(C)]
struct Lookup {
    name: *const c_char,
    service: *const c_char,
    request: *const addrinfo,
    result: *mut addrinfo,
    internal: [c_int; 6],
}

type HostResult = *mut *mut hostent;

unsafe extern "C" {
    fn gethostbyname(name: *const c_char) -> *mut hostent;
    fn gethostbyname2(name: *const c_char, family: c_int) -> *mut hostent;
    fn gethostbyaddr(address: *const c_void, length: socklen_t, family: c_int) -> *mut hostent;
    fn gethostbyname_r(
        name: *const c_char,
        entry: *mut hostent,
        buffer: *mut c_char,
        size: size_t,
        result: HostResult,
        error: *mut c_int,
    ) -> c_int;
    fn gethostbyname2_r(
        name: *const c_char,
        family: c_int,
        entry: *mut hostent,
        buffer: *mut c_char,
        size: size_t,
        result: HostResult,
        error: *mut c_int,
    ) -> c_int;
    fn gethostbyaddr_r(
        address: *const c_void,
        length: socklen_t,
        family: c_int,
        entry: *mut hostent,
        buffer: *mut c_char,
        size: size_t,
        result: HostResult,
        error: *mut c_int,
    ) -> c_int;
    fn getservbyname(name: *const c_char, protocol: *const c_char) -> *mut servent;
    fn getservbyport(port: c_int, protocol: *const c_char) -> *mut servent;
    fn getprotobyname(name: *const c_char) -> *mut protoent;
    fn getprotobynumber(number: c_int) -> *mut protoent;
    fn getservbyname_r(
        name: *const c_char,
        protocol: *const c_char,
        entry: *mut servent,
        buffer: *mut c_char,
        size: size_t,
        result: *mut *mut servent,
    ) -> c_int;
    fn getservbyport_r(
        port: c_int,
        protocol: *const c_char,
        entry: *mut servent,
        buffer: *mut c_char,
        size: size_t,
        result: *mut *mut servent,
    ) -> c_int;
    fn getprotobyname_r(
        name: *const c_char,
        entry: *mut protoent,
        buffer: *mut c_char,
        size: size_t,
        result: *mut *mut protoent,
    ) -> c_int;
    fn getprotobynumber_r(
        number: c_int,
        entry: *mut protoent,
        buffer: *mut c_char,
        size: size_t,
        result: *mut *mut protoent,
    ) -> c_int;
    fn getaddrinfo_a(
        mode: c_int,
        list: *const *mut Lookup,
        count: c_int,
        event: *mut libc::sigevent,
    ) -> c_int;
    fn gai_suspend(
        list: *const *const Lookup,
        count: c_int,
        timeout: *const libc::timespec,
    ) -> c_int;
    fn gai_error(lookup: *mut Lookup) -> c_int;
    fn initgroups(user: *const c_char, group: gid_t) -> c_int;
}

const LOCAL: [u8; 4] = [127, 0, 0, 1];

#[watched]
fn hosts() {
    everywhere(|| {
        let name = c"127.0.0.1".as_ptr();
        let family = libc::AF_INET;
        // SAFETY: names, an address of four bytes, structures and buffers with room. What the
        // older functions return is static; only this test uses it.
        unsafe {
            let check = |found: *const hostent| {
                assert_eq!(*(*(*found).h_addr_list).cast::<[u8; 4]>(), LOCAL);
            };
            check(gethostbyname(name));
            check(gethostbyname2(name, family));
            let mut entry: hostent = mem::zeroed();
            let mut buffer = [0 as c_char; 4096];
            let (mut result, mut error) = (ptr::null_mut(), 0);
            let (text, size) = (buffer.as_mut_ptr(), buffer.len());
            let code = gethostbyname_r(name, &mut entry, text, size, &mut result, &mut error);
            assert_eq!(code, 0);
            check(result);
            let code = gethostbyname2_r(
                name,
                family,
                &mut entry,
                text,
                size,
                &mut result,
                &mut error,
            );
            assert_eq!(code, 0);
            check(result);
            // The machine decides whether it has a name; both must agree.
            let address = LOCAL.as_ptr().cast();
            let found = gethostbyaddr(address, 4, family);
            gethostbyaddr_r(
                address,
                4,
                family,
                &mut entry,
                text,
                size,
                &mut result,
                &mut error,
            );
            assert_eq!(found.is_null(), result.is_null());
            if !found.is_null() {
                check(found);
                check(result);
            }
        }
    });
}

#[watched]
fn addresses() {
    everywhere(|| {
        let (name, service) = (c"127.0.0.1".as_ptr(), c"80".as_ptr());
        // SAFETY: names and requests of our own; the results are freed.
        unsafe {
            let check = |list: *mut addrinfo| {
                let address = *(*list).ai_addr.cast::<sockaddr_in>();
                assert_eq!(address.sin_addr.s_addr.to_ne_bytes(), LOCAL);
                assert_eq!(u16::from_be(address.sin_port), 80);
                let (mut host, mut port) = ([0 as c_char; 64], [0 as c_char; 16]);
                let numeric = libc::NI_NUMERICHOST | libc::NI_NUMERICSERV;
                let code = libc::getnameinfo(
                    (*list).ai_addr,
                    (*list).ai_addrlen,
                    host.as_mut_ptr(),
                    64,
                    port.as_mut_ptr(),
                    16,
                    numeric,
                );
                assert_eq!(code, 0);
                assert_eq!(CStr::from_ptr(host.as_ptr()), c"127.0.0.1");
                assert_eq!(CStr::from_ptr(port.as_ptr()), c"80");
                libc::freeaddrinfo(list);
            };
            let mut hints: addrinfo = mem::zeroed();
            hints.ai_flags = libc::AI_NUMERICHOST | libc::AI_NUMERICSERV;
            hints.ai_family = libc::AF_INET;
            let mut list = ptr::null_mut();
            assert_eq!(libc::getaddrinfo(name, service, &hints, &mut list), 0);
            check(list);
            const WAIT: c_int = 0;
            const NOWAIT: c_int = 1;
            const IN_PROGRESS: c_int = -100; // EAI_INPROGRESS
            for mode in [WAIT, NOWAIT] {
                let mut lookup = Lookup {
                    name,
                    service,
                    request: &hints,
                    result: ptr::null_mut(),
                    internal: [0; 6],
                };
                let lookups = [&raw mut lookup];
                assert_eq!(getaddrinfo_a(mode, lookups.as_ptr(), 1, ptr::null_mut()), 0);
                while gai_error(&mut lookup) == IN_PROGRESS {
                    gai_suspend(lookups.as_ptr().cast(), 1, ptr::null());
                }
                assert_eq!(gai_error(&mut lookup), 0);
                check(lookup.result);
            }
        }
    });
}

#[watched]
fn services_and_protocols() {
    everywhere(|| {
        // SAFETY: names. The result is static; only this test uses it.
        unsafe {
            // The machine may have no list of them; its answers must be consistent.
            let service = getservbyname(c"ssh".as_ptr(), c"tcp".as_ptr());
            if !service.is_null() {
                let port = (*service).s_port;
                assert_eq!(u16::from_be(port as u16), 22);
                let same = getservbyport(port, c"tcp".as_ptr());
                assert_eq!(CStr::from_ptr((*same).s_name), c"ssh");
            }
            assert!(getservbyport(0, c"tcp".as_ptr()).is_null());
            let protocol = getprotobyname(c"tcp".as_ptr());
            assert!(protocol.is_null() || (*protocol).p_proto == libc::IPPROTO_TCP);
            let same = getprotobynumber(libc::IPPROTO_TCP);
            assert_eq!(protocol.is_null(), same.is_null());
            // The others write where they are told, and find the same.
            let mut buffer = [0 as c_char; 4096];
            let (text, size) = (buffer.as_mut_ptr(), buffer.len());
            let (ssh, tcp, port) = (c"ssh".as_ptr(), c"tcp".as_ptr(), 22u16.to_be().into());
            let (mut entry, mut found): (servent, _) = (mem::zeroed(), ptr::null_mut());
            let finds: [&dyn Fn(*mut servent, *mut *mut servent) -> c_int; 2] = [
                &|entry, found| getservbyname_r(ssh, tcp, entry, text, size, found),
                &|entry, found| getservbyport_r(port, tcp, entry, text, size, found),
            ];
            for find in finds {
                find(&mut entry, &mut found);
                assert_eq!(found.is_null(), service.is_null());
                assert!(found.is_null() || (*found).s_port == port);
            }
            let (mut entry, mut found): (protoent, _) = (mem::zeroed(), ptr::null_mut());
            let finds: [&dyn Fn(*mut protoent, *mut *mut protoent) -> c_int; 2] = [
                &|entry, found| getprotobyname_r(tcp, entry, text, size, found),
                &|entry, found| getprotobynumber_r(libc::IPPROTO_TCP, entry, text, size, found),
            ];
            for find in finds {
                find(&mut entry, &mut found);
                assert_eq!(found.is_null(), protocol.is_null());
                assert!(found.is_null() || (*found).p_proto == libc::IPPROTO_TCP);
            }
        }
    });
}

#[watched]
fn users_and_groups() {
    everywhere(|| {
        let root = c"root".as_ptr();
        let mut buffer = [0 as c_char; 4096];
        let (text, size) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: names, structures and buffers with room. What the older functions return is
        // static; only this test uses it.
        unsafe {
            for found in [libc::getpwnam(root), libc::getpwuid(0)] {
                assert_eq!(CStr::from_ptr((*found).pw_name), c"root");
            }
            for found in [libc::getgrnam(root), libc::getgrgid(0)] {
                assert_eq!(CStr::from_ptr((*found).gr_name), c"root");
            }
            let mut user: passwd = mem::zeroed();
            let mut found = ptr::null_mut();
            assert_eq!(libc::getpwnam_r(root, &mut user, text, size, &mut found), 0);
            assert_eq!((*found).pw_uid, 0);
            assert_eq!(libc::getpwuid_r(0, &mut user, text, size, &mut found), 0);
            assert_eq!(CStr::from_ptr((*found).pw_name), c"root");
            assert_eq!(
                libc::getpwuid_r(0, &mut user, text, 1, &mut found),
                libc::ERANGE
            );
            // Only root may read these; both must agree.
            let shadow = libc::getspnam(root);
            let (mut entry, mut found) = (mem::zeroed::<libc::spwd>(), ptr::null_mut());
            libc::getspnam_r(root, &mut entry, text, size, &mut found);
            assert_eq!(found.is_null(), shadow.is_null());
            let mut entry: group = mem::zeroed();
            let mut found = ptr::null_mut();
            assert_eq!(
                libc::getgrnam_r(root, &mut entry, text, size, &mut found),
                0
            );
            assert_eq!((*found).gr_gid, 0);
            assert_eq!(libc::getgrgid_r(0, &mut entry, text, size, &mut found), 0);
            assert_eq!(CStr::from_ptr((*found).gr_name), c"root");
            let (mut groups, mut count) = ([0; 64], 64);
            assert!(libc::getgrouplist(root, 7, groups.as_mut_ptr(), &mut count) > 0);
            assert!(groups[..count as usize].contains(&7));
        }
    });
}

#[watched]
fn groups_of_the_process() {
    // SAFETY: no pointers.
    if unsafe { libc::geteuid() } != 0 {
        return crate::common::skip("changing groups needs root");
    }
    child::isolated(&[], || {
        let f = || {
            let groups = || {
                let mut groups = [0; 64];
                // SAFETY: room for that many.
                let count = unsafe { libc::getgroups(64, groups.as_mut_ptr()) };
                groups[..count as usize].to_vec()
            };
            // SAFETY: that many groups; a name.
            unsafe {
                assert_eq!(libc::setgroups(2, [3, 5].as_ptr()), 0);
                assert_eq!(groups(), [3, 5]);
                assert_eq!(initgroups(c"root".as_ptr(), 9), 0);
                assert!(groups().contains(&9) && !groups().contains(&3));
            }
        };
        f();
        on_virtual(f);
    });
}

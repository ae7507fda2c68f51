//! Names of hosts in a simulation: its own table answers, and no server is asked. libc's functions
//! are given the address as text, which they only have to read.

use crate::Text;
use crate::simulated::{self, Host, network};
use core::ffi::{CStr, c_char, c_int};
use core::{mem, ptr};
use libc::{addrinfo, hostent, sockaddr, socklen_t};
use pirn_rt::glibc::symbols::real;
use std::net::IpAddr;

unsafe extern "C" {
    fn __h_errno_location() -> *mut c_int;
}

/// Returns what libc's functions look up in place of a host's name. `None`: there is no such host.
///
/// # Safety
/// `name` is null or a C string.
pub(super) unsafe fn asked(name: Text, family: c_int) -> Option<Text> {
    // SAFETY: the caller's contract.
    match unsafe { simulated::host(name) } {
        Host::Libcs => Some(name),
        Host::Known([v4, v6]) => Some(if family == libc::AF_INET6 { v6 } else { v4 }.as_ptr()),
        Host::Other => {
            // SAFETY: the caller's contract.
            let text = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
            let number = text.and_then(|it| it.to_str().ok()?.parse::<IpAddr>().ok());
            number.map(|_| name)
        }
    }
}

/// Reports a host that is not there, as the functions do that return an entry.
pub(super) fn not_found() -> *mut hostent {
    const HOST_NOT_FOUND: c_int = 1;
    // SAFETY: always points to the running thread's `h_errno`.
    unsafe { *__h_errno_location() = HOST_NOT_FOUND };
    ptr::null_mut()
}

/// Reports a host that is not there, as the functions do that are given places for the results.
///
/// # Safety
/// The places are the caller's.
pub(super) unsafe fn not_found_in(result: *mut *mut hostent, error: *mut c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        *result = not_found();
        *error = *__h_errno_location();
    }
    0
}

/// `getaddrinfo`, in a simulation. Returns `None` if the thread is not simulated.
///
/// # Safety
/// As for `getaddrinfo`.
pub(super) unsafe fn getaddrinfo(
    node: Text,
    service: Text,
    hints: *const addrinfo,
    list: *mut *mut addrinfo,
) -> Option<c_int> {
    // SAFETY: the caller's contract.
    let host = unsafe { simulated::host(node) };
    // SAFETY: zeros are hints; the caller's contract.
    let mut wanted: addrinfo = unsafe { hints.as_ref().map_or_else(|| mem::zeroed(), |it| *it) };
    // With more than one address, libc would ask the kernel for routes to each.
    let texts: [&CStr; 2] = match host {
        Host::Libcs => return None,
        Host::Known(texts) => texts,
        Host::Other if node.is_null() => match wanted.ai_flags & libc::AI_PASSIVE {
            0 => [c"127.0.0.1", c"::1"],
            _ => [c"0.0.0.0", c"::"],
        },
        Host::Other => {
            wanted.ai_flags = wanted.ai_flags & !libc::AI_ADDRCONFIG | libc::AI_NUMERICHOST;
            let hints = &raw const wanted;
            // SAFETY: the caller's contract.
            return Some(unsafe { libcs(node, service, hints, list) });
        }
    };
    let name = (wanted.ai_flags & libc::AI_CANONNAME != 0).then_some(node);
    const DROPPED: c_int = libc::AI_ADDRCONFIG | libc::AI_CANONNAME | libc::AI_PASSIVE;
    wanted.ai_flags = wanted.ai_flags & !DROPPED | libc::AI_NUMERICHOST;
    let mut end = list;
    let asked = wanted.ai_family;
    let mut result = libc::EAI_FAMILY;
    for (family, text) in [libc::AF_INET, libc::AF_INET6].into_iter().zip(texts) {
        if asked != libc::AF_UNSPEC && asked != family {
            continue;
        }
        wanted.ai_family = family;
        let (node, hints) = (text.as_ptr(), &raw const wanted);
        // SAFETY: the caller's contract; each list ends with null.
        unsafe {
            match libcs(node, service, hints, end) {
                0 => result = 0,
                error if end == list => return Some(error),
                _ => break,
            }
            while let Some(entry) = (*end).as_mut() {
                end = &raw mut entry.ai_next;
            }
        }
    }
    if result == 0
        && let Some(name) = name.filter(|it| !it.is_null())
    {
        // SAFETY: the list has an entry; `freeaddrinfo` frees the name.
        unsafe { (**list).ai_canonname = libc::strdup(name) };
    }
    Some(result)
}

/// Calls libc's own function.
///
/// # Safety
/// As for `getaddrinfo`.
unsafe fn libcs(
    node: Text,
    service: Text,
    hints: *const addrinfo,
    list: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        real!(
            fn getaddrinfo(
                node: Text, service: Text, hints: *const addrinfo, list: *mut *mut addrinfo
            ) -> c_int
        )
    }
}

/// `getnameinfo`, in a simulation. Returns `None` if the thread is not simulated.
///
/// # Safety
/// As for `getnameinfo`.
pub(super) unsafe fn getnameinfo(
    address: *const sockaddr,
    length: socklen_t,
    host: *mut c_char,
    host_size: socklen_t,
    service: *mut c_char,
    service_size: socklen_t,
    flags: c_int,
) -> Option<c_int> {
    let network = network()?;
    let name = match flags & libc::NI_NUMERICHOST {
        // SAFETY: the caller's contract.
        0 => unsafe { network.name_of(address, length) },
        _ => None,
    };
    if name.is_none() && flags & libc::NI_NAMEREQD != 0 {
        return Some(libc::EAI_NONAME);
    }
    let flags = flags | libc::NI_NUMERICHOST;
    // SAFETY: the caller's contract.
    let result = unsafe {
        real!(
            fn getnameinfo(
                address: *const sockaddr, length: socklen_t, host: *mut c_char,
                host_size: socklen_t, service: *mut c_char, service_size: socklen_t, flags: c_int
            ) -> c_int
        )
    };
    if result == 0
        && let Some(name) = name.filter(|_| !host.is_null() && host_size > 0)
    {
        let bytes = name.to_bytes_with_nul();
        if bytes.len() > host_size as usize {
            return Some(libc::EAI_OVERFLOW);
        }
        // SAFETY: so much room is there.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().cast(), host, bytes.len()) };
    }
    Some(result)
}

/// Returns whether hosts are looked up in a simulation.
pub(super) fn is_simulated() -> bool {
    network().is_some()
}

//! Names of nodes.

use super::address::{self, Address};
use super::socket::is_inside;
use super::with;
use crate::world;
use core::ffi::{CStr, c_char, c_int};
use core::mem::MaybeUninit;
use libc::{size_t, utsname};
use pirn_rt::lock::Lock;
use pirn_rt::sys::{Errno, call};
use std::collections::BTreeSet;
use std::ffi::CString;

/// What the test's own node is called.
const LOCAL: &CStr = c"localhost";

/// Returns a text that stays: libc's functions are given it. The runs of a process have the same
/// few.
pub(super) fn kept(text: &str) -> &'static CStr {
    static KEPT: Lock<BTreeSet<&CStr>> = Lock::new(BTreeSet::new());
    let text = CString::new(text).unwrap_or_default();
    let mut kept = KEPT.lock();
    if let Some(text) = kept.get(&*text) {
        return text;
    }
    let text: &'static CStr = Box::leak(text.into_boxed_c_str());
    kept.insert(text);
    text
}

/// Returns the addresses of a node as texts.
pub(super) fn texts(number: u32) -> [&'static CStr; 2] {
    let v4 = address::v4_of_node(number).to_string();
    let v6 = address::v6_of_node(number).to_string();
    [kept(&v4), kept(&v6)]
}

/// Returns the addresses of a host as texts.
pub(super) fn addresses_of(name: &CStr) -> Option<[&'static CStr; 2]> {
    if name.is_empty() {
        return None;
    }
    if name == LOCAL {
        return Some([c"127.0.0.1", c"::1"]);
    }
    with(|net| {
        let found = net.nodes.iter().find(|it| it.name == name);
        found.map(|it| it.texts)
    })
}

/// Returns the name of the host with an address.
pub(super) fn name_of(address: Address) -> Option<&'static CStr> {
    let own = world::own_node();
    let name = with(|net| {
        let node = address.node(own, net.nodes.len())?;
        Some(net.nodes[node as usize].name)
    })?;
    Some(if name.is_empty() { LOCAL } else { name })
}

/// Returns the name of the machine.
fn own_name() -> Option<&'static CStr> {
    if !is_inside() {
        return None;
    }
    let own = world::own_node();
    let name = with(|net| net.nodes[own as usize].name);
    Some(if name.is_empty() { LOCAL } else { name })
}

/// `uname`: a node's name is the one that it was made with.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uname(to: *mut utsname) -> c_int {
    // SAFETY: the caller's contract.
    let result = unsafe { call!(libc::SYS_uname, to) };
    if result.is_ok()
        && let Some(name) = own_name()
    {
        // SAFETY: the kernel has filled it in.
        let place = unsafe { &mut (*to).nodename };
        place.fill(0);
        let bytes = name.to_bytes().iter().take(place.len() - 1);
        for (to, from) in place.iter_mut().zip(bytes) {
            *to = *from as c_char;
        }
    }
    super::socket::to_c(result)
}

/// `gethostname`.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostname(to: *mut c_char, length: size_t) -> c_int {
    let mut names = MaybeUninit::<utsname>::zeroed();
    // SAFETY: room for the names.
    if unsafe { uname(names.as_mut_ptr()) } != 0 {
        return -1;
    }
    // SAFETY: filled in, and each ends with a zero.
    let name = unsafe { CStr::from_ptr((*names.as_ptr()).nodename.as_ptr()) };
    let bytes = name.to_bytes_with_nul();
    // SAFETY: the caller's contract.
    unsafe {
        bytes
            .as_ptr()
            .copy_to_nonoverlapping(to.cast(), bytes.len().min(length));
    }
    match bytes.len() > length {
        true => super::socket::to_c(Err(Errno(libc::ENAMETOOLONG))),
        false => 0,
    }
}

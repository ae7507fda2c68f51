//! Names of nodes, as programs look them up.

use pirn_sim::net::node;
use pirn_sim::{Outcome, Sim};
use std::ffi::{CStr, CString};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};
use std::{mem, ptr, thread};

fn passes(test: impl Fn() + Send + Sync + 'static) {
    let report = Sim::new().run(1, test);
    assert_eq!(report.outcome, Outcome::Passed, "{report:?}");
}

/// Calls `getaddrinfo` for these families and flags.
fn lookup(name: Option<&str>, family: i32, flags: i32) -> Result<Vec<IpAddr>, i32> {
    let name = name.map(|it| CString::new(it).unwrap());
    // SAFETY: zeros are hints; the list is as libc makes it, and is freed as such.
    unsafe {
        let mut hints: libc::addrinfo = mem::zeroed();
        (hints.ai_family, hints.ai_flags) = (family, flags);
        hints.ai_socktype = libc::SOCK_STREAM;
        let mut list = ptr::null_mut();
        let name = name.as_ref().map_or(ptr::null(), |it| it.as_ptr());
        match libc::getaddrinfo(name, c"80".as_ptr(), &hints, &mut list) {
            0 => {}
            error => return Err(error),
        }
        if flags & libc::AI_CANONNAME != 0 {
            assert_eq!(CStr::from_ptr((*list).ai_canonname), CStr::from_ptr(name));
        }
        let mut found = Vec::new();
        let mut entry = list;
        while let Some(it) = entry.as_ref() {
            found.push(match it.ai_family {
                libc::AF_INET => {
                    let address = it.ai_addr.cast::<libc::sockaddr_in>();
                    assert_eq!((*address).sin_port, 80_u16.to_be());
                    IpAddr::from((*address).sin_addr.s_addr.to_ne_bytes())
                }
                _ => {
                    let address = it.ai_addr.cast::<libc::sockaddr_in6>();
                    IpAddr::from((*address).sin6_addr.s6_addr)
                }
            });
            entry = it.ai_next;
        }
        libc::freeaddrinfo(list);
        Ok(found)
    }
}

fn addresses(all: &[&str]) -> Result<Vec<IpAddr>, i32> {
    Ok(all.iter().map(|it| it.parse().unwrap()).collect())
}

#[test]
fn names_of_nodes_have_an_address_of_each_family_and_others_have_none() {
    passes(|| {
        let server = node("server", || ());
        let found: Vec<SocketAddr> = "server:7".to_socket_addrs().unwrap().collect();
        let expected = [
            (server.address(), 7).into(),
            (server.address_v6(), 7).into(),
        ];
        assert_eq!(found, expected);
        let both = addresses(&["10.0.0.2", "fd00::2"]);
        assert_eq!(
            lookup(Some("server"), libc::AF_UNSPEC, libc::AI_ADDRCONFIG),
            both
        );
        assert_eq!(
            lookup(Some("server"), libc::AF_UNSPEC, libc::AI_CANONNAME),
            both
        );
        assert_eq!(
            lookup(Some("server"), libc::AF_INET, 0),
            addresses(&["10.0.0.2"])
        );
        assert_eq!(
            lookup(Some("server"), libc::AF_INET6, 0),
            addresses(&["fd00::2"])
        );
        let local = addresses(&["127.0.0.1", "::1"]);
        assert_eq!(lookup(Some("localhost"), libc::AF_UNSPEC, 0), local);
        assert_eq!(lookup(None, libc::AF_UNSPEC, 0), local);
        let any = addresses(&["0.0.0.0", "::"]);
        assert_eq!(lookup(None, libc::AF_UNSPEC, libc::AI_PASSIVE), any);
        assert_eq!(lookup(Some("1.2.3.4"), 0, 0), addresses(&["1.2.3.4"]));
        let begin = Instant::now();
        assert_eq!(lookup(Some("example.org"), 0, 0), Err(libc::EAI_NONAME));
        assert!("nowhere:1".to_socket_addrs().is_err());
        assert!(
            begin.elapsed() < Duration::from_millis(1),
            "no server is asked"
        );
    });
}

#[test]
fn the_older_functions_know_the_same_names() {
    unsafe extern "C" {
        fn gethostbyname(name: *const libc::c_char) -> *mut libc::hostent;
    }
    passes(|| {
        node("server", || ());
        // SAFETY: C strings; what is returned stays until the next call; room for the name.
        unsafe {
            let entry = gethostbyname(c"server".as_ptr()).as_ref().unwrap();
            let address = *(*entry.h_addr_list).cast::<[u8; 4]>();
            assert_eq!(address, [10, 0, 0, 2]);
            assert!(gethostbyname(c"example.org".as_ptr()).is_null());
            let mut to: libc::sockaddr_in = mem::zeroed();
            to.sin_family = libc::AF_INET as u16;
            to.sin_addr.s_addr = u32::from_ne_bytes([10, 0, 0, 2]);
            let name = |flags| {
                let (size, mut host) = (size_of::<libc::sockaddr_in>() as u32, [0; 100]);
                let (address, place) = ((&raw const to).cast(), host.as_mut_ptr());
                let none = ptr::null_mut();
                assert_eq!(
                    libc::getnameinfo(address, size, place, 100, none, 0, flags),
                    0
                );
                CStr::from_ptr(place).to_str().unwrap().to_owned()
            };
            assert_eq!(name(0), "server");
            assert_eq!(name(libc::NI_NUMERICHOST), "10.0.0.2");
        }
    });
}

#[test]
fn each_node_has_its_own_name() {
    fn names() -> [String; 2] {
        // SAFETY: room for the names, which end with zeros.
        unsafe {
            let mut host = [0; 100];
            assert_eq!(libc::gethostname(host.as_mut_ptr(), 100), 0);
            let mut all: libc::utsname = mem::zeroed();
            assert_eq!(libc::uname(&mut all), 0);
            [host.as_ptr(), all.nodename.as_ptr()]
                .map(|it| CStr::from_ptr(it).to_str().unwrap().to_owned())
        }
    }
    let outside = names();
    passes(|| {
        assert_eq!(names(), ["localhost"; 2]);
        node("one", || assert_eq!(names(), ["one"; 2]));
        node("two", || assert_eq!(names(), ["two"; 2]));
        thread::sleep(Duration::from_secs(1));
    });
    assert_eq!(names(), outside);
}

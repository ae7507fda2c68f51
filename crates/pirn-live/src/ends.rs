//! What is at the ends of the descriptors that threads wait for: addresses of sockets, paths.
//!
//! The process says only the number. The kernel says the rest (`/proc/PID/fd`, `/proc/PID/net`), a
//! moment later: a descriptor that was closed and opened again meanwhile shows its new ends.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use pirn_dump::{Dump, Ends, Wait};

/// Adds the ends to a dump of a process that runs here.
pub fn find(pid: u32, dump: &mut Dump) {
    let mut sockets = None;
    let mut known: HashMap<i32, Option<Box<Ends>>> = HashMap::new();
    for thread in &mut dump.threads {
        let Wait::Descriptor { fd, ends, .. } = &mut thread.wait else {
            continue;
        };
        let found = known.entry(*fd).or_insert_with(|| {
            let link = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
            let link = link.to_string_lossy();
            let sockets = match socket(&link) {
                Some(_) => sockets.get_or_insert_with(|| Sockets::read(pid)),
                None => &Sockets::default(),
            };
            Some(Box::new(ends_of(&link, sockets)))
        });
        if ends.is_none() {
            ends.clone_from(found);
        }
    }
}

/// Returns the ends of the file that a link in `/proc/PID/fd` names.
fn ends_of(link: &str, sockets: &Sockets) -> Ends {
    let end = socket(link).and_then(|inode| sockets.0.get(&inode));
    end.cloned().unwrap_or_else(|| Ends {
        local: link.into(),
        peer: String::new(),
    })
}

/// Returns the number of the socket that a link names.
fn socket(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// The sockets of a process's network, by their numbers.
#[derive(Default)]
struct Sockets(HashMap<u64, Ends>);

impl Sockets {
    fn read(pid: u32) -> Sockets {
        let mut sockets = HashMap::new();
        let mut add = |name: &str, parse: fn(&str, &str) -> Option<(u64, Ends)>| {
            let Ok(file) = File::open(format!("/proc/{pid}/net/{name}")) else {
                return; // A kernel without it.
            };
            let lines = BufReader::new(file).lines().map_while(Result::ok);
            sockets.extend(lines.skip(1).filter_map(|line| parse(name, &line)));
        };
        for name in ["tcp", "tcp6", "udp", "udp6"] {
            add(name, internet);
        }
        add("unix", unix);
        Sockets(sockets)
    }
}

/// Parses a line of one of the tables of internet sockets.
fn internet(table: &str, line: &str) -> Option<(u64, Ends)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let inode = fields.get(9)?.parse().ok()?;
    let (local, peer) = (address(fields.get(1)?)?, address(fields.get(2)?)?);
    let kind = table.trim_end_matches('6');
    let named = |address: SocketAddr| match address.port() {
        0 => String::new(), // A listener has no peer.
        _ => address.to_string(),
    };
    let ends = Ends {
        local: format!("{kind} {local}"),
        peer: named(peer),
    };
    Some((inode, ends))
}

/// Parses an address: words of 32 bits in this machine's order, in hexadecimal, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let mut bytes = Vec::new();
    for start in (0..address.len()).step_by(8) {
        let word = u32::from_str_radix(address.get(start..start + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let address = match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(bytes) => IpAddr::V4(Ipv4Addr::from(bytes)),
        Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[..]).ok()?)),
    };
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(SocketAddr::new(address.to_canonical(), port))
}

/// Parses a line of the table of Unix sockets.
fn unix(_: &str, line: &str) -> Option<(u64, Ends)> {
    let mut fields = line.split_whitespace().skip(6);
    let inode = fields.next()?.parse().ok()?;
    let path = fields.next().unwrap_or("(unnamed)");
    let ends = Ends {
        local: format!("unix {path}"),
        peer: String::new(),
    };
    Some((inode, ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_words_of_the_machine() {
        let parsed = |text| address(text).unwrap().to_string();
        assert_eq!(parsed("0100007F:1F90"), "127.0.0.1:8080");
        assert_eq!(parsed("00000000000000000000000001000000:0016"), "[::1]:22");
        assert_eq!(
            parsed("0000000000000000FFFF00000100007F:0001"),
            "127.0.0.1:1"
        );
        assert_eq!(address("0100:1"), None);
        assert_eq!(address("x"), None);
    }

    #[test]
    fn a_socket_has_two_ends() {
        let line = "   0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     \
                    0        0 4711 1 0000000000000000 20 4 30 10 -1";
        let (inode, ends) = internet("tcp6", line).unwrap();
        assert_eq!(inode, 4711);
        assert_eq!(
            (&*ends.local, &*ends.peer),
            ("tcp 127.0.0.1:8080", "127.0.0.1:50000")
        );
        let listener = line.replace("0100007F:C350", "00000000:0000");
        assert_eq!(internet("tcp", &listener).unwrap().1.peer, "");
        let line = "ffff: 00000002 00000000 00010000 0001 01 4712 /run/x.sock";
        assert_eq!(unix("unix", line).unwrap().1.local, "unix /run/x.sock");
        assert_eq!(
            unix("unix", "ffff: 2 0 0 1 3 7").unwrap().1.local,
            "unix (unnamed)"
        );
    }

    #[test]
    fn what_is_no_socket_is_shown_as_the_kernel_names_it() {
        let shown = |link| ends_of(link, &Sockets::default()).local;
        assert_eq!(shown("pipe:[12]"), "pipe:[12]");
        assert_eq!(shown("socket:[12]"), "socket:[12]");
        assert_eq!(shown("/dev/pts/0"), "/dev/pts/0");
    }
}

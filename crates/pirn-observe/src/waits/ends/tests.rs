use super::*;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{SocketAddr, UnixListener};

fn pair(fd: &impl AsRawFd) -> (String, String) {
    let ends = of(fd.as_raw_fd()).unwrap();
    (ends.local, ends.peer)
}

#[test]
fn sockets_have_addresses() {
    for host in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(listener) = TcpListener::bind(host) else {
            println!("no {host} here: left out");
            continue;
        };
        let here = listener.local_addr().unwrap().to_string();
        assert_eq!(pair(&listener), (here.clone(), String::new()));
        let stream = TcpStream::connect(&here).unwrap();
        let there = stream.local_addr().unwrap().to_string();
        assert_eq!(pair(&stream), (there, here));
    }
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!(pair(&socket).0, socket.local_addr().unwrap().to_string());
}

#[test]
fn unix_sockets_have_paths_or_numbers() {
    let (one, _two) = UnixStream::pair().unwrap();
    assert!(pair(&one).0.starts_with("socket:["), "{:?}", pair(&one));
    let path = std::env::temp_dir().join(format!("pirn-ends-{}", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    assert_eq!(pair(&listener).0, format!("unix:{}", path.display()));
    let stream = UnixStream::connect(&path).unwrap();
    assert_eq!(pair(&stream).1, format!("unix:{}", path.display()));
    std::fs::remove_file(path).unwrap();
    let name = format!("pirn-ends-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    assert_eq!(pair(&listener).0, format!("unix:@{name}"));
}

#[test]
fn sockets_are_the_programs_whatever_table_the_caller_has() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (fd, here) = (listener.as_raw_fd(), listener.local_addr().unwrap());
    let (other, _pair) = UnixStream::pair().unwrap();
    let asker = std::thread::spawn(move || {
        // SAFETY: no pointers; the numbers are this thread's own from here on.
        unsafe {
            call!(libc::SYS_unshare, libc::CLONE_FILES).unwrap();
            call!(libc::SYS_dup3, other.as_raw_fd(), fd, 0).unwrap();
        }
        let ends = of(fd).unwrap();
        (ends, other)
    });
    let (ends, _other) = asker.join().unwrap();
    assert_eq!((ends.local, ends.peer), (here.to_string(), String::new()));
}

#[test]
fn files_have_paths_and_closed_ones_nothing() {
    let null = std::fs::File::open("/dev/null").unwrap();
    assert_eq!(pair(&null), ("/dev/null".into(), String::new()));
    assert_eq!(of(-1), None);
    let (reader, _writer) = std::io::pipe().unwrap();
    assert!(pair(&reader).0.starts_with("pipe:["));
}

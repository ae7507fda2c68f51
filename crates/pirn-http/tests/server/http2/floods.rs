//! Clients that send frames as fast as they can: written by hand, since no client does it.

use super::{Client, served};
use pirn::thread;
use pirn_http::{Running, Server};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `GET / HTTP/2` of the host `a`, by HPACK's static table.
const GET: &[u8] = &[0x82, 0x86, 0x84, 0x41, 1, b'a'];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

fn connect(server: &Running) -> TcpStream {
    let mut socket = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    let settings = frame(SETTINGS, 0, 0, &[]);
    socket.write_all(&[PREFACE, &settings].concat()).unwrap();
    socket
}

/// Reads frames until the server says why it goes away. `None`: it closes without.
fn reason(socket: &mut TcpStream) -> Option<u32> {
    loop {
        let mut head = [0; 9];
        socket.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        socket.read_exact(&mut payload).ok()?;
        if head[3] == GOAWAY {
            return Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
    }
}

fn waiting() -> Running {
    let wait = || -> std::io::Result<()> {
        let (mut silent, _other) = UnixStream::pair()?;
        silent.read(&mut [0]).map(drop)
    };
    let hello = || "hello";
    served(Server::new().get("/", wait).get("/hello", hello))
}

/// Has a client send, and returns why the server goes away. The server serves others afterwards.
fn refused(frames: impl Iterator<Item = Vec<u8>> + Send + 'static) -> Option<u32> {
    let server = waiting();
    let mut socket = connect(&server);
    let mut writer = socket.try_clone().unwrap();
    let writing = thread::spawn(move || {
        // The server closes the connection in the middle of it.
        let _ = frames
            .collect::<Vec<_>>()
            .chunks(64)
            .try_for_each(|some| writer.write_all(&some.concat()));
    });
    let reason = reason(&mut socket);
    writing.join().unwrap();
    assert_eq!(Client::connect(&server).get("/hello").text(), "hello");
    drop(socket);
    assert_eq!(server.shutdown(), 0);
    reason
}

#[test]
fn streams_that_are_begun_and_reset_are_refused() {
    let rapid = (0..1000).flat_map(|number| {
        let stream = number * 2 + 1;
        let begin = frame(HEADERS, END_STREAM | END_HEADERS, stream, GET);
        [begin, frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])]
    });
    assert_eq!(refused(rapid), Some(ENHANCE_YOUR_CALM));
}

#[test]
fn a_head_without_end_is_refused() {
    let begin = frame(HEADERS, END_STREAM, 1, GET);
    let more = frame(
        CONTINUATION,
        0,
        1,
        &[&[0, 1, b'x', 100][..], &[b'y'; 100]].concat(),
    );
    let endless = std::iter::once(begin).chain(std::iter::repeat_n(more, 100_000));
    assert_eq!(refused(endless), Some(ENHANCE_YOUR_CALM));
}

#[test]
fn resets_that_the_client_provokes_are_refused() {
    // A request without a target, which the server resets.
    let begin = |number: u32| frame(HEADERS, END_STREAM | END_HEADERS, number * 2 + 1, &GET[..2]);
    let provoking = (0..3000).map(begin);
    assert_eq!(refused(provoking), Some(ENHANCE_YOUR_CALM));
}

#[test]
fn others_are_served_beside_a_flood_of_pings() {
    let server = waiting();
    let floods = [(); 4].map(|()| connect(&server));
    let flooding = floods.each_ref().map(|socket| {
        let mut socket = socket.try_clone().unwrap();
        // Acknowledgements of pings that the server has not sent: it answers nothing, so this
        // thread reads nothing.
        let many = frame(PING, 1, 0, &[0; 8]).repeat(1000);
        thread::spawn(move || while socket.write_all(&many).is_ok() {})
    });
    let client = Client::connect(&server);
    for _ in 0..100 {
        assert_eq!(client.get("/hello").text(), "hello");
    }
    for socket in &floods {
        socket.shutdown(std::net::Shutdown::Both).unwrap();
    }
    flooding.into_iter().for_each(|one| one.join().unwrap());
    client.end().unwrap();
    assert_eq!(server.shutdown(), 0);
}

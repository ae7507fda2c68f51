//! Passing on connections that change their protocol, WebSockets above all.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use pirn::thread::{self, Permit};
use pirn_http::header::{SEC_WEBSOCKET_ACCEPT, UPGRADE};
use pirn_http::http::Version;
use pirn_http::{HeaderMap, HeaderValue, Method, Request, Response, Upgraded};

use crate::answer::Incoming;
use crate::origin::Connection;
use crate::proxy;

/// Returns whether the client asks for another protocol than HTTP. In HTTP/2 that is what the field
/// says: pirn-http has made it of `:protocol` (RFC 8441).
pub(super) fn is_asked_for(request: &Request) -> bool {
    let mut options = proxy::connection_options(request.headers());
    request.method == Method::GET
        && request.headers().contains_key(UPGRADE)
        && !is_http(request.headers())
        && match request.version {
            Version::HTTP_2 => true,
            Version::HTTP_11 => {
                request.body_left() == Some(0)
                    && options.any(|option| option.eq_ignore_ascii_case(b"upgrade"))
            }
            _ => false,
        }
}

/// Returns whether the client of HTTP/2 waits for a tunnel, and sends no end of a body.
pub(super) fn is_tunnel(request: &Request) -> bool {
    request.version == Version::HTTP_2 && request.headers().contains_key(UPGRADE)
}

/// Returns the answer to a client whose connection the other server has changed the protocol of.
pub(super) fn pass_on(
    request: &Request,
    mut headers: HeaderMap,
    (server, incoming): (Connection, Incoming),
    permit: Permit<'static>,
) -> Response {
    if request.version == Version::HTTP_2 {
        headers.remove(SEC_WEBSOCKET_ACCEPT);
    }
    let name = headers.get(UPGRADE).map(HeaderValue::as_bytes);
    let is_websocket = name.is_some_and(|name| name.eq_ignore_ascii_case(b"websocket"));
    server.be_patient();
    let mut response = Response::upgrade("", move |client| {
        relay(&client, &server, incoming.unused(), is_websocket);
        drop(server);
        drop(permit);
    });
    response.headers = headers;
    response
}

/// Returns whether the client asks for another version of HTTP, such as `h2c`, alone or beside
/// other protocols. The proxy would not see the requests in such a tunnel, and a client could put
/// any `Forwarded` in them.
fn is_http(headers: &HeaderMap) -> bool {
    let values = headers.get_all(UPGRADE).into_iter();
    let mut names = values.flat_map(|value| value.as_bytes().split(|&byte| b",/".contains(&byte)));
    names.any(|name| {
        let name = name.trim_ascii().to_ascii_lowercase();
        [&b"h2c"[..], b"h2", b"http", b"tls"].contains(&name.as_slice())
    })
}

/// Returns a random key, as a server of HTTP/1.1 wants one: 16 bytes in base64.
pub(super) fn key() -> HeaderValue {
    let half = || RandomState::new().hash_one(0).to_ne_bytes();
    let text = base64(&[half(), half()].concat());
    HeaderValue::try_from(text).expect("digits are visible ASCII")
}

/// Returns bytes in base64: RFC 4648, section 4.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| {
            bits << 8 | u32::from(three.get(at).copied().unwrap_or(0))
        });
        for at in 0..4 {
            text.push(match at <= three.len() {
                true => DIGITS[(bits >> (18 - 6 * at) & 63) as usize].into(),
                false => '=',
            });
        }
    }
    text
}

/// Passes bytes on in both directions, until both have ended, or the client is gone. A server that
/// is shut down lets them go on for the grace; then a WebSocket's client is told.
fn relay(client: &Upgraded, server: &Connection, early: &[u8], is_websocket: bool) {
    let is_ending = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut to = Counted(client, Frames::default());
            let mut from = server;
            let _ = to
                .write_all(early)
                .and_then(|()| io::copy(&mut from, &mut to));
            if is_websocket && is_ending.load(SeqCst) && to.1.is_between() {
                let _ = to.write_all(GOING_AWAY); // The client may be gone.
            }
            client.shutdown(Shutdown::Write);
        });
        // On the connection's own thread, whose waits end when the server is shut down.
        let (mut from, mut to) = (client, server);
        let mut copied = io::copy(&mut from, &mut to);
        if copied.is_err() && client.is_dismissed() {
            thread::take_interrupt();
            copied = io::copy(&mut from, &mut to); // Until the next one, after the grace.
            is_ending.store(copied.is_err(), SeqCst);
        }
        server.shutdown(match copied {
            Ok(_) => Shutdown::Write,
            Err(_) => Shutdown::Both,
        });
    });
}

/// A frame that closes a WebSocket because its server goes away: RFC 6455, sections 5.5.1, 7.4.1.
const GOING_AWAY: &[u8] = &[0x88, 2, 0x03, 0xe9];

/// A writer that knows the frames of what is written.
struct Counted<'c>(&'c Upgraded, Frames);

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        self.1.pass(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where the frames of a WebSocket begin and end: RFC 6455, section 5.2.
#[derive(Default)]
struct Frames {
    /// The head of a frame, as far as it has come.
    head: Vec<u8>,
    /// How many bytes of the frame are to come.
    left: u64,
    /// The last one was a farewell.
    is_closed: bool,
}

impl Frames {
    fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let within = usize::try_from(self.left)
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            self.left -= within as u64;
            bytes = &bytes[within..];
            if let Some((first, rest)) = bytes.split_first() {
                self.head.push(*first);
                bytes = rest;
                self.begin();
            }
        }
    }

    /// Begins with the bytes of a frame, if its head is complete.
    fn begin(&mut self) {
        let Some(&second) = self.head.get(1) else {
            return;
        };
        let digits = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if second & 0x80 == 0 { 0 } else { 4 };
        if self.head.len() < 2 + digits + mask {
            return;
        }
        let long = self.head[2..2 + digits].iter();
        let long = long.fold(0, |length, &digit| length << 8 | u64::from(digit));
        self.left = if digits == 0 {
            u64::from(second & 0x7f)
        } else {
            long
        };
        self.is_closed = self.head[0] & 0x0f == 8;
        self.head.clear();
    }

    /// Returns whether another frame may be sent.
    fn is_between(&self) -> bool {
        self.head.is_empty() && self.left == 0 && !self.is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(key().len(), 24);
    }

    #[test]
    fn frames_end_where_their_heads_say() {
        let long = [&[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0][..], &[0; 65_536]].concat();
        let masked = [0x81, 0x82, 1, 2, 3, 4, 5, 6];
        let all = [
            &[0x81, 0][..],
            &[0x82, 126, 0, 200],
            &[0; 200],
            &masked,
            &long,
        ]
        .concat();
        let ends = [2, 206, 214, 214 + long.len()];
        let mut frames = Frames::default();
        for (at, byte) in all.iter().enumerate() {
            frames.pass(&[*byte]);
            assert_eq!(frames.is_between(), ends.contains(&(at + 1)), "{at}");
        }
        let mut frames = Frames::default();
        frames.pass(&all);
        assert!(frames.is_between());
        frames.pass(GOING_AWAY);
        assert!(!frames.is_between());
    }
}

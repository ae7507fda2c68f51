//! Passing on connections that change their protocol, WebSockets above all.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use pirn::{scope, thread};
use pirn_http::header::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use pirn_http::http::Version;
use pirn_http::http::uri::{PathAndQuery, Scheme};
use pirn_http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Status, Upgraded, Uri,
};

use super::proxy::{self, CONNECT, MAX_HEAD};
use crate::retry::retry;

/// The maximum number of fields of an answer.
const MAX_FIELDS: usize = 100;

/// Returns whether the client asks for another protocol. In HTTP/2 that is what the field says:
/// pirn-http has made it of `:protocol` (RFC 8441).
pub(super) fn is_asked_for(request: &Request) -> bool {
    let mut options = proxy::connection_options(&request.headers);
    request.method == Method::GET
        && request.headers.contains_key(UPGRADE)
        && match request.version {
            Version::HTTP_2 => true,
            Version::HTTP_11 => {
                request.body_left() == Some(0)
                    && options.any(|option| option.eq_ignore_ascii_case(b"upgrade"))
            }
            _ => false,
        }
}

/// Asks the other server for the protocol. `None`: it does not change it, or speaks TLS, or the
/// protocol is HTTP once more; then the request is one like others. One of HTTP/2 cannot be: its
/// client waits for a tunnel, and sends no end.
pub(super) fn pass_on(
    url: &Uri,
    request: &Request,
    mut headers: HeaderMap,
    timeout: Duration,
) -> Option<Response> {
    let is_http2 = request.version == Version::HTTP_2;
    let refused = |status| is_http2.then(|| Response::new(status));
    if url.scheme() != Some(&Scheme::HTTP) || is_http(&headers) {
        return refused(Status::NOT_IMPLEMENTED);
    }
    if is_http2 {
        headers.insert(SEC_WEBSOCKET_KEY, key());
    }
    let deadline = Instant::now() + timeout;
    match scope::with_deadline(deadline, || ask(url, request, &headers)) {
        Ok(Ok((server, mut headers, early))) => {
            if is_http2 {
                headers.remove(SEC_WEBSOCKET_ACCEPT);
            }
            let mut response = Response::upgrade("", move |client| relay(&client, &server, &early));
            response.headers = headers;
            Some(response)
        }
        Ok(Err(status)) => refused(status),
        Err(error) => {
            proxy::tell_operator(url, request, &error);
            // Of the connecting, or of all of it.
            let is_late = error.kind() == io::ErrorKind::TimedOut || thread::is_interrupt(&error);
            Some(proxy::failed(is_late))
        }
    }
}

/// Returns whether what is asked for is HTTP in another version, such as `h2c`, alone or beside
/// others. In such a tunnel a client would make requests that nobody here looks at, with whatever
/// `Forwarded` it likes.
fn is_http(headers: &HeaderMap) -> bool {
    let values = headers.get_all(UPGRADE).into_iter();
    let mut names = values.flat_map(|value| value.as_bytes().split(|&byte| b",/".contains(&byte)));
    names.any(|name| {
        let name = name.trim_ascii().to_ascii_lowercase();
        [&b"h2c"[..], b"h2", b"http", b"tls"].contains(&name.as_slice())
    })
}

/// Returns a random key, as a server of HTTP/1.1 wants one: 16 bytes in base64.
fn key() -> HeaderValue {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let half = || u128::from(RandomState::new().hash_one(0));
    let bits = half() << 64 | half();
    // Twenty-one digits of six bits, and one with the last two of the 128.
    let sixes = (0..21).map(|at| bits >> (122 - 6 * at) & 63);
    let digits = sixes.chain([(bits & 3) << 4]);
    let mut text = Vec::from_iter(digits.map(|digit| DIGITS[digit as usize]));
    text.extend_from_slice(b"==");
    HeaderValue::from_bytes(&text).expect("digits are visible ASCII")
}

/// A connection that has changed its protocol: with the header of the answer, and what has come
/// after that.
type Changed = (TcpStream, HeaderMap, Vec<u8>);

/// Asks the other server. If it does not change the protocol, returns the status of its answer.
fn ask(url: &Uri, request: &Request, headers: &HeaderMap) -> io::Result<Result<Changed, Status>> {
    let mut server = connect(url)?;
    let target = url.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut head = format!("{} {target} HTTP/1.1\r\n", request.method).into_bytes();
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    server.write_all(&head)?;
    let mut answer = Vec::new();
    loop {
        let mut piece = [0; 1024];
        let count = retry(|| server.read(&mut piece))?;
        answer.extend_from_slice(&piece[..count]);
        if let Some((status, headers, length)) = parse(&answer)? {
            let early = answer.split_off(length);
            return Ok(match status {
                Status::SWITCHING_PROTOCOLS => Ok((server, headers, early)),
                status => Err(status),
            });
        }
        if count == 0 || answer.len() > MAX_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

fn connect(url: &Uri) -> io::Result<TcpStream> {
    let host = url.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut last = io::ErrorKind::AddrNotAvailable.into();
    for address in (host, url.port_u16().unwrap_or(80)).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(server) => {
                server.set_nodelay(true)?;
                return Ok(server);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Returns the status, the fields and the length of an answer's head, once all of it has come.
fn parse(bytes: &[u8]) -> io::Result<Option<(Status, HeaderMap, usize)>> {
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(length) = head.parse(bytes).map_err(invalid)? else {
        return Ok(None);
    };
    let mut headers = HeaderMap::new();
    for field in head.headers.iter() {
        let name = HeaderName::try_from(field.name);
        let value = HeaderValue::from_bytes(field.value);
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    let status = Status::from_u16(head.code.unwrap_or_default());
    let status = status.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(Some((status, headers, length)))
}

/// Passes bytes on in both directions, until both have ended, or the client is gone.
fn relay(client: &Upgraded, server: &TcpStream, early: &[u8]) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut from, mut to) = (server, client);
            let _ = to
                .write_all(early)
                .and_then(|()| io::copy(&mut from, &mut to));
            client.shutdown(Shutdown::Write);
        });
        // On the connection's own thread, whose wait ends when the server is shut down.
        let (mut from, mut to) = (client, server);
        let how = match io::copy(&mut from, &mut to) {
            Ok(_) => Shutdown::Write,
            Err(_) => Shutdown::Both,
        };
        let _ = server.shutdown(how); // It may be gone.
    });
}

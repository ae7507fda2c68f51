//! Reading a request: its head, within bounds of size and time. Bodies are refused.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::response::Status;

/// The maximum length of a request head.
const MAX_HEAD: usize = 8 * 1024;
/// The maximum number of headers. Browsers send some 15.
const MAX_HEADERS: usize = 48;
/// How long a client has to send the head.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the console needs of a request.
#[derive(Debug, Default, PartialEq)]
pub struct Request {
    pub method: String,
    /// The target up to the question mark, as it was sent.
    pub path: String,
    pub query: Query,
    pub host: String,
    pub origin: Option<String>,
    /// What the browser says about who asks (`Sec-Fetch-Site`) and for what (`Sec-Fetch-Mode`).
    pub fetch_site: Option<String>,
    pub fetch_mode: Option<String>,
}

/// Why there is no request.
#[derive(Debug)]
pub enum NoRequest {
    /// The client is to be told this.
    Refused(Status),
    /// The client is gone, or too slow.
    Gone,
}

/// Reads the head of a request.
pub fn read(stream: &mut TcpStream) -> Result<Request, NoRequest> {
    let deadline = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let mut chunk = [0; 2048];
    loop {
        if let Some(request) = Request::parse(&bytes).map_err(NoRequest::Refused)? {
            return Ok(request);
        }
        if bytes.len() >= MAX_HEAD {
            return Err(NoRequest::Refused(Status::HeadTooLarge));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(NoRequest::Gone);
        }
        let room = chunk.len().min(MAX_HEAD - bytes.len());
        match stream.read(&mut chunk[..room]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return Err(NoRequest::Gone),
            Ok(length) => bytes.extend_from_slice(&chunk[..length]),
        }
    }
}

impl Request {
    /// Parses a request head: `None` while it is incomplete, or why it is refused.
    pub fn parse(bytes: &[u8]) -> Result<Option<Request>, Status> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        match head.parse(bytes) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(Status::HeadTooLarge),
            Err(_) => return Err(Status::BadRequest),
        }
        let target = head.path.unwrap_or("");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Request {
            method: head.method.unwrap_or("").into(),
            path: path.into(),
            query: Query::parse(query).ok_or(Status::BadRequest)?,
            ..Request::default()
        };
        let mut host = None;
        for header in head.headers {
            let value = String::from_utf8(header.value.trim_ascii().to_vec());
            let value = value.map_err(|_| Status::BadRequest);
            let place = match &*header.name.to_ascii_lowercase() {
                "host" => &mut host,
                "origin" => &mut request.origin,
                "sec-fetch-site" => &mut request.fetch_site,
                "sec-fetch-mode" => &mut request.fetch_mode,
                "transfer-encoding" => return Err(Status::BadRequest),
                "content-length" if value.as_deref() != Ok("0") => return Err(Status::BadRequest),
                _ => continue,
            };
            // Of two, the browser and the console might believe different ones.
            if place.replace(value?).is_some() {
                return Err(Status::BadRequest);
            }
        }
        request.host = host.ok_or(Status::BadRequest)?;
        Ok(Some(request))
    }
}

/// The part of a target after the question mark.
#[derive(Debug, Default, PartialEq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    fn parse(text: &str) -> Option<Query> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(key)?, decode(value)?))
        });
        pairs.collect::<Option<_>>().map(Query)
    }

    /// Returns the value of a key, or an empty text.
    pub fn text(&self, key: &str) -> &str {
        let pair = self.0.iter().find(|(name, _)| name == key);
        pair.map_or("", |(_, value)| value)
    }

    /// Returns the number that is the value of a key.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.text(key).parse().ok()
    }
}

/// Decodes `%41` and `+`.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;

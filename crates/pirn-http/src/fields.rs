//! The head of a request.
//!
//! A map of its fields takes nearly as long to make as all else that a server does for a small
//! request, and most handlers look at one field or none. So the fields of HTTP/1.1 stay the bytes
//! that have come, which were checked when the head was parsed, and the map is made when it is
//! first asked for. In HTTP/2 there is a map from the beginning.

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, MAX_FORWARDS, MaxSizeReached,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
#[cfg(feature = "http2")]
use http::request::Parts;
use http::{Extensions, Method, Uri, Version};
use std::cell::OnceCell;
use std::fmt;

/// The map of more fields than this is made at once, so that a head that does not fit is refused. A
/// map has room for some 24,000 fields, and a map whose names collide doubles its size up to twice
/// too early.
const MANY: usize = 6 * 1024;

/// The longest name that a field can have.
pub(crate) const LONGEST_NAME: usize = (1 << 16) - 1;

/// Fields that mean something before the body only: framing, routing, how the body is read, who
/// asks (RFC 9110, section 6.5.1). They are left out.
pub(crate) const NO_TRAILERS: [HeaderName; 14] = [
    AUTHORIZATION,
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    COOKIE,
    HOST,
    MAX_FORWARDS,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    PROXY_AUTHORIZATION,
];

/// Removes fields of these names.
#[cfg(feature = "http2")]
pub(crate) fn remove_all(names: &[HeaderName], fields: &mut HeaderMap) {
    for name in names {
        fields.remove(name);
    }
}

/// What comes before the body.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) version: Version,
    pub(crate) extensions: Extensions,
    pub(crate) fields: LazyFields,
}

#[cfg(feature = "http2")]
impl From<Parts> for Head {
    fn from(parts: Parts) -> Head {
        Head {
            method: parts.method,
            uri: parts.uri,
            version: parts.version,
            extensions: parts.extensions,
            fields: LazyFields::of_map(parts.headers),
        }
    }
}

/// The header fields.
pub(crate) struct LazyFields {
    /// A head of HTTP/1.1.
    head: Bytes,
    /// How many fields it has.
    count: usize,
    /// In a box: most requests have no map, and requests are moved about.
    fields: OnceCell<Box<HeaderMap>>,
}

impl LazyFields {
    /// Returns the fields of a head that has `count` of them, and is still to be set.
    pub(crate) fn counted(count: usize) -> LazyFields {
        LazyFields {
            head: Bytes::new(),
            count,
            fields: OnceCell::new(),
        }
    }

    /// Sets the head, which has been checked.
    ///
    /// # Errors
    /// If no map has room for all the fields.
    pub(crate) fn set_head(&mut self, head: Bytes) -> Result<(), MaxSizeReached> {
        self.head = head;
        if self.count > MANY {
            self.fields = OnceCell::from(self.try_make()?);
        }
        Ok(())
    }

    /// Returns the fields of a map.
    #[cfg(feature = "http2")]
    pub(crate) fn of_map(headers: HeaderMap) -> LazyFields {
        LazyFields {
            head: Bytes::new(),
            count: 0,
            fields: OnceCell::from(Box::new(headers)),
        }
    }

    pub(crate) fn get(&self) -> &HeaderMap {
        self.fields.get_or_init(|| self.make())
    }

    pub(crate) fn get_mut(&mut self) -> &mut HeaderMap {
        self.get();
        self.fields.get_mut().expect("it is set")
    }

    #[cold]
    fn make(&self) -> Box<HeaderMap> {
        let made = self.try_make();
        made.expect("there is room for so few")
    }

    fn try_make(&self) -> Result<Box<HeaderMap>, MaxSizeReached> {
        let mut headers = HeaderMap::try_with_capacity(self.count)?;
        for (name, value) in lines(&self.head) {
            let checked = "it was checked when the head was parsed";
            let name = HeaderName::from_bytes(name).expect(checked);
            let value = HeaderValue::from_maybe_shared(self.head.slice_ref(value)).expect(checked);
            headers.try_append(name, value)?;
        }
        Ok(Box::new(headers))
    }

    /// Returns the value of the first field of this name, which may be in any case.
    pub(crate) fn first(&self, name: &str) -> Option<&[u8]> {
        match self.fields.get() {
            Some(fields) => fields.get(name).map(HeaderValue::as_bytes),
            None => lines(&self.head)
                .find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
                .map(|(_, value)| value),
        }
    }

    /// Returns the values of all fields of this name, which may be in any case.
    #[cfg(any(feature = "files", feature = "json", test))]
    pub(crate) fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f [u8]> {
        let made = self.fields.get();
        let in_map = made.map(|fields| fields.get_all(name).into_iter());
        let in_head = made.is_none().then(|| lines(&self.head));
        let in_head = in_head.into_iter().flatten();
        let in_head = in_head.filter(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
        let in_map = in_map.into_iter().flatten().map(HeaderValue::as_bytes);
        in_map.chain(in_head.map(|(_, value)| value))
    }

    #[cfg(test)]
    pub(crate) fn has_map(&self) -> bool {
        self.fields.get().is_some()
    }
}

impl fmt::Debug for LazyFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Returns the names and values of the fields of a head that has been checked: after its first line
/// there are lines `name: value CR LF`, and an empty one at the end.
fn lines(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let start = memchr::memchr(b'\n', head).map_or(head.len(), |end| end + 1);
    let mut rest = &head[start..];
    std::iter::from_fn(move || {
        let (name, after) = rest.split_at(memchr::memchr(b':', rest)?);
        let (value, next) = after.split_at(memchr::memchr(b'\n', after)? + 1);
        rest = next;
        Some((name, value[1..].trim_ascii()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"GET /a:b HTTP/1.1\r\nHost: a:80\r\nx: 1\r\nX:\t2 \r\nempty:\r\n\r\n";

    fn fields(head: &'static [u8]) -> LazyFields {
        let mut fields = LazyFields::counted(4);
        fields.set_head(Bytes::from_static(head)).unwrap();
        fields
    }

    #[test]
    fn the_map_has_what_the_lines_have() {
        let (fields, made) = (fields(HEAD), fields(HEAD));
        made.get();
        for name in ["host", "HOST", "x", "empty", "none", "GET /a"] {
            assert_eq!(fields.first(name), made.first(name), "{name}");
            let [lines, map] = [&fields, &made].map(|fields| Vec::from_iter(fields.all(name)));
            assert_eq!(lines, map, "{name}");
        }
        assert_eq!(Vec::from_iter(fields.all("X")), [b"1", b"2"]);
        assert!(!fields.has_map());
        let map = fields.get();
        assert_eq!(map.len(), 4);
        assert_eq!(map["host"], "a:80");
        assert_eq!(Vec::from_iter(map.get_all("x")), ["1", "2"]);
        assert_eq!(map["empty"], "");
    }

    #[test]
    fn a_change_is_seen_by_whoever_looks_then() {
        let mut fields = fields(HEAD);
        let headers = fields.get_mut();
        headers.insert("x", HeaderValue::from_static("3"));
        headers.remove("host");
        assert_eq!(fields.first("X"), Some(&b"3"[..]));
        assert_eq!(fields.first("host"), None);
        assert_eq!(fields.get().len(), 2);
    }

    #[test]
    fn a_head_may_have_no_fields() {
        let fields = fields(b"GET / HTTP/1.0\r\n\r\n");
        assert_eq!(fields.first("host"), None);
        assert!(fields.get().is_empty());
    }

    #[test]
    fn middleware_that_looks_at_one_field_makes_no_map() {
        use crate::{Cors, Request, Server};
        let server = Server::new()
            .get("/", |request: &mut Request| request.has_map().to_string())
            .with(Cors::origins(["https://app.example"]));
        #[cfg(feature = "gzip")]
        let server = server.with(crate::Compression::new());
        let fields = [
            ("origin", "https://app.example"),
            ("accept-encoding", "gzip"),
        ];
        let answer = server
            .client()
            .request(http::Method::GET, "/", &fields, b"");
        assert_eq!(answer.text(), "false");
        assert_eq!(answer.headers["access-control-allow-origin"], fields[0].1);
    }
}

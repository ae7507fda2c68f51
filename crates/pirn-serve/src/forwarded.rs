//! The fields that name a request's client to the other server: `Forwarded` (RFC 7239), and the
//! older `X-Forwarded-For`, `-Host` and `-Proto`.
//!
//! Values that a client sends in these fields are removed: a server behind would take them for
//! true. Only a proxy that the operator trusts is believed, in the three older fields, which nearly
//! every proxy sets. Its `Forwarded` is not: most proxies pass that on as clients have sent it. It
//! is made anew, of the older fields.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use pirn_http::header::{FORWARDED, HOST};
use pirn_http::{HeaderMap, HeaderName, HeaderValue, Request};

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const BY_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The proxies before this one whose fields are believed.
#[derive(Clone, Debug)]
pub(super) enum Trusted {
    Addresses(IpNet),
    /// Clients that connect by a Unix socket.
    UnixSockets,
}

impl Trusted {
    /// Parses an address, a network such as `10.0.0.0/8`, or `unix`.
    pub(super) fn parse(text: &str) -> Result<Trusted, String> {
        if text == "unix" {
            return Ok(Trusted::UnixSockets);
        }
        let one = text.parse::<IpAddr>().map(IpNet::from);
        let network = one.or_else(|_| text.parse::<IpNet>());
        network.map(Trusted::Addresses).map_err(|_| {
            "it is not an address, a network such as 10.0.0.0/8, or \"unix\"".to_owned()
        })
    }

    fn includes(&self, peer: Option<IpAddr>) -> bool {
        match (self, peer) {
            (Trusted::Addresses(network), Some(peer)) => network.contains(&peer),
            (Trusted::UnixSockets, None) => true,
            _ => false,
        }
    }
}

/// Sets the fields that name the sender of a request.
pub(super) fn tell(headers: &mut HeaderMap, request: &Request, trusted: &[Trusted]) {
    let peer = request.peer().map(address);
    let is_trusted = trusted.iter().any(|trusted| trusted.includes(peer));
    tell_of(headers, peer, request.is_secure(), is_trusted);
}

/// Returns the address of a client; an IPv4 address on an IPv6 socket becomes plain IPv4.
fn address(peer: SocketAddr) -> IpAddr {
    peer.ip().to_canonical()
}

fn tell_of(headers: &mut HeaderMap, peer: Option<IpAddr>, is_secure: bool, is_trusted: bool) {
    let before = match is_trusted {
        true => Before::of(headers),
        false => Before::default(),
    };
    remove_claims(headers);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.map(str::to_owned);
    let proto = if is_secure { "https" } else { "http" };
    let seen = peer.map(|peer| peer.to_string());

    let mut elements = Vec::new();
    for (number, address) in before.addresses.iter().enumerate() {
        let (host, proto) = match number {
            0 => (before.host.as_deref(), before.proto.as_deref()),
            _ => (None, None),
        };
        elements.push(element(address, host, proto));
    }
    let own = seen.as_deref().unwrap_or("unknown");
    elements.push(element(own, host.as_deref(), Some(proto)));
    let addresses = Vec::from_iter(
        before
            .addresses
            .iter()
            .map(String::as_str)
            .chain(seen.as_deref()),
    );
    set(headers, FORWARDED, &elements.join(", "));
    set(headers, FOR, &addresses.join(", "));
    set(
        headers,
        BY_HOST,
        before.host.or(host).as_deref().unwrap_or(""),
    );
    set(headers, PROTO, before.proto.as_deref().unwrap_or(proto));
}

/// Sets a field, unless its value is empty.
fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // What is not ASCII has been left out before.
    if let (false, Ok(value)) = (value.is_empty(), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
}

/// What a trusted proxy says of those before it.
#[derive(Default)]
struct Before {
    addresses: Vec<String>,
    host: Option<String>,
    proto: Option<String>,
}

impl Before {
    fn of(headers: &HeaderMap) -> Before {
        let items = |name: HeaderName| {
            let values = headers.get_all(name).into_iter();
            let texts = values.filter_map(|value| value.to_str().ok());
            let items = texts.flat_map(|text| text.split(',')).map(str::trim);
            Vec::from_iter(items.filter(|item| !item.is_empty()).map(str::to_owned))
        };
        Before {
            addresses: items(FOR),
            host: items(BY_HOST).into_iter().next(),
            proto: items(PROTO).into_iter().next(),
        }
    }
}

/// Removes what a client says about itself, whatever a server behind may read it by: programs that
/// get fields as variables do not tell `_` from `-`.
fn remove_claims(headers: &mut HeaderMap) {
    let is_claim = |name: &HeaderName| {
        let name = name.as_str().replace('_', "-");
        name == "forwarded" || name == "x-real-ip" || name.starts_with("x-forwarded-")
    };
    let claims = Vec::from_iter(headers.keys().filter(|name| is_claim(name)).cloned());
    for name in claims {
        headers.remove(name);
    }
}

/// Returns an element of `Forwarded`: RFC 7239, section 4.
fn element(address: &str, host: Option<&str>, proto: Option<&str>) -> String {
    let mut element = format!("for={}", value(&node(address)));
    for (name, text) in [("host", host), ("proto", proto)] {
        if let Some(text) = text {
            element += &format!(";{name}={}", value(text));
        }
    }
    element
}

/// Returns a name of RFC 7239, section 6, for an item of `X-Forwarded-For`.
fn node(item: &str) -> String {
    if let Ok(IpAddr::V6(address)) = item.parse() {
        return format!("[{address}]");
    }
    let is_address = item.parse::<IpAddr>().is_ok() || item.parse::<SocketAddr>().is_ok();
    let is_hidden = item.strip_prefix('_').is_some_and(|name| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !name.is_empty() && name.chars().all(plain)
    });
    match is_address || is_hidden {
        true => item.to_owned(),
        false => "unknown".to_owned(),
    }
}

/// Returns a text as it is, if it is a token, and in quotes otherwise (RFC 9110, section 5.6).
fn value(text: &str) -> String {
    let of_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if !text.is_empty() && text.chars().all(of_token) {
        return text.to_owned();
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests;

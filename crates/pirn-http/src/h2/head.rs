//! Heads of requests and of answers, between h2's form and the one that handlers see.

use crate::admission;
use crate::date;
use crate::fields::remove_all;
use crate::limits::HeadLimits;
use crate::refusal::Refusal;
use crate::response::Response;
use ::h2::ext::Protocol;
use http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, DATE, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::uri::Authority;
use http::{Method, StatusCode, Uri};

/// Fields that belong to a connection of HTTP/1.1, or are the server's: RFC 9113, section 8.2.2.
pub(super) static LEFT_OUT: [HeaderName; 7] = [
    CONNECTION,
    TRANSFER_ENCODING,
    UPGRADE,
    TE,
    CONTENT_LENGTH,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Gives a request the form that it has in HTTP/1.1: a target without authority, `Host`, one
/// `Cookie`; `GET` and `Upgrade` for another protocol (RFC 8441). h2 has checked the rest.
///
/// # Errors
/// If it is not clear whom the request is for, or it has too many fields.
pub(super) fn adapt(parts: &mut Parts, limits: &HeadLimits) -> Result<(), Refusal> {
    if parts.headers.len() > limits.fields {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(Refusal::new(status, admission::TOO_MANY));
    }
    admission::expects_continue(parts.headers.get(EXPECT).map(HeaderValue::as_bytes))?;
    set_host(&mut parts.headers, parts.uri.authority())?;
    join_cookies(&mut parts.headers);
    // What would be two bodies to another program.
    if parts.headers.get_all(CONTENT_LENGTH).iter().count() > 1 {
        return Err(Refusal::bad("more than one Content-Length"));
    }
    if let Some(protocol) = parts.extensions.get::<Protocol>() {
        // Handlers see what they would in HTTP/1.1. A client of HTTP/2 cannot send this field.
        let value = HeaderValue::from_str(protocol.as_str());
        let value = value.map_err(|_| Refusal::bad("invalid :protocol"))?;
        parts.headers.insert(UPGRADE, value);
        parts.method = Method::GET;
    }
    if parts.method != Method::CONNECT {
        let bad = Refusal::bad("invalid request target");
        let target = parts.uri.path_and_query().cloned().ok_or(bad)?;
        let uri = Uri::from(target.clone());
        let is_http = matches!(parts.uri.scheme_str(), None | Some("http" | "https"));
        if !is_http || !admission::is_target(&parts.method, &uri, target.as_str()) {
            return Err(bad);
        }
        parts.uri = uri;
    }
    Ok(())
}

/// RFC 9113, section 8.3.1.
fn set_host(headers: &mut HeaderMap, authority: Option<&Authority>) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(HOST).iter().map(HeaderValue::as_bytes);
    let (first, more) = (hosts.next(), hosts.count());
    let count = usize::from(first.is_some()) + more;
    admission::check_host(first, count, authority)?;
    match (first, authority) {
        (None, None) => Err(Refusal::bad("the Host header is missing")),
        (Some(b""), None) => Err(Refusal::bad("invalid Host header")),
        (Some(_), _) => Ok(()), // The same, if there are both.
        (None, Some(given)) => {
            let value = HeaderValue::from_str(given.as_str()).ok();
            let value = value.filter(|_| admission::is_host_and_port(given));
            headers.insert(HOST, value.ok_or(Refusal::bad("invalid Host header"))?);
            Ok(())
        }
    }
}

/// Joins the fields that a client has split a cookie's header into: RFC 9113, section 8.2.3.
fn join_cookies(headers: &mut HeaderMap) {
    let cookies = Vec::from_iter(headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes));
    if cookies.len() > 1 {
        // Parts that are values, joined by what may be in values, are a value.
        let joined = HeaderValue::from_bytes(&cookies.join(&b"; "[..]));
        if let Ok(joined) = joined {
            headers.insert(COOKIE, joined);
        }
    }
}

/// Returns the head of an answer, with the length that its body is announced to have.
pub(super) fn answer(response: &Response, length: Option<u64>) -> http::Response<()> {
    let mut head = http::Response::new(());
    *head.status_mut() = response.status;
    let headers = head.headers_mut();
    headers.reserve(response.headers.len() + 2);
    headers.extend(response.headers.clone());
    remove_all(&LEFT_OUT, headers);
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    if !headers.contains_key(DATE)
        && let Ok(now) = HeaderValue::from_bytes(&date::now())
    {
        headers.insert(DATE, now);
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits {
        bytes: 8192,
        fields: 4,
    };

    fn adapted(uri: &str, fields: &[(&str, &str)]) -> Result<Parts, Refusal> {
        let mut request = http::Request::get(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        adapt(&mut parts, &LIMITS).map(|()| parts)
    }

    #[test]
    fn a_request_has_the_form_of_http_1() {
        let cookies = [("cookie", "a=1"), ("cookie", "b=2; c=3")];
        let parts = adapted("https://a.example:8443/x?y=1", &cookies).unwrap();
        assert_eq!(parts.uri, "/x?y=1");
        assert_eq!(parts.headers[HOST], "a.example:8443");
        assert_eq!(parts.headers[COOKIE], "a=1; b=2; c=3");
        assert_eq!(parts.headers.get_all(COOKIE).iter().count(), 1);
    }

    #[test]
    fn it_is_clear_whom_a_request_is_for() {
        let why = |uri, fields: &[_]| adapted(uri, fields).unwrap_err().why;
        adapted("http://a/", &[("host", "a")]).unwrap();
        assert_eq!(
            why("http://a/", &[("host", "b")]),
            "Host and target disagree"
        );
        assert_eq!(why("/", &[]), "the Host header is missing");
        assert_eq!(why("/", &[("host", "")]), "invalid Host header");
        assert_eq!(why("http://a@b/", &[]), "invalid Host header");
        for wrong in ["a:x", "a:+80", "a:65536"] {
            assert_eq!(
                why("/", &[("host", wrong)]),
                "invalid Host header",
                "{wrong}"
            );
        }
        assert_eq!(
            why("/", &[("host", "a"), ("host", "a")]),
            "more than one Host"
        );
        assert_eq!(why("*", &[("host", "a")]), "invalid request target");
        assert_eq!(why("ftp://a/", &[]), "invalid request target");
        assert_eq!(
            why("http://a/", &[("expect", "x")]),
            "an unknown expectation"
        );
        assert_eq!(why("http://a/\\b", &[]), "invalid request target");
        let lengths = [("content-length", "1"), ("content-length", "2")];
        assert_eq!(why("http://a/", &lengths), "more than one Content-Length");
        let many = [("a", "b"); 5];
        assert_eq!(
            adapted("http://a/", &many).unwrap_err().status,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        );
    }

    #[test]
    fn an_answer_has_no_fields_of_a_connection() {
        let mut response = Response::ok().text("abc");
        for name in LEFT_OUT.iter().chain([&DATE]) {
            response.headers.insert(name, HeaderValue::from_static("9"));
        }
        let head = answer(&response, Some(3));
        let names = Vec::from_iter(head.headers().keys().map(HeaderName::as_str));
        assert_eq!(names, ["content-type", "date", "content-length"]);
        assert_eq!(head.headers()[CONTENT_LENGTH], "3");
        assert!(answer(&Response::ok(), None).headers().contains_key(DATE));
    }
}

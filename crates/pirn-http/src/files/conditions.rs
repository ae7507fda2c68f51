//! Conditional requests: RFC 9110, section 13.

use http::header::{
    HeaderMap, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE,
};
use http::{Method, StatusCode};
use std::time::{Duration, SystemTime};

/// What tells one version of a resource from another.
#[derive(Clone, Debug)]
pub(crate) struct Validators {
    /// With its quotes, and `W/` if it is weak.
    pub(crate) etag: String,
    /// In whole seconds.
    pub(crate) modified: Option<SystemTime>,
}

impl Validators {
    /// Returns what a request is answered with instead of the resource, in the order of section
    /// 13.2.2. `None`: its conditions hold.
    pub(crate) fn refuse(&self, method: &Method, headers: &HeaderMap) -> Option<StatusCode> {
        let is_read = *method == Method::GET || *method == Method::HEAD;
        if headers.contains_key(IF_MATCH) {
            if !self.is_listed(headers, IF_MATCH, strong) {
                return Some(StatusCode::PRECONDITION_FAILED);
            }
        } else if let (Some(limit), Some(modified)) =
            (date(headers, IF_UNMODIFIED_SINCE), self.modified)
            && modified > limit
        {
            return Some(StatusCode::PRECONDITION_FAILED);
        }
        if headers.contains_key(IF_NONE_MATCH) {
            if self.is_listed(headers, IF_NONE_MATCH, weak) {
                return Some(match is_read {
                    true => StatusCode::NOT_MODIFIED,
                    false => StatusCode::PRECONDITION_FAILED,
                });
            }
        } else if let (true, Some(since), Some(modified)) =
            (is_read, date(headers, IF_MODIFIED_SINCE), self.modified)
            && modified <= since
        {
            return Some(StatusCode::NOT_MODIFIED);
        }
        None
    }

    /// Returns whether the client's part, if it has one, is of this version, so that it may get the
    /// rest: section 13.1.5.
    pub(crate) fn allow_range(&self, headers: &HeaderMap, now: SystemTime) -> bool {
        let Some(value) = headers.get(IF_RANGE) else {
            return true;
        };
        let Ok(value) = value.to_str() else {
            return false;
        };
        match httpdate::parse_http_date(value) {
            // A file may change twice within a second. Its date tells the versions apart if that
            // second is over (section 8.8.2.2).
            Ok(date) => self
                .modified
                .is_some_and(|modified| modified == date && date + Duration::from_secs(1) < now),
            Err(_) => strong(value.trim(), &self.etag),
        }
    }

    fn is_listed(
        &self,
        headers: &HeaderMap,
        name: HeaderName,
        same: fn(&str, &str) -> bool,
    ) -> bool {
        headers.get_all(name).iter().any(|value| {
            let text = value.to_str().unwrap_or_default();
            text.trim() == "*" || tags(text).any(|tag| same(tag, &self.etag))
        })
    }
}

fn strong(one: &str, other: &str) -> bool {
    one == other && !one.starts_with("W/")
}

fn weak(one: &str, other: &str) -> bool {
    let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    opaque(one) == opaque(other)
}

/// Returns the entity tags of a list. They may have commas, so the quotes count.
fn tags(mut rest: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let prefix = if rest.starts_with("W/") { 2 } else { 0 };
        let inside = rest[prefix..].strip_prefix('"')?;
        let end = prefix + 1 + inside.find('"')? + 1;
        let (tag, after) = rest.split_at(end);
        rest = after;
        Some(tag)
    })
}

/// Returns the date of a field; a malformed one counts as missing (section 13.1.3).
fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    const DAY: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

    fn validators(etag: &str) -> Validators {
        let modified = Some(UNIX_EPOCH + Duration::from_secs(784_111_777));
        let etag = etag.to_owned();
        Validators { etag, modified }
    }

    fn status(etag: &str, method: Method, fields: &[(&str, &str)]) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        validators(etag)
            .refuse(&method, &headers)
            .map_or(200, |status| status.as_u16())
    }

    #[test]
    fn conditions_are_looked_at_in_the_order_of_the_standard() {
        for (etag, fields, expected) in [
            ("\"a\"", &[("if-match", "\"b\", \"a\"")][..], 200),
            ("\"a\"", &[("if-match", "*")], 200),
            ("\"a\"", &[("if-match", "\"b\"")], 412),
            ("W/\"a\"", &[("if-match", "W/\"a\"")], 412),
            (
                "\"a\"",
                &[("if-match", "\"a\""), ("if-unmodified-since", BEFORE)],
                200,
            ),
            ("\"a\"", &[("if-unmodified-since", BEFORE)], 412),
            ("\"a\"", &[("if-unmodified-since", DAY)], 200),
            ("\"a\"", &[("if-unmodified-since", "yesterday")], 200),
            ("W/\"a\"", &[("if-none-match", "\"a\"")], 304),
            ("\"a\"", &[("if-none-match", "\"b\", W/\"a\"")], 304),
            ("\"a,b\"", &[("if-none-match", "\"x,y\",\"a,b\"")], 304),
            (
                "\"a\"",
                &[("if-none-match", "\"x\""), ("if-none-match", "\"a\"")],
                304,
            ),
            ("\"a\"", &[("if-none-match", "*")], 304),
            (
                "\"a\"",
                &[("if-none-match", "\"b\""), ("if-modified-since", LATER)],
                200,
            ),
            ("\"a\"", &[("if-none-match", "\"unclosed")], 200),
            ("\"a\"", &[("if-modified-since", DAY)], 304),
            ("\"a\"", &[("if-modified-since", BEFORE)], 200),
            (
                "\"a\"",
                &[("if-match", "\"b\""), ("if-none-match", "\"a\"")],
                412,
            ),
        ] {
            assert_eq!(
                status(etag, Method::GET, fields),
                expected,
                "{etag} {fields:?}"
            );
        }
        assert_eq!(status("\"a\"", Method::PUT, &[("if-none-match", "*")]), 412);
        assert_eq!(
            status("\"a\"", Method::PUT, &[("if-modified-since", DAY)]),
            200
        );
    }

    #[test]
    fn a_range_is_served_if_the_client_has_a_part_of_this_version() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777 + 60);
        let allow = |etag: &str, value: &'static str, now| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_RANGE, http::HeaderValue::from_static(value));
            validators(etag).allow_range(&headers, now)
        };
        assert!(validators("\"a\"").allow_range(&HeaderMap::new(), now));
        assert!(allow("\"a\"", "\"a\"", now));
        assert!(!allow("\"a\"", "\"b\"", now));
        assert!(
            !allow("W/\"a\"", "W/\"a\"", now),
            "a weak tag says nothing about bytes"
        );
        assert!(allow("W/\"a\"", DAY, now));
        assert!(!allow("W/\"a\"", LATER, now));
        assert!(
            !allow("W/\"a\"", DAY, now - Duration::from_secs(60)),
            "it may still change"
        );
    }
}

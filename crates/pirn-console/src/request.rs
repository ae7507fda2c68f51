//! What the console needs of a request.

use pirn_http::Request;
use pirn_http::header::{HOST, HeaderName, ORIGIN};

/// The parts of a request by which the console decides.
#[derive(Debug, Default, PartialEq)]
pub struct Asked {
    pub method: String,
    /// The target up to the question mark, as it was sent.
    pub path: String,
    pub host: String,
    pub origin: Option<String>,
    /// What the browser says about who asks (`Sec-Fetch-Site`) and for what (`Sec-Fetch-Mode`).
    pub fetch_site: Option<String>,
    pub fetch_mode: Option<String>,
}

impl Asked {
    /// Returns what a request asks for; `None` if it has a body, or says something twice: the
    /// browser and the console might believe different ones.
    pub fn of(request: &Request) -> Option<Asked> {
        let once = |name: HeaderName| {
            let mut values = request.headers().get_all(name).iter();
            let value = values.next().map(|value| value.to_str().ok());
            match (value, values.next()) {
                (_, Some(_)) | (Some(None), _) => None,
                (value, None) => Some(value.flatten().map(str::to_owned)),
            }
        };
        if request.body_left() != Some(0) {
            return None;
        }
        Some(Asked {
            method: request.method.to_string(),
            path: request.uri.path().into(),
            host: once(HOST)??,
            origin: once(ORIGIN)?,
            fetch_site: once(HeaderName::from_static("sec-fetch-site"))?,
            fetch_mode: once(HeaderName::from_static("sec-fetch-mode"))?,
        })
    }
}

/// The part of a target after the question mark.
#[derive(Debug)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Returns the query of a request.
    pub fn of(request: &Request) -> Query {
        Query(request.query().collect())
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

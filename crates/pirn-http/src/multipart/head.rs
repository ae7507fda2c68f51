//! The header fields of a part.

use crate::media_type::MediaType;
use crate::refusal::Refusal;
use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, HeaderMap, HeaderName, HeaderValue};

/// More header fields than this are not expected.
const FIELDS: usize = 16;

#[derive(Debug)]
pub(super) struct Head {
    pub(super) name: String,
    pub(super) file_name: Option<String>,
    pub(super) headers: HeaderMap,
}

pub(super) fn too_large() -> Refusal {
    Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "the headers of a form part are too large",
    )
}

impl Head {
    /// Parses fields, and the empty line after them.
    pub(super) fn parse(bytes: &[u8]) -> Result<Head, Refusal> {
        // httparse takes a lone line feed for a line end.
        let is_lone = |at: usize| at == 0 || bytes[at - 1] != b'\r';
        if memchr::memchr_iter(b'\n', bytes).any(is_lone) {
            return Err(Refusal::bad(
                "a bare line feed in the headers of a form part",
            ));
        }
        let mut room = [httparse::EMPTY_HEADER; FIELDS];
        let fields = match httparse::parse_headers(bytes, &mut room) {
            Ok(httparse::Status::Complete((length, fields))) if length == bytes.len() => fields,
            Err(httparse::Error::TooManyHeaders) => return Err(too_large()),
            _ => return Err(Refusal::bad("malformed headers of a form part")),
        };
        let mut headers = HeaderMap::new();
        for field in fields {
            let bad = Refusal::bad("malformed header of a form part");
            let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| bad)?;
            let value = HeaderValue::from_bytes(field.value).map_err(|_| bad)?;
            headers.append(name, value);
        }
        let (name, file_name) = names(&headers)?;
        Ok(Head {
            name,
            file_name,
            headers,
        })
    }
}

/// Returns the names of the field and of the file.
fn names(headers: &HeaderMap) -> Result<(String, Option<String>), Refusal> {
    let mut values = headers.get_all(CONTENT_DISPOSITION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Refusal::bad(
            "a form part must have exactly one Content-Disposition",
        ));
    };
    let text = str::from_utf8(value.as_bytes());
    let text = text.map_err(|_| Refusal::bad("the name of a form part is not UTF-8"))?;
    let disposition = MediaType::parse(text).filter(|value| value.is("form-data"));
    let name = disposition
        .as_ref()
        .and_then(|value| value.parameter("name"));
    match (&disposition, name) {
        (Some(disposition), Some(name)) => {
            let file_name = disposition.parameter("filename").map(unescaped);
            Ok((unescaped(name), file_name))
        }
        _ => Err(Refusal::bad("a form part has no name")),
    }
}

/// Undoes what browsers do to quotes and line ends, and to nothing else: the HTML standard's
/// encoding of `multipart/form-data`.
fn unescaped(text: &str) -> String {
    text.replace("%22", "\"")
        .replace("%0D", "\r")
        .replace("%0A", "\n")
}

//! The texts of errors, as JSON for clients that accept it: RFC 9457.

use crate::fields::LazyFields;
use crate::media_type::MediaType;
use crate::response::{Kind, Response};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use serde_json::json;

/// Makes a problem of the text of an error, if the client accepts that.
pub(crate) fn negotiate(asked: &LazyFields, response: &mut Response) {
    if !std::mem::take(&mut response.is_problem) || !accepts_json(asked) {
        return;
    }
    let Kind::Bytes(text) = &response.body.0 else {
        return;
    };
    let title = response.status.canonical_reason().unwrap_or("Error");
    let text = str::from_utf8(text).unwrap_or_default();
    // Its type is `about:blank`, which is left out: the status says all.
    let mut problem = json!({ "status": response.status.as_u16(), "title": title });
    if text != title {
        problem["detail"] = text.into();
    }
    let media_type = HeaderValue::from_static("application/problem+json");
    response.headers.insert(CONTENT_TYPE, media_type);
    response.body = problem.to_string().into();
}

/// Returns whether a client asks for JSON. One that accepts everything, as curl does, gets text.
fn accepts_json(asked: &LazyFields) -> bool {
    let fields = asked.all(ACCEPT.as_str());
    let ranges = fields.flat_map(|value| str::from_utf8(value).unwrap_or_default().split(','));
    let mut ranges = ranges.filter_map(MediaType::parse);
    ranges.any(|range| range.is_json() && !range.parameter("q").is_some_and(is_zero))
}

fn is_zero(quality: &str) -> bool {
    quality.parse::<f32>() == Ok(0.0)
}

#[cfg(test)]
mod tests {
    use crate::{Error, Request, Server, Status};
    use http::Method;

    #[test]
    fn clients_that_ask_for_json_get_errors_as_json() {
        let client = Server::new()
            .post("/", |request: &mut Request| {
                request.json::<u8>().map(|n| n.to_string())
            })
            .get("/gone", || Err::<(), _>(Error::from(Status::GONE)))
            .get("/own", || (Status::CONFLICT, "a text of my own"))
            .client();
        let ask = |method: Method, target: &str, accept: &str, body: &str| {
            let answer = client.request(method, target, &[("accept", accept)], body.as_bytes());
            let media_type = answer.headers["content-type"].to_str().unwrap().to_owned();
            (media_type, answer.text())
        };
        let problem = |text: &str| ("application/problem+json".to_owned(), text.to_owned());
        let text = |text: &str| ("text/plain; charset=utf-8".to_owned(), text.to_owned());
        let why = "invalid JSON body: expected value at line 1 column 1";
        let unfit = format!(r#"{{"detail":"{why}","status":400,"title":"Bad Request"}}"#);
        let unfit = problem(&unfit);
        for accept in [
            "application/json",
            "application/problem+json",
            "text/html, application/json;q=0.5",
        ] {
            assert_eq!(ask(Method::POST, "/", accept, "x"), unfit, "{accept}");
        }
        for accept in ["*/*", "text/html", "application/json;q=0", "nonsense"] {
            assert_eq!(ask(Method::POST, "/", accept, "x"), text(why), "{accept}");
        }
        let json = "application/json";
        let missing = problem(r#"{"status":404,"title":"Not Found"}"#);
        assert_eq!(ask(Method::GET, "/nowhere", json, ""), missing);
        let gone = problem(r#"{"status":410,"title":"Gone"}"#);
        assert_eq!(ask(Method::GET, "/gone", json, ""), gone);
        assert_eq!(ask(Method::GET, "/own", json, ""), text("a text of my own"));
    }
}

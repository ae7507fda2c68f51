//! Which handler serves a request.

use crate::request::Request;
use crate::response::{IntoResponse, Response};
use crate::server::shared::Handler;
use http::header::{ALLOW, HeaderValue};
use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// The parts of a path that a route has named.
#[derive(Default, Debug)]
pub(crate) struct Captured(Vec<(String, Result<String, StatusCode>)>);

impl Captured {
    pub(crate) fn get(&self, name: &str) -> Result<&str, StatusCode> {
        match self.0.iter().find(|(key, _)| key == name) {
            Some((_, Ok(value))) => Ok(value),
            Some((_, Err(status))) => Err(*status),
            None => Err(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

type Shared = Arc<Handler>;

/// The handlers of one path, by method.
#[derive(Default)]
struct Methods(Vec<(Option<Method>, Shared)>);

impl Methods {
    /// Returns the handler of a method. The handler of `GET` serves `HEAD` too, without the body;
    /// the handler of all methods serves those that have none of their own.
    fn find(&self, method: &Method) -> Option<&Shared> {
        let of = |wanted: Option<&Method>| {
            let mut entries = self.0.iter();
            entries.find(|(method, _)| method.as_ref() == wanted)
        };
        let of_get = || (*method == Method::HEAD).then(|| of(Some(&Method::GET)))?;
        let found = of(Some(method)).or_else(of_get).or_else(|| of(None));
        found.map(|(_, handler)| handler)
    }

    /// Returns the value of `Allow`.
    fn allowed(&self) -> HeaderValue {
        let mut names = Vec::from_iter(self.0.iter().flat_map(|(method, _)| method.as_ref()));
        if names.contains(&&Method::GET) && !names.contains(&&Method::HEAD) {
            names.push(&Method::HEAD);
        }
        let names = Vec::from_iter(names.into_iter().map(Method::as_str));
        // A method is a token, which a value may have.
        HeaderValue::try_from(names.join(", ")).unwrap_or(HeaderValue::from_static(""))
    }
}

/// All routes.
#[derive(Default)]
pub(crate) struct Router {
    paths: Vec<(Arc<str>, Methods)>,
    by_path: matchit::Router<usize>,
}

impl Router {
    /// Adds a handler. `None`: of all methods that have none.
    ///
    /// # Panics
    /// If the path is none, contradicts another, or has a handler of this method already.
    pub(crate) fn add(&mut self, method: Option<Method>, path: &str, handler: Shared) {
        let index = match self.paths.iter().position(|(known, _)| **known == *path) {
            Some(index) => index,
            None => {
                let index = self.paths.len();
                if let Err(error) = self.by_path.insert(path, index) {
                    panic!("the route {path}: {error}");
                }
                self.paths.push((path.into(), Methods::default()));
                index
            }
        };
        let methods = &mut self.paths[index].1.0;
        assert!(
            !methods.iter().any(|(known, _)| *known == method),
            "the route {path} has a handler of this method already"
        );
        methods.push((method, handler));
    }

    /// Returns the paths of all routes.
    pub(crate) fn paths(&self) -> Box<[Arc<str>]> {
        self.paths
            .iter()
            .map(|(path, _)| Arc::clone(path))
            .collect()
    }

    /// Handles a request.
    pub(crate) fn handle(&self, request: &mut Request) -> Response {
        let Ok(found) = self.by_path.at(request.uri.path()) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let (_, methods) = &self.paths[*found.value];
        let Some(handler) = methods.find(&request.method) else {
            let mut response = StatusCode::METHOD_NOT_ALLOWED.into_response();
            response.headers.insert(ALLOW, methods.allowed());
            request.route = Some(*found.value);
            return response;
        };
        let decode = |value: &str| match percent_decode_str(value).decode_utf8() {
            Ok(text) => Ok(text.into_owned()),
            Err(_) => Err(StatusCode::BAD_REQUEST),
        };
        let captured = found
            .params
            .iter()
            .map(|(name, value)| (name.to_owned(), decode(value)));
        let captured = Captured(captured.collect());
        request.captured = captured;
        request.route = Some(*found.value);
        handler(request)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Request, Server};
    use http::Method;

    #[test]
    fn head_is_served_by_get_before_what_serves_all_methods() {
        let name = |name: &'static str| move |_: &mut Request| name;
        let seen = |server: Server, method: Method| {
            let answer = server.client().request(method, "/", &[], b"");
            answer.headers["content-length"]
                .to_str()
                .unwrap()
                .to_owned()
        };
        let both = || Server::new().any("/", name("any")).get("/", name("of get"));
        assert_eq!(seen(both(), Method::HEAD), "6");
        assert_eq!(seen(both(), Method::GET), "6");
        assert_eq!(seen(both(), Method::PUT), "3");
        let own = both().route(Method::HEAD, "/", name("its"));
        assert_eq!(seen(own, Method::HEAD), "3");
    }
}

//! Cookies.

use crate::request::Request;
use crate::response::Response;
pub use cookie::{Cookie, SameSite};
use http::header::{COOKIE, HeaderValue, SET_COOKIE};

impl Request {
    /// Returns the cookies of the request, with percent signs decoded. What is no cookie is left
    /// out.
    pub fn cookies(&self) -> impl Iterator<Item = Cookie<'_>> {
        let fields = self.headers().get_all(COOKIE).iter();
        let texts = fields.filter_map(|value| value.to_str().ok());
        texts.flat_map(|text| Cookie::split_parse_encoded(text).flatten())
    }

    /// Returns the value of the first cookie of this name, without the quotes around it, if there
    /// are any.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Method, Request, Server};
    /// let server = Server::new().get("/", |request: &mut Request| request.cookie("user"));
    /// let fields = [("cookie", "theme=dark; user=J%C3%B6rg")];
    /// let answer = server.client().request(Method::GET, "/", &fields, b"");
    /// assert_eq!(answer.text(), "Jörg");
    /// ```
    pub fn cookie(&self, name: &str) -> Option<String> {
        let found = self.cookies().find(|cookie| cookie.name() == name);
        found.map(|cookie| cookie.value_trimmed().to_owned())
    }
}

impl Response {
    /// Sets a cookie. Its name and value are percent-encoded, so that they may be any text. If the
    /// path or the domain has control characters or a semicolon, which would end it, the response
    /// becomes a 500 as by [`header`](Self::header).
    ///
    /// To remove one, set it with the same path and domain, an empty value, and
    /// [`make_removal`](Cookie::make_removal).
    ///
    /// # Examples
    /// ```
    /// use pirn_http::cookies::{Cookie, SameSite};
    /// use pirn_http::{Request, Response, Server};
    /// let server = Server::new().get("/", || {
    ///     let session = Cookie::build(("session", "a;b"))
    ///         .path("/")
    ///         .http_only(true)
    ///         .secure(true)
    ///         .same_site(SameSite::Lax);
    ///     Response::ok().cookie(session)
    /// });
    /// let answer = server.client().get("/");
    /// assert_eq!(
    ///     answer.headers["set-cookie"],
    ///     "session=a%3Bb; HttpOnly; SameSite=Lax; Secure; Path=/"
    /// );
    /// ```
    #[must_use]
    pub fn cookie<'c>(mut self, cookie: impl Into<Cookie<'c>>) -> Response {
        let cookie = cookie.into();
        let mut scope = [cookie.path(), cookie.domain()].into_iter().flatten();
        let ends = |text: &str| text.contains(|c: char| c.is_ascii_control() || c == ';');
        match HeaderValue::try_from(cookie.encoded().to_string()) {
            Ok(value) if !scope.any(ends) => drop(self.headers.append(SET_COOKIE, value)),
            _ => self.spoil("no cookie has such a path or domain".into()),
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;
    use http::Method;

    #[test]
    fn cookies_of_several_fields_are_read_and_what_is_none_is_left_out() {
        let server = Server::new().get("/", |request: &mut Request| {
            let all = request.cookies().map(|cookie| format!("<{cookie}>"));
            String::from_iter(all)
        });
        let fields = [("cookie", "a=1; ; nonsense; b=\"2\""), ("cookie", "a=3")];
        let answer = server.client().request(Method::GET, "/", &fields, b"");
        assert_eq!(answer.text(), "<a=1><b=\"2\"><a=3>");
    }

    #[test]
    fn each_cookie_is_a_field_and_no_text_leaves_it() {
        let server = Server::new().get("/", || {
            Response::ok()
                .cookie(("a", "1\r\nset-cookie: evil=1"))
                .cookie(("b", "ä, \";"))
        });
        let answer = server.client().get("/");
        let all = Vec::from_iter(answer.headers.get_all("set-cookie"));
        assert_eq!(
            all,
            ["a=1%0D%0Aset-cookie%3A%20evil%3D1", "b=%C3%A4%2C%20%22%3B"]
        );
    }
}

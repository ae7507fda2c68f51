//! Forms and queries as values.

use crate::media_type::MediaType;
use crate::refusal::{Refusal, Unfit};
use crate::request::Request;
use http::StatusCode;
use serde::de::DeserializeOwned;
use std::io;

impl Request {
    /// Returns the query as a value, with a field for each name.
    ///
    /// # Errors
    /// 400 if the query does not fit: a field is missing, or is not of its type.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Server, Status};
    /// #[derive(serde::Deserialize)]
    /// struct Page {
    ///     number: u32,
    ///     size: Option<u32>,
    /// }
    /// let server = Server::new().get("/", |request: &mut Request| -> std::io::Result<String> {
    ///     let page: Page = request.query_as()?;
    ///     Ok(format!("{} of {}", page.number, page.size.unwrap_or(10)))
    /// });
    /// let client = server.client();
    /// assert_eq!(client.get("/?number=3").text(), "3 of 10");
    /// assert_eq!(client.get("/?number=three").status, Status::BAD_REQUEST);
    /// ```
    pub fn query_as<T: DeserializeOwned>(&self) -> io::Result<T> {
        let query = self.uri.query().unwrap_or_default();
        let what = "invalid query";
        serde_urlencoded::from_str(query).map_err(|error| Unfit::of(what, &error))
    }

    /// Returns the body, a form (`application/x-www-form-urlencoded`), as a value.
    ///
    /// # Errors
    /// 415 if the body is no form, 400 if a field is missing or is not of its type, and what
    /// reading the body fails with.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Method, Request, Server};
    /// #[derive(serde::Deserialize)]
    /// struct Login {
    ///     user: String,
    /// }
    /// let server = Server::new().post("/", |request: &mut Request| -> std::io::Result<String> {
    ///     Ok(request.form::<Login>()?.user)
    /// });
    /// let fields = [("content-type", "application/x-www-form-urlencoded")];
    /// let answer = server.client().request(Method::POST, "/", &fields, b"user=J%C3%B6rg+B");
    /// assert_eq!(answer.text(), "Jörg B");
    /// ```
    pub fn form<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let is_form = MediaType::of(self.headers())
            .is_some_and(|media_type| media_type.is("application/x-www-form-urlencoded"));
        if !is_form {
            let why = "the body is not application/x-www-form-urlencoded";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why).into());
        }
        let bytes = self.bytes()?;
        let what = "invalid form";
        serde_urlencoded::from_bytes(&bytes).map_err(|error| Unfit::of(what, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;
    use http::Method;

    #[test]
    fn what_is_no_form_is_refused() {
        let server = Server::new().post("/", |request: &mut Request| -> io::Result<String> {
            let (number,): (u8,) = request
                .form::<Vec<(String, u8)>>()?
                .first()
                .map_or((0,), |x| (x.1,));
            Ok(number.to_string())
        });
        let client = server.client();
        let post = |media_type: &str, body: &str| {
            let fields = [("content-type", media_type)];
            let answer = client.request(Method::POST, "/", &fields, body.as_bytes());
            (answer.status.as_u16(), answer.text())
        };
        let form = "Application/X-WWW-Form-Urlencoded ; charset=utf-8";
        assert_eq!(post(form, "n=7"), (200, "7".to_owned()));
        assert_eq!(post(form, "n=700").0, 400);
        assert_eq!(post("text/plain", "n=7").0, 415);
        assert_eq!(client.post("/", "n=7").status, 415);
    }
}

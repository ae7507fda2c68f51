//! Who may ask: a client that knows the token, from a page of this console or by hand.
//!
//! The token is in the path, so that the page's own scripts, its stream and its links have it
//! without saying it. The rest is against other pages in the same browser. A name that another
//! site has made lead to this machine (DNS rebinding) is not one of the `Host`s; what that page's
//! scripts send has its `Origin`, and the browser says who asks in `Sec-Fetch-Site`.

use std::net::SocketAddr;

use pirn_http::Status;

use crate::request::Asked;
use crate::token::Token;

/// See the module's documentation.
pub struct Guard {
    token: Token,
    /// What `Host` may be.
    hosts: [String; 2],
}

impl Guard {
    pub fn new(token: Token, address: SocketAddr) -> Guard {
        let by_name = format!("localhost:{}", address.port());
        Guard {
            token,
            hosts: [address.to_string(), by_name],
        }
    }

    /// Returns the path behind the token, or why the request is refused.
    pub fn check<'a>(&self, request: &'a Asked) -> Result<&'a str, Status> {
        if !self.hosts.contains(&request.host) {
            return Err(Status::FORBIDDEN);
        }
        let own_origin = |origin: &str| origin.strip_prefix("http://") == Some(&request.host);
        if !request.origin.as_deref().is_none_or(own_origin) {
            return Err(Status::FORBIDDEN);
        }
        let (token, path) = request
            .path
            .strip_prefix('/')
            .and_then(|path| path.split_once('/'))
            .ok_or(Status::FORBIDDEN)?;
        if !self.token.is(token) {
            return Err(Status::FORBIDDEN);
        }
        // The page itself may be opened by a link, or by a file.
        let opens_page = path.is_empty() && request.fetch_mode.as_deref() == Some("navigate");
        match request.fetch_site.as_deref() {
            None | Some("same-origin" | "none") => {}
            Some(_) if opens_page => {}
            Some(_) => return Err(Status::FORBIDDEN),
        }
        match &*request.method {
            "GET" => Ok(path),
            _ => Err(Status::METHOD_NOT_ALLOWED),
        }
    }
}

#[cfg(test)]
mod tests;

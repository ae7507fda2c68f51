//! Passing requests on to another server, by `ureq`: a client that blocks, and so parks.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use pirn::thread;
use pirn_http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, MAX_FORWARDS, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};
use pirn_http::http::uri::{Authority, PathAndQuery, Scheme};
use pirn_http::http::{self, Version};
use pirn_http::{
    Body, HeaderMap, HeaderName, HeaderValue, IntoResponse, Method, Request, Response, Status, Uri,
};
use ureq::config::AutoHeaderValue;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, DefaultConnector};
use ureq::{Agent, SendBody};

use super::attempt::{self, Attempt};
use super::forwarded::{self, Trusted};
use super::{framing, upgrade};
use crate::retry::retry;

/// How many connections to the other server are kept while they are not used.
const KEPT: usize = 256;
/// How long it may take to connect.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// The maximum length of the head of an answer.
pub(super) const MAX_HEAD: usize = 64 * 1024;
/// How many bytes of an answer are passed on at once.
const PIECE: usize = 32 * 1024;

/// Fields that are about one connection: RFC 9110, section 7.6.1, and what is older than it.
static OF_A_CONNECTION: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("http2-settings"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Another server, that requests are passed on to.
#[derive(Clone)]
pub(super) struct Proxy {
    agent: Agent,
    target: Uri,
    settings: Arc<Settings>,
}

/// What the operator decides.
pub(super) struct Settings {
    /// How long the other server may take to begin its answer, to go on with it, or to take more of
    /// a request.
    pub(super) timeout: Duration,
    /// Fields that are put in place of the client's.
    pub(super) fields: Vec<(HeaderName, HeaderValue)>,
    /// The proxies before this one that are believed.
    pub(super) trusted: Vec<Trusted>,
}

impl Proxy {
    /// Returns one that passes requests on to this address.
    pub(super) fn new(target: &Uri, settings: Settings) -> Result<Proxy, String> {
        let is_http = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&target.scheme());
        if !is_http || target.authority().is_none() || target.query().is_some() {
            return Err(format!(
                "--proxy takes an address such as http://127.0.0.1:3000 or https://host/path, not \
                 '{target}'"
            ));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(AutoHeaderValue::None)
            .accept(AutoHeaderValue::None)
            .accept_encoding(AutoHeaderValue::None)
            .proxy(None)
            .max_idle_connections(KEPT)
            .max_idle_connections_per_host(KEPT)
            .max_response_header_size(MAX_HEAD)
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(settings.timeout))
            // A server that takes no more of a body, or sends no more of one, is given up as well.
            .timeout_per_write(Some(settings.timeout))
            .timeout_per_read(Some(settings.timeout))
            .build();
        let connector = DefaultConnector::default().chain(attempt::Watching);
        Ok(Proxy {
            agent: Agent::with_parts(config, connector, DefaultResolver::default()),
            target: target.clone(),
            settings: Arc::new(settings),
        })
    }

    /// Returns the answer of the other server, or passes it on as it comes.
    pub(super) fn pass_on(&self, request: &mut Request) -> Response {
        match self.try_to(request) {
            Ok(response) => response,
            // What the client has done wrong, if it was that.
            Err(error) => error.into_response(),
        }
    }

    fn try_to(&self, request: &mut Request) -> io::Result<Response> {
        let Some(url) = self.url(&request.uri) else {
            return Ok(Status::BAD_REQUEST.into_response());
        };
        if let Some(response) = for_this_server(request) {
            return Ok(response);
        }
        if upgrade::is_asked_for(request)
            && let Some(response) = upgrade::pass_on(
                &url,
                request,
                self.header(request, true),
                self.settings.timeout,
            )
        {
            return Ok(response);
        }
        let answer = match self.ask(request, &url) {
            Err(error) => return incomplete(request, error),
            Ok(answer) => answer,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                tell_operator(&url, request, &error);
                return Ok(failed(matches!(error, ureq::Error::Timeout(_))));
            }
        };
        match framing::length(answer.status(), answer.headers()) {
            Ok(length) => give(request, answer, length, &url),
            Err(why) => {
                tell_operator(&url, request, &why);
                Ok(failed(false))
            }
        }
    }

    /// Returns the address of what is asked for at the other server. `None`: there is none, or it
    /// may not be beneath the path that the operator has given.
    fn url(&self, asked: &Uri) -> Option<Uri> {
        let above = self.target.path().trim_end_matches('/');
        if !above.is_empty() && leads_up(asked.path()) {
            return None;
        }
        let asked = asked.path_and_query().map_or("/", PathAndQuery::as_str);
        let mut parts = self.target.clone().into_parts();
        parts.path_and_query = Some(format!("{above}{asked}").try_into().ok()?);
        Uri::from_parts(parts).ok()
    }

    /// Returns the header of a request that is passed on.
    fn header(&self, request: &Request, upgrades: bool) -> HeaderMap {
        let mut headers = passed_on(request, upgrades);
        forwarded::tell(&mut headers, request, &self.settings.trusted);
        for (name, value) in &self.settings.fields {
            headers.insert(name, value.clone());
        }
        headers
    }

    /// Asks the other server.
    ///
    /// # Errors
    /// If the request's body cannot be read.
    fn ask(&self, request: &mut Request, url: &Uri) -> io::Result<Asked> {
        let mut head = http::Request::new(());
        *head.method_mut() = request.method.clone();
        *head.uri_mut() = url.clone();
        *head.headers_mut() = self.header(request, false);
        let (head, ()) = head.into_parts();
        let has_body = request.body_left() != Some(0);
        let mut body = ByClient {
            request,
            is_begun: false,
            error: None,
        };
        let mut may_repeat = head.method.is_idempotent();
        loop {
            let head = head.clone();
            let (answer, attempt) = match has_body {
                true => self.send(head, SendBody::from_reader(&mut body)),
                false => self.send(head, SendBody::none()),
            };
            if let Some(error) = body.error {
                return Err(error);
            }
            match answer {
                // The connection was closed while it was not used: the request has most likely not
                // been seen, and if it has, seeing it twice does no harm.
                Err(ureq::Error::Io(error))
                    if may_repeat
                        && attempt == Attempt::OnKept
                        && !body.is_begun
                        && !thread::is_interrupt(&error) =>
                {
                    may_repeat = false;
                }
                answer => return Ok(answer),
            }
        }
    }

    /// Sends a request. Returns the answer, and how far the request has come.
    fn send(&self, head: http::request::Parts, body: SendBody) -> (Asked, Attempt) {
        attempt::watch(|| self.agent.run(http::Request::from_parts(head, body)))
    }
}

/// Answers a request that is not to be passed on: RFC 9110, sections 7.6.2 and 9.3.8.
///
/// `TRACE` shows what the other server gets, fields that the operator has added as well.
fn for_this_server(request: &mut Request) -> Option<Response> {
    if request.method == Method::TRACE {
        return Some(Status::NOT_IMPLEMENTED.into_response());
    }
    if request.method != Method::OPTIONS {
        return None;
    }
    let left = request.header(MAX_FORWARDS)?.parse::<u64>().ok()?;
    let Some(left) = left.checked_sub(1) else {
        return Some(Response::ok());
    };
    request.headers.insert(MAX_FORWARDS, left.into());
    None
}

/// Answers a request whose body cannot be read to its end.
fn incomplete(request: &Request, error: io::Error) -> io::Result<Response> {
    if request.is_client_gone() || !request.is_upload_late() {
        return Err(error); // It says what the client has done wrong.
    }
    let why = "the request took longer than --upload-timeout allows";
    let peer = request.peer().map(|peer| format!(" of {peer}"));
    // If standard error is gone, nothing can be done.
    let _ = writeln!(io::stderr(), "pirn: {why}: one{}", peer.unwrap_or_default());
    Ok(Response::new(Status::REQUEST_TIMEOUT).text(why))
}

/// Returns whether another server might take a part of this path for the folder above: in any
/// spelling, and with what follows a semicolon, which some servers leave out.
fn leads_up(path: &str) -> bool {
    let decoded = path.to_ascii_lowercase().replace("%2e", ".");
    let decoded = decoded.replace("%2f", "/").replace("%5c", "/");
    decoded
        .replace("%3b", ";")
        .split('/')
        .any(|part| part.split(';').next() == Some(".."))
}

/// Says on standard error why another server gives no answer, if its client still waits for one.
pub(super) fn tell_operator(url: &Uri, request: &Request, error: &dyn fmt::Display) {
    if request.is_client_gone() {
        return;
    }
    let server = url.authority().map_or("", Authority::as_str);
    // If even that is gone, nothing can be done.
    let _ = writeln!(io::stderr(), "pirn: no whole answer from {server}: {error}");
}

/// Returns the answer in place of that of another server.
pub(super) fn failed(is_late: bool) -> Response {
    let (status, why) = match is_late {
        true => (
            Status::GATEWAY_TIMEOUT,
            "the server behind this one takes too long",
        ),
        false => (
            Status::BAD_GATEWAY,
            "the server behind this one cannot be reached",
        ),
    };
    Response::new(status).text(why)
}

type Asked = Result<http::Response<ureq::Body>, ureq::Error>;

/// Returns the fields of a request that are passed on.
fn passed_on(request: &Request, upgrades: bool) -> HeaderMap {
    let mut headers = request.headers.clone();
    let upgrade = headers.get(UPGRADE).cloned().filter(|_| upgrades);
    remove_those_of_a_connection(&mut headers);
    headers.remove(EXPECT); // The client is told to go on when its body is read.
    if let Some(upgrade) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, upgrade);
    }
    match request.body_left() {
        Some(0) if request.method == Method::GET || request.method == Method::HEAD => {
            headers.remove(CONTENT_LENGTH);
        }
        Some(length) => drop(headers.insert(CONTENT_LENGTH, length.into())),
        None => drop(headers.remove(CONTENT_LENGTH)),
    }
    let name = match request.version {
        Version::HTTP_2 => "2 pirn",
        Version::HTTP_10 => "1.0 pirn",
        _ => "1.1 pirn",
    };
    headers.append(VIA, HeaderValue::from_static(name));
    headers
}

/// Returns the options of `Connection`.
pub(super) fn connection_options(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let values = headers.get_all(CONNECTION).into_iter();
    let options = values.flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    options.map(<[u8]>::trim_ascii)
}

/// Removes the fields that are about one connection, and those that `Connection` says are: but
/// `Host`, without which the other server would not know whom the request is for.
fn remove_those_of_a_connection(headers: &mut HeaderMap) {
    let named = connection_options(headers).filter_map(|name| HeaderName::from_bytes(name).ok());
    let named = Vec::from_iter(named.filter(|name| *name != HOST));
    for name in OF_A_CONNECTION.iter().chain(&named) {
        headers.remove(name);
    }
}

/// Passes an answer on as it comes. `length`: as it has announced.
fn give(
    request: &mut Request,
    answer: http::Response<ureq::Body>,
    length: Option<u64>,
    url: &Uri,
) -> io::Result<Response> {
    let (head, body) = answer.into_parts();
    let mut response = Response::new(head.status);
    response.headers = head.headers;
    remove_those_of_a_connection(&mut response.headers);
    if length == Some(0) || [Status::NO_CONTENT, Status::NOT_MODIFIED].contains(&head.status) {
        return Ok(response);
    }
    if let Some(length) = length {
        response.body = Body::from_sized_reader(io::empty(), length); // It announces the length.
    }
    let is_head = request.method == Method::HEAD;
    let mut to = request.respond(response)?;
    if is_head {
        return Ok(().into_response());
    }
    let mut from = body.into_reader();
    let mut piece = vec![0; PIECE];
    let error = loop {
        match retry(|| from.read(&mut piece)) {
            Ok(0) => return Ok(().into_response()),
            Ok(count) => to.write_all(&piece[..count])?,
            Err(error) => break error,
        }
        to.flush()?; // More may come only after the client has seen this.
    };
    tell_operator(url, request, &error);
    Err(error) // The client sees that something is missing.
}

/// The body that a client sends. What fails there is no failure of the other server.
struct ByClient<'r> {
    request: &'r mut Request,
    /// Some of it may have been read.
    is_begun: bool,
    error: Option<io::Error>,
}

impl Read for ByClient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_begun = true;
        self.request.read(buffer).map_err(|error| {
            self.error = Some(error);
            io::ErrorKind::Other.into()
        })
    }
}

//! Passing requests on to another server, and its answers to the clients.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pirn::{scope, thread};
use pirn_http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, MAX_FORWARDS, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, SEC_WEBSOCKET_KEY, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};
use pirn_http::http::Version;
use pirn_http::http::uri::PathAndQuery;
use pirn_http::{
    HeaderMap, HeaderName, HeaderValue, IntoResponse, Method, Request, Responder, Response, Status,
    Uri,
};

use crate::answer::{Body, Head, Incoming};
use crate::descriptors;
use crate::forwarded::{self, Trusted};
use crate::origin::{Connection, Origin};
use crate::sending::{self, Answered};
use crate::upgrade;

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
pub(super) struct Proxy(Arc<Inner>);

struct Inner {
    origin: Origin,
    /// The path of its address, without a slash at its end.
    above: String,
    settings: Settings,
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

/// Why the client has no whole answer of the other server.
pub(super) enum Failure {
    /// The body of the request cannot be read.
    OfClient(io::Error),
    Unreachable(io::Error),
    /// It has taken the request, or some of it.
    NoAnswer(io::Error),
    /// It has, but the client takes no more of its answer.
    NotTaken(io::Error),
}

impl Proxy {
    /// Returns one that passes requests on to this address.
    pub(super) fn new(target: &Uri, mut settings: Settings) -> Result<Proxy, String> {
        let origin = Origin::new(target, settings.timeout);
        let origin = origin.filter(|_| target.query().is_none());
        let origin = origin.ok_or_else(|| {
            format!(
                "--proxy takes an address such as http://127.0.0.1:3000 or https://host/path, not \
                 '{target}'"
            )
        })?;
        if let Some(credentials) = origin.credentials() {
            let value = format!("Basic {}", upgrade::base64(credentials.as_bytes()));
            let value = HeaderValue::try_from(value).map_err(|error| error.to_string())?;
            settings.fields.insert(0, (AUTHORIZATION, value));
        }
        Ok(Proxy(Arc::new(Inner {
            origin,
            above: target.path().trim_end_matches('/').to_owned(),
            settings,
        })))
    }

    /// Returns the answer of the other server, or passes it on as it comes.
    pub(super) fn pass_on(&self, request: &mut Request) -> Response {
        match self.try_to(request) {
            Ok(response) => response,
            // If the client has made an error, the response names it.
            Err(error) => error.into_response(),
        }
    }

    fn try_to(&self, request: &mut Request) -> io::Result<Response> {
        let Some(target) = self.target(&request.uri) else {
            return Ok(Status::BAD_REQUEST.into_response());
        };
        if let Some(response) = for_this_server(request) {
            return Ok(response);
        }
        let upgrades = upgrade::is_asked_for(request);
        if !upgrades && upgrade::is_tunnel(request) {
            return Ok(Status::NOT_IMPLEMENTED.into_response());
        }
        // Until the answer has been passed on.
        let Some(permit) = descriptors::wait() else {
            return Ok(descriptors::refusal());
        };
        let head = self.head(request, &target, upgrades);
        let given = match self.ask(request, &head, upgrades) {
            Ok((Answered::Head(head, _), way)) if upgrades && is_switch(&head) => {
                return Ok(upgrade::pass_on(request, head.headers, way, permit));
            }
            Ok((answered, way)) => self.give(request, answered, way),
            Err(failure) => Err(failure),
        };
        match given {
            Ok(response) => Ok(response),
            Err(Failure::NotTaken(error)) => Err(error),
            Err(Failure::OfClient(error)) => incomplete(request, error),
            Err(Failure::Unreachable(error)) => {
                let status = status_of(&error);
                Ok(self.failed(request, &error, status, "cannot be reached"))
            }
            // Of an answer that has begun, the client sees that something is missing.
            Err(Failure::NoAnswer(error)) => {
                let what = match error.kind() {
                    io::ErrorKind::InvalidData => "sends something that is not an HTTP answer",
                    _ => "has closed the connection without an answer",
                };
                Ok(self.failed(request, &error, status_of(&error), what))
            }
        }
    }

    /// Returns the target to ask the other server for. `None`: it may lead out of the path that the
    /// operator has given.
    fn target(&self, asked: &Uri) -> Option<String> {
        let above = &self.0.above;
        if !above.is_empty() && leads_up(asked.path()) {
            return None;
        }
        let asked = asked.path_and_query().map_or("/", PathAndQuery::as_str);
        // The target `http://host?query` has no path.
        let slash = if asked.starts_with('/') { "" } else { "/" };
        Some(format!("{above}{slash}{asked}"))
    }

    /// Returns the head of a request that is passed on.
    fn head(&self, request: &Request, target: &str, upgrades: bool) -> Vec<u8> {
        let mut headers = passed_on(request, upgrades);
        forwarded::tell(&mut headers, request, &self.0.settings.trusted);
        for (name, value) in &self.0.settings.fields {
            headers.insert(name, value.clone());
        }
        if !headers.contains_key(HOST)
            && let Ok(host) = HeaderValue::from_str(self.0.origin.name())
        {
            headers.insert(HOST, host);
        }
        let mut head = format!("{} {target} HTTP/1.1\r\n", request.method).into_bytes();
        for (name, value) in &headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    /// Asks the other server. Returns its answer, and its connection with what has come on it.
    ///
    /// A connection that was kept may be closed by the other server while a request is on its way
    /// to it. Then the request has probably not been handled; if not a byte of an answer came, it
    /// is sent again on a new one, unless handling it twice would do harm (RFC 9112, section
    /// 9.3.1).
    fn ask(
        &self,
        request: &mut Request,
        head: &[u8],
        upgrades: bool,
    ) -> Result<(Answered, Way), Failure> {
        let origin = &self.0.origin;
        let has_body = !upgrades && request.body_left() != Some(0);
        if let Some(connection) = origin.kept() {
            let mut incoming = Incoming::default();
            let asked = self.ask_on(request, (&connection, &mut incoming), head, has_body);
            match asked {
                Err(Failure::NoAnswer(error))
                    if request.method.is_idempotent()
                        && !has_body
                        && !incoming.has_come
                        && !is_late(&error) => {}
                asked => return asked.map(|answered| (answered, (connection, incoming))),
            }
        }
        let connection = origin.connect().map_err(Failure::Unreachable)?;
        let mut incoming = Incoming::default();
        let answered = self.ask_on(request, (&connection, &mut incoming), head, has_body)?;
        Ok((answered, (connection, incoming)))
    }

    /// Sends a request, and waits for the head of its answer.
    fn ask_on(
        &self,
        request: &mut Request,
        (mut connection, incoming): (&Connection, &mut Incoming),
        head: &[u8],
        has_body: bool,
    ) -> Result<Answered, Failure> {
        connection.write_all(head).map_err(Failure::NoAnswer)?;
        if has_body {
            let method = request.method.clone();
            let pass = |head, incoming: &mut Incoming, responder: Responder<'_>| {
                give_early(head, connection, incoming, responder, &method)
            };
            if let Some(answered) = sending::send_body(request, connection, incoming, pass)? {
                return Ok(answered);
            }
        }
        let deadline = Instant::now() + self.0.settings.timeout;
        let head = scope::with_deadline(deadline, || incoming.head(connection));
        head.map(|head| Answered::Head(head, true))
            .map_err(Failure::NoAnswer)
    }

    /// Passes an answer on as it comes, and keeps the connection if it can be used again.
    fn give(
        &self,
        request: &mut Request,
        answered: Answered,
        (connection, mut incoming): Way,
    ) -> Result<Response, Failure> {
        let (response, is_clean) = match answered {
            Answered::PassedOn(is_clean) => (().into_response(), is_clean),
            Answered::Head(head, is_sent) => {
                let mut body = Body::new(&head, &connection, &mut incoming, &request.method)
                    .map_err(Failure::NoAnswer)?;
                let response = give_body(request, head, &mut body)?;
                (response, is_sent && body.is_clean())
            }
        };
        if is_clean {
            self.0.origin.keep(connection);
        }
        Ok(response)
    }

    /// Says on standard error why another server gives no answer, if its client still waits for
    /// one.
    fn tell_operator(&self, request: &Request, why: &dyn fmt::Display) {
        if !request.is_client_gone() {
            let server = self.0.origin.name();
            // If even that is gone, nothing can be done.
            let _ = writeln!(
                io::stderr(),
                "pirn-serve: no whole answer from {server}: {why}"
            );
        }
    }

    /// Returns the answer in place of another server's.
    fn failed(
        &self,
        request: &Request,
        error: &dyn fmt::Display,
        status: Status,
        what: &str,
    ) -> Response {
        let is_late = status == Status::GATEWAY_TIMEOUT;
        self.tell_operator(request, if is_late { &TOO_LONG } else { error });
        let what = if is_late { "takes too long" } else { what };
        Response::new(status).text(format!("the server behind this one {what}"))
    }
}

/// A connection, with what has come on it.
type Way = (Connection, Incoming);

/// Passes on an answer that is there before the request has been sent. Returns whether the
/// connection can take another request then.
fn give_early(
    head: Head,
    connection: &Connection,
    incoming: &mut Incoming,
    responder: Responder<'_>,
    method: &Method,
) -> Result<bool, Failure> {
    let body = Body::new(&head, connection, incoming, method);
    let mut body = body.map_err(Failure::NoAnswer)?;
    let response = response_of(head, body.length);
    let mut to = responder.respond(response).map_err(Failure::NotTaken)?;
    body.pass_on(&mut to)?;
    to.end().map_err(Failure::NotTaken)?;
    Ok(body.is_clean())
}

/// Returns an answer, or passes its body on as it comes.
fn give_body(request: &mut Request, head: Head, body: &mut Body<'_>) -> Result<Response, Failure> {
    let is_head = request.method == Method::HEAD;
    let may_have_body = body.length != Some(0) && has_body(head.status);
    if body.is_over() && !(is_head && may_have_body) {
        return Ok(response_of(head, None));
    }
    let response = response_of(head, body.length);
    let mut to = request.respond(response).map_err(Failure::NotTaken)?;
    if !is_head {
        body.pass_on(&mut to)?;
    }
    Ok(().into_response())
}

/// Returns a response with this head, which announces a length.
fn response_of(head: Head, length: Option<u64>) -> Response {
    let mut response = Response::new(head.status);
    response.headers = head.headers;
    remove_those_of_a_connection(&mut response.headers);
    if let Some(length) = length {
        response.body = pirn_http::Body::from_sized_reader(io::empty(), length);
    }
    response
}

/// The proxy tells the operator this in place of the text of `EAGAIN` or `ECANCELED`.
const TOO_LONG: &str = "it takes too long";

/// Returns whether a wait has ended because its time was up.
pub(super) fn is_late(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::TimedOut, io::ErrorKind::WouldBlock];
    kinds.contains(&error.kind()) || thread::is_interrupt(error)
}

fn status_of(error: &io::Error) -> Status {
    match is_late(error) {
        true => Status::GATEWAY_TIMEOUT,
        false => Status::BAD_GATEWAY,
    }
}

fn is_switch(head: &Head) -> bool {
    head.status == Status::SWITCHING_PROTOCOLS
}

fn has_body(status: Status) -> bool {
    ![Status::NO_CONTENT, Status::NOT_MODIFIED].contains(&status)
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
    request.headers_mut().insert(MAX_FORWARDS, left.into());
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
    let _ = writeln!(
        io::stderr(),
        "pirn-serve: {why}: one{}",
        peer.unwrap_or_default()
    );
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

/// Returns the fields of a request that are passed on.
fn passed_on(request: &Request, upgrades: bool) -> HeaderMap {
    let mut headers = request.headers().clone();
    let upgrade = headers.get(UPGRADE).cloned().filter(|_| upgrades);
    remove_those_of_a_connection(&mut headers);
    headers.remove(EXPECT); // The client is told to go on when its body is read.
    headers.remove(CONTENT_LENGTH);
    if let Some(upgrade) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, upgrade);
        if request.version == Version::HTTP_2 {
            headers.insert(SEC_WEBSOCKET_KEY, upgrade::key());
        }
    }
    match request.body_left() {
        _ if upgrades => {}
        Some(0) if request.method == Method::GET || request.method == Method::HEAD => {}
        Some(length) => drop(headers.insert(CONTENT_LENGTH, length.into())),
        None => {
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
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

//! A line for each request.

use super::request_id::X_REQUEST_ID;
use super::{Observer, Outcome, Refused, parts_of};
use crate::date;
use crate::handler::{Handler, Middleware};
use crate::poison::locked;
use crate::request::Request;
use crate::response::Response;
use http::header::{HeaderName, REFERER, USER_AGENT};
use std::fmt::{self, Write as _};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How the lines of an [`AccessLog`] are written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum LogFormat {
    /// The format of NCSA's server, which most tools read.
    Common,
    /// The same with `Referer` and `User-Agent`.
    #[default]
    Combined,
    /// A JSON object for each request, with the id, the trace, the route, the duration and the
    /// [cause](Response::error) of a 500 as well.
    Json,
}

/// An access log: a middleware that writes a line for each request, when that is over.
///
/// What clients send is escaped: no line is forged, and no terminal is driven by it. The lines are
/// written under a lock, each with one call: a slow writer slows the server.
///
/// # Examples
/// ```no_run
/// use pirn_http::{Server, observe::{AccessLog, LogFormat}};
/// let log = AccessLog::new(std::io::stdout()).format(LogFormat::Json);
/// let server = Server::new().get("/", || "Hello").with(log);
/// # let _ = server;
/// ```
pub struct AccessLog<W> {
    writer: Arc<Mutex<W>>,
    format: LogFormat,
}

impl<W: Write + Send + 'static> AccessLog<W> {
    /// Returns a log that is written to `writer`, in the combined format.
    pub fn new(writer: W) -> AccessLog<W> {
        AccessLog {
            writer: Arc::new(Mutex::new(writer)),
            format: LogFormat::default(),
        }
    }

    /// Sets the format.
    #[must_use]
    pub fn format(self, format: LogFormat) -> AccessLog<W> {
        AccessLog { format, ..self }
    }
}

/// Writes a line.
fn write(writer: &Mutex<impl Write>, format: LogFormat, asked: &Asked, outcome: &Outcome) {
    let line = asked.line(format, outcome);
    // If the log cannot be written, no other place remains to say so.
    let _ = locked(writer).write_all(line.as_bytes());
}

impl<W: Write + Send + 'static> Middleware for AccessLog<W> {
    fn handle(&self, request: &mut Request, inner: &Handler) -> Response {
        let (asked, writer, format) = (Asked::of(request), Arc::clone(&self.writer), self.format);
        let observer = Observer::new(move |outcome| write(&writer, format, &asked, &outcome));
        let response = inner(request);
        observer.watch(request, response)
    }

    fn refused(&self, refused: &Refused<'_>) {
        let outcome = Outcome {
            route: None,
            status: refused.status,
            error: None,
            bytes: refused.reason.len() as u64,
            duration: Duration::ZERO,
        };
        let asked = Asked::of_refused(refused);
        write(&self.writer, self.format, &asked, &outcome);
    }
}

impl<W> fmt::Debug for AccessLog<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// What a client has asked for.
struct Asked {
    peer: Option<SocketAddr>,
    /// The first line.
    first: Vec<u8>,
    referer: Option<Vec<u8>>,
    agent: Option<Vec<u8>>,
    id: Option<Vec<u8>>,
    trace: Option<Vec<u8>>,
}

impl Asked {
    fn of(request: &Request) -> Asked {
        let field = |name: HeaderName| request.field(&name).map(<[u8]>::to_vec);
        Asked {
            peer: request.peer(),
            first: format!("{} {} {:?}", request.method, request.uri, request.version).into(),
            referer: field(REFERER),
            agent: field(USER_AGENT),
            id: field(X_REQUEST_ID),
            trace: field(HeaderName::from_static("traceparent")).and_then(|value| trace_id(&value)),
        }
    }

    fn of_refused(refused: &Refused<'_>) -> Asked {
        Asked {
            peer: refused.peer,
            first: refused.line.to_vec(),
            referer: None,
            agent: None,
            id: None,
            trace: None,
        }
    }

    fn line(&self, format: LogFormat, outcome: &Outcome) -> String {
        let mut line = String::with_capacity(256);
        // Writing to a string does not fail.
        let _ = match format {
            LogFormat::Json => self.json(&mut line, outcome),
            _ => self.text(&mut line, outcome, format == LogFormat::Combined),
        };
        line.push('\n');
        line
    }

    fn text(&self, line: &mut String, outcome: &Outcome, is_combined: bool) -> fmt::Result {
        match self.peer {
            Some(peer) => write!(line, "{}", peer.ip())?,
            None => line.push('-'),
        }
        let time = Time::of(&date::now());
        write!(line, " - - [{}] \"", time.common())?;
        let first: &[u8] = if self.first.is_empty() {
            b"-"
        } else {
            &self.first
        };
        escape(line, first, hex);
        write!(line, "\" {} ", outcome.status.as_u16())?;
        match outcome.bytes {
            0 => line.push('-'),
            bytes => write!(line, "{bytes}")?,
        }
        for value in [&self.referer, &self.agent]
            .into_iter()
            .filter(|_| is_combined)
        {
            line.push_str(" \"");
            escape(line, value.as_deref().unwrap_or(b"-"), hex);
            line.push('"');
        }
        Ok(())
    }

    fn json(&self, line: &mut String, outcome: &Outcome) -> fmt::Result {
        let time = Time::of(&date::now());
        let (method, target, version) = parts_of(&self.first);
        write!(line, "{{\"time\":\"{}\"", time.rfc_3339())?;
        let peer = self.peer.map(|peer| peer.ip().to_string().into_bytes());
        for (name, value) in [
            ("peer", peer.as_deref()),
            ("method", Some(method)),
            ("target", Some(target)),
            ("route", outcome.route.as_deref().map(str::as_bytes)),
            ("referer", self.referer.as_deref()),
            ("agent", self.agent.as_deref()),
            ("id", self.id.as_deref()),
            ("trace", self.trace.as_deref()),
            ("version", Some(version)),
            ("error", outcome.error.as_deref().map(str::as_bytes)),
        ] {
            if let Some(value) = value {
                write!(line, ",\"{name}\":\"")?;
                escape(line, value, unicode);
                line.push('"');
            }
        }
        write!(
            line,
            ",\"status\":{},\"bytes\":{},\"seconds\":{:.6}}}",
            outcome.status.as_u16(),
            outcome.bytes,
            outcome.duration.as_secs_f64()
        )
    }
}

/// Adds what clients have sent. Quotes, backslashes, and all that is not printable ASCII is written
/// in a way that the reader of the format undoes.
fn escape(line: &mut String, bytes: &[u8], other: fn(&mut String, u8) -> fmt::Result) {
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => {
                line.push('\\');
                line.push(char::from(byte));
            }
            b' '..=b'~' => line.push(char::from(byte)),
            _ => {
                let _ = other(line, byte); // Writing to a string does not fail.
            }
        }
    }
}

fn hex(line: &mut String, byte: u8) -> fmt::Result {
    write!(line, "\\x{byte:02x}")
}

/// JSON has no bytes: each is a character of Latin-1.
fn unicode(line: &mut String, byte: u8) -> fmt::Result {
    write!(line, "\\u{byte:04x}")
}

/// Returns the id in a `traceparent`: W3C Trace Context, section 3.2.
fn trace_id(value: &[u8]) -> Option<Vec<u8>> {
    let mut fields = value.split(|&byte| byte == b'-');
    let (version, id) = (fields.next()?, fields.next()?);
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_id = version.len() == 2 && id.len() == 32 && id.iter().all(is_hex);
    (is_id && id.iter().any(|&byte| byte != b'0')).then(|| id.to_vec())
}

/// A time, in the parts of `Sun, 06 Nov 1994 08:49:37 GMT`.
struct Time {
    day: String,
    month: String,
    year: String,
    clock: String,
}

impl Time {
    fn of(text: &[u8]) -> Time {
        let text = String::from_utf8_lossy(text);
        let mut parts = text.split(' ').skip(1).map(str::to_owned);
        let mut part = || parts.next().unwrap_or_default();
        Time {
            day: part(),
            month: part(),
            year: part(),
            clock: part(),
        }
    }

    fn common(&self) -> String {
        format!(
            "{}/{}/{}:{} +0000",
            self.day, self.month, self.year, self.clock
        )
    }

    fn rfc_3339(&self) -> String {
        let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
        let month = months.find(&*self.month).unwrap_or_default() / 3 + 1;
        format!("{}-{month:02}-{}T{}Z", self.year, self.day, self.clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Server, Status};
    use http::Method;
    use std::io;
    use std::sync::mpsc;

    /// A writer whose lines can be waited for.
    struct Lines(mpsc::Sender<String>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.send(String::from_utf8(bytes.to_vec()).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines(format: LogFormat) -> (crate::Client, mpsc::Receiver<String>) {
        let (send, receive) = mpsc::channel();
        let log = AccessLog::new(Lines(send)).format(format);
        let server = Server::new()
            .get("/users/{id}", || "hello")
            .get("/reader", || Body::from_reader(&b"123"[..]))
            .get("/pushed", |request: &mut Request| -> io::Result<()> {
                request
                    .respond(Response::new(Status::CREATED))?
                    .write_all(b"1234")
            })
            .get("/panic", || -> () { panic!("on purpose") })
            .with(log)
            .with(super::super::request_ids());
        (server.client(), receive)
    }

    #[test]
    fn each_request_is_a_line_however_it_is_answered() {
        let (client, lines) = lines(LogFormat::Common);
        for (path, end) in [
            ("/users/1?a=b", "\"GET /users/1?a=b HTTP/1.1\" 200 5\n"),
            ("/reader", "\"GET /reader HTTP/1.1\" 200 3\n"),
            ("/pushed", "\"GET /pushed HTTP/1.1\" 201 4\n"),
            ("/panic", "\"GET /panic HTTP/1.1\" 500 -\n"),
            ("/missing", "\"GET /missing HTTP/1.1\" 404 9\n"),
        ] {
            client.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes());
            let line = lines.recv().unwrap();
            assert!(line.starts_with("- - - [") && line.ends_with(end), "{line}");
        }
        client.request(Method::HEAD, "/users/1", &[], b"");
        assert!(
            lines
                .recv()
                .unwrap()
                .ends_with("\"HEAD /users/1 HTTP/1.1\" 200 -\n")
        );
    }

    #[test]
    fn what_clients_send_stays_within_its_quotes() {
        let (client, lines) = lines(LogFormat::Combined);
        client.send(
            b"GET /\"x HTTP/1.1\r\nhost: a\r\nreferer: a\" 200\r\nuser-agent: \x80\\\t\xff\r\n\r\n",
        );
        let line = lines.recv().unwrap();
        assert!(
            line.ends_with("404 9 \"a\\\" 200\" \"\\x80\\\\\\x09\\xff\"\n"),
            "{line}"
        );
    }

    #[test]
    fn a_structured_line_has_route_id_and_trace() {
        let (client, lines) = lines(LogFormat::Json);
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let fields = [
            ("x-request-id", "7"),
            ("traceparent", trace),
            ("user-agent", "a\"b"),
        ];
        client.request(Method::GET, "/users/1", &fields, b"");
        let line = lines.recv().unwrap();
        for part in [
            "\"route\":\"/users/{id}\"",
            "\"id\":\"7\"",
            "\"trace\":\"0af7651916cd43dd8448eb211c80319c\"",
            "\"agent\":\"a\\\"b\"",
            "\"status\":200,\"bytes\":5,",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    #[test]
    fn times_are_written_as_the_formats_have_them() {
        let time = Time::of(b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(time.common(), "06/Nov/1994:08:49:37 +0000");
        assert_eq!(time.rfc_3339(), "1994-11-06T08:49:37Z");
    }
}

//! Server-sent events: the `text/event-stream` of the HTML standard.

use crate::request::{Request, ResponseWriter};
use crate::response::Response;
use http::header::{CACHE_CONTROL, HeaderValue};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

/// One event.
///
/// # Examples
/// ```
/// use pirn_http::Event;
/// let event = Event::new("first line\nsecond line").name("note").id("7");
/// assert_eq!(event.to_string(), "event: note\nid: 7\ndata: first line\ndata: second line\n\n");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    name: Option<String>,
    id: Option<String>,
    retry: Option<Duration>,
    data: String,
    /// Why it cannot be sent.
    flaw: Option<&'static str>,
}

impl Event {
    /// Returns an event with this data. All kinds of line ends in it become line feeds.
    pub fn new(data: impl Into<String>) -> Event {
        Event {
            name: None,
            id: None,
            retry: None,
            data: data.into(),
            flaw: None,
        }
    }

    /// Sets the name, which is `message` otherwise. An event whose name has line ends cannot be
    /// [sent](Events::send): a client may have chosen it.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Event {
        let name = name.into();
        match name.contains(['\r', '\n']) {
            true => self.flawed("the name of an event has line ends"),
            false => Event {
                name: Some(name),
                ..self
            },
        }
    }

    /// Sets the id, which the client sends as `Last-Event-ID` when it connects again. An event
    /// whose id has line ends or NUL cannot be [sent](Events::send).
    #[must_use]
    pub fn id(self, id: impl Into<String>) -> Event {
        let id = id.into();
        match id.contains(['\r', '\n', '\0']) {
            true => self.flawed("the id of an event has line ends or NUL"),
            false => Event {
                id: Some(id),
                ..self
            },
        }
    }

    fn flawed(self, flaw: &'static str) -> Event {
        Event {
            flaw: Some(flaw),
            ..self
        }
    }

    /// Sets how long the client waits before it connects again.
    #[must_use]
    pub fn retry(self, retry: Duration) -> Event {
        Event {
            retry: Some(retry),
            ..self
        }
    }
}

impl std::fmt::Display for Event {
    /// Writes the event as it is sent, without a name or an id that it cannot have.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(name) = &self.name {
            writeln!(f, "event: {name}")?;
        }
        if let Some(id) = &self.id {
            writeln!(f, "id: {id}")?;
        }
        if let Some(retry) = self.retry {
            writeln!(f, "retry: {}", retry.as_millis())?;
        }
        lines(&self.data).try_for_each(|line| writeln!(f, "data: {line}"))?;
        f.write_char('\n')
    }
}

/// Returns the lines of a text, as clients tell them apart: by CR LF, LF or CR.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\r', '\n']) else {
            return rest.take();
        };
        let after = &text[end..];
        let after = after.strip_prefix("\r\n").unwrap_or(&after[1..]);
        rest = Some(after);
        Some(&text[..end])
    })
}

/// A stream of events to a client.
///
/// # Examples
/// ```
/// use pirn_http::{Event, Request, Server};
/// let server = Server::new().get("/time", |request: &mut Request| -> std::io::Result<()> {
///     let mut events = request.events()?;
///     for second in 0..3 {
///         events.send(&Event::new(second.to_string()))?;
///     }
///     Ok(())
/// });
/// assert_eq!(server.client().get("/time").text(), "data: 0\n\ndata: 1\n\ndata: 2\n\n");
/// ```
#[derive(Debug)]
pub struct Events<'r> {
    body: ResponseWriter<'r>,
}

impl Request {
    /// Begins a response of [events](Events).
    ///
    /// # Errors
    /// If there has been a response.
    pub fn events(&mut self) -> io::Result<Events<'_>> {
        let mut response = Response::ok().content_type("text/event-stream");
        let headers = &mut response.headers;
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let mut body = self.respond(response)?;
        body.flush()?; // The client knows that it is connected, though there is no event yet.
        Ok(Events { body })
    }
}

impl Events<'_> {
    /// Sends an event now.
    ///
    /// # Errors
    /// If the client is gone, or the event has a name or an id that none can have.
    pub fn send(&mut self, event: &Event) -> io::Result<()> {
        if let Some(flaw) = event.flaw {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, flaw));
        }
        self.body.write_all(event.to_string().as_bytes())?;
        self.body.flush()
    }

    /// Sends a comment, which clients ignore. One every 15 seconds or so, while there are no
    /// events, keeps proxies from ending the connection, and finds out whether the client is there.
    ///
    /// # Errors
    /// If the client is gone.
    pub fn comment(&mut self, text: &str) -> io::Result<()> {
        let mut all = String::new();
        for line in lines(text) {
            let _ = writeln!(all, ": {line}"); // Writing to a string does not fail.
        }
        self.body.write_all(format!("{all}\n").as_bytes())?;
        self.body.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;

    #[test]
    fn no_line_end_of_the_data_ends_its_field() {
        let data = |text: &str| Event::new(text).to_string();
        assert_eq!(
            data("a\rid: 1\r\nb\n"),
            "data: a\ndata: id: 1\ndata: b\ndata: \n\n"
        );
        assert_eq!(data(""), "data: \n\n");
        assert_eq!(data(" ä"), "data:  ä\n\n");
    }

    #[test]
    fn events_are_a_stream_that_is_not_stored() {
        let server = Server::new().get("/", |request: &mut Request| -> io::Result<()> {
            let mut events = request.events()?;
            events.comment("still\nhere")?;
            events.send(&Event::new("x").retry(Duration::from_secs(2)))
        });
        let answer = server.client().get("/");
        assert_eq!(answer.headers["content-type"], "text/event-stream");
        assert_eq!(answer.headers["cache-control"], "no-cache");
        assert_eq!(answer.text(), ": still\n: here\n\nretry: 2000\ndata: x\n\n");
    }
}

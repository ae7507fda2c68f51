//! WebSockets (RFC 6455), whose frames are tungstenite's.
//!
//! tungstenite reads and writes by one exclusive reference, and a thread that waits for a message
//! would keep all others from sending. So it works on buffers here, which never wait, and the
//! socket is read and written outside of its lock:
//!
//! ```text
//!   read   session: is there a message?  -> no: socket -> chunk (no lock) -> session, again
//!   send   sending: held until the frames are on the socket, so that they stay in order
//!            session: message -> frames
//!            frames -> socket
//! ```

use crate::poison::locked;
use crate::request::Request;
use crate::response::{IntoResponse, Response};
use crate::upgrade::Upgraded;
use http::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{HeaderName, Method, StatusCode, Version};
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard};
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tungstenite::{Error, Message};

/// How many bytes are read from the socket at once. They are on the thread's stack.
const CHUNK: usize = 2048;

/// How many bytes a ping, a pong or a farewell may have (RFC 6455, section 5.5), and how many its
/// code leaves for the reason of a farewell.
const CONTROL: usize = 125;
const REASON: usize = CONTROL - 2;

/// A WebSocket: messages in both directions.
///
/// Clones are the same socket: one thread may read while others send.
///
/// # Examples
/// ```
/// use pirn_http::{Server, WebSocket};
/// let server = Server::new().websocket("/echo", |mut socket: WebSocket| {
///     while let Some(message) = socket.read()? {
///         socket.send(message)?;
///     }
///     Ok(())
/// });
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct WebSocket(Arc<Inner>);

struct Inner {
    connection: Upgraded,
    session: Mutex<tungstenite::WebSocket<Buffers>>,
    /// Held while frames are written.
    sending: Mutex<()>,
}

/// What stands for the socket in the session.
#[derive(Default)]
struct Buffers {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// The client sends no more.
    ended: bool,
}

impl Read for Buffers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.incoming.len().min(buffer.len()) {
            0 if self.ended => Ok(0),
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => {
                buffer[..count].copy_from_slice(&self.incoming[..count]);
                self.incoming.drain(..count);
                Ok(count)
            }
        }
    }
}

impl Write for Buffers {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WebSocket {
    fn new(connection: Upgraded, most: usize) -> WebSocket {
        let config = WebSocketConfig::default()
            .max_message_size(Some(most))
            .max_frame_size(Some(most));
        let session =
            tungstenite::WebSocket::from_raw_socket(Buffers::default(), Role::Server, Some(config));
        WebSocket(Arc::new(Inner {
            connection,
            session: Mutex::new(session),
            sending: Mutex::default(),
        }))
    }

    fn session(&self) -> MutexGuard<'_, tungstenite::WebSocket<Buffers>> {
        locked(&self.0.session)
    }

    /// Waits for the next message; `None`: the client has closed the socket, or the server is shut
    /// down. Pings are answered meanwhile.
    ///
    /// # Errors
    /// If the client sends what is no message, or one that is larger than the server's
    /// [limit for bodies](crate::Limits::body), which it is told; or the connection is broken.
    pub fn read(&mut self) -> io::Result<Option<Message>> {
        loop {
            let next = self.session().read();
            // The answer to a ping or to a farewell.
            self.write_frames(|_| Ok(()))?;
            match next {
                Ok(message @ (Message::Text(_) | Message::Binary(_))) => return Ok(Some(message)),
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.receive()? {
                        return Ok(None);
                    }
                }
                Err(Error::ConnectionClosed | Error::AlreadyClosed) => return Ok(None),
                Err(error) => return Err(self.refuse(error)),
            }
        }
    }

    /// Reads from the socket. Returns whether there may be more messages.
    fn receive(&self) -> io::Result<bool> {
        let mut chunk = [0; CHUNK];
        match (&self.0.connection).read(&mut chunk) {
            Ok(count) => {
                let mut session = self.session();
                let buffers = session.get_mut();
                buffers.incoming.extend_from_slice(&chunk[..count]);
                buffers.ended = count == 0;
                Ok(count > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(_) if self.0.connection.is_dismissed() => {
                let _ = self.say_farewell(CloseCode::Away, "the server is shut down");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Tells the client why the server does not take its message.
    fn refuse(&self, error: Error) -> io::Error {
        let code = match &error {
            Error::Capacity(_) => CloseCode::Size,
            Error::Utf8(_) => CloseCode::Invalid,
            _ => CloseCode::Protocol,
        };
        let _ = self.say_farewell(code, ""); // The client may be gone.
        io::Error::new(io::ErrorKind::InvalidData, error)
    }

    /// Sends a message. Waits until the client, or the kernel, has taken it.
    ///
    /// # Errors
    /// If the socket is closed, or the connection is broken. `InvalidInput` if the message is a
    /// ping or a pong of more than 125 bytes, which clients take for a broken connection.
    pub fn send(&self, message: impl Into<Message>) -> io::Result<()> {
        let message = message.into();
        match &message {
            Message::Ping(text) | Message::Pong(text) if text.len() > CONTROL => {
                let error = format!("a ping or a pong of more than {CONTROL} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
            }
            Message::Close(Some(frame)) => return self.close(frame.code, &frame.reason),
            _ => {}
        }
        self.write_frames(|session| session.write(message))
    }

    /// Closes the socket, and says why. What the client has sent before can still be read. The
    /// client gets the first 123 bytes of the reason: the protocol has room for these.
    ///
    /// # Errors
    /// If the connection is broken.
    pub fn close(&self, code: CloseCode, reason: &str) -> io::Result<()> {
        self.say_farewell(code, reason)
    }

    fn say_farewell(&self, code: CloseCode, reason: &str) -> io::Result<()> {
        let reason = reason[..reason.floor_char_boundary(REASON)].into();
        let closed = self.write_frames(|session| session.close(Some(CloseFrame { code, reason })));
        match closed {
            // Both sides have said so before.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        }
    }

    /// Calls `add`, and writes the frames that there are to be sent then.
    fn write_frames(
        &self,
        add: impl FnOnce(&mut tungstenite::WebSocket<Buffers>) -> Result<(), Error>,
    ) -> io::Result<()> {
        let _order = locked(&self.0.sending);
        let mut session = self.session();
        let added = add(&mut session).and_then(|()| session.flush());
        let frames = std::mem::take(&mut session.get_mut().outgoing);
        drop(session);
        if !frames.is_empty() {
            (&self.0.connection).write_all(&frames)?;
        }
        match added {
            Ok(()) => Ok(()),
            Err(Error::Io(error)) => Err(error),
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => {
                let why = "the WebSocket is closed";
                Err(io::Error::new(io::ErrorKind::NotConnected, why))
            }
            Err(error) => Err(io::Error::new(io::ErrorKind::InvalidInput, error)),
        }
    }
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket").finish_non_exhaustive()
    }
}

impl Request {
    /// Answers a request for a WebSocket: the response that is returned opens it, and `handler`
    /// gets it then, on the same thread. What is no such request is answered with 400 or 426.
    ///
    /// The response may be changed before it is returned, as long as its status stays: a
    /// `Sec-WebSocket-Protocol` is set like any field. A browser opens sockets for pages of any
    /// origin, with the user's cookies: compare `Origin` where a cookie is trusted.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Response, Server, Status};
    /// let server = Server::new().get("/chat", |request: &mut Request| -> Response {
    ///     if request.header("origin") != Some("https://example.org") {
    ///         return Response::new(Status::FORBIDDEN);
    ///     }
    ///     request.websocket(|socket| socket.send("welcome"))
    /// });
    /// assert_eq!(server.client().get("/chat").status, Status::FORBIDDEN);
    /// ```
    pub fn websocket<F>(&mut self, handler: F) -> Response
    where
        F: FnOnce(WebSocket) -> io::Result<()> + Send + 'static,
    {
        let accept = match accept_of(self) {
            Ok(accept) => accept,
            Err(response) => return *response,
        };
        let most = usize::try_from(self.body_limit()).unwrap_or(usize::MAX);
        let serve = move |connection: Upgraded| {
            let socket = WebSocket::new(connection.clone(), most);
            let code = match handler(socket.clone()) {
                Ok(()) => CloseCode::Normal,
                Err(_) => CloseCode::Error,
            };
            let _ = socket.say_farewell(code, ""); // The client may be gone.
            connection.linger();
        };
        let response = Response::upgrade("websocket", serve);
        match accept {
            Some(accept) => response.header(SEC_WEBSOCKET_ACCEPT, accept),
            None => response,
        }
    }
}

/// Returns the answer to the client's key; a client of HTTP/2 sends none (RFC 8441, section 5).
///
/// # Errors
/// The response to a malformed request.
fn accept_of(request: &Request) -> Result<Option<String>, Box<Response>> {
    let has = |name: HeaderName, token: &str| {
        let mut values = request.headers().get_all(name).into_iter();
        values.any(|value| {
            let mut tokens = value.to_str().unwrap_or_default().split(',');
            tokens.any(|one| one.trim().eq_ignore_ascii_case(token))
        })
    };
    let is_http2 = request.version == Version::HTTP_2;
    if request.method != Method::GET || request.version < Version::HTTP_11 {
        return Err(Box::new(StatusCode::METHOD_NOT_ALLOWED.into_response()));
    }
    if !has(UPGRADE, "websocket") || !(is_http2 || has(CONNECTION, "upgrade")) {
        #[cfg(feature = "http2")]
        if is_http2 {
            return Err(Box::new(crate::h2::not_here()));
        }
        let wanted = HeaderValue::from_static("websocket");
        let response = StatusCode::UPGRADE_REQUIRED.into_response();
        return Err(Box::new(response.header(UPGRADE, wanted)));
    }
    if request.header(SEC_WEBSOCKET_VERSION) != Some("13") {
        let response = StatusCode::UPGRADE_REQUIRED.into_response();
        return Err(Box::new(response.header(SEC_WEBSOCKET_VERSION, "13")));
    }
    if is_http2 {
        return Ok(None);
    }
    let mut keys = request.headers().get_all(SEC_WEBSOCKET_KEY).into_iter();
    match (keys.next(), keys.next()) {
        // The base64 of 16 bytes.
        (Some(key), None) if key.len() == 24 => Ok(Some(derive_accept_key(key.as_bytes()))),
        _ => {
            let why = "Sec-WebSocket-Key: one of 24 characters is needed";
            Err(Box::new(Response::new(StatusCode::BAD_REQUEST).text(why)))
        }
    }
}

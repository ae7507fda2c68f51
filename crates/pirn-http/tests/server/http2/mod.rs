//! HTTP/2, with h2's client over sockets.

mod ends;
mod floods;
mod requests;
mod streams;
mod tunnels;

use ::http::{HeaderMap, Request, StatusCode};
use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use pirn::{AsyncIo, block_on, thread};
use pirn_http::{Running, Server};
use std::future::poll_fn;
use std::net::TcpStream;
use tokio::io::{AsyncRead, AsyncWrite};

/// A connection. Any number of threads may ask.
pub(crate) struct Client {
    sender: SendRequest<Bytes>,
    driver: thread::JoinHandle<Result<(), h2::Error>>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Client {
    pub(crate) fn connect(server: &Running) -> Client {
        Client::built(&Builder::new(), server)
    }

    fn built(builder: &Builder, server: &Running) -> Client {
        let socket = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        Client::begun(builder, AsyncIo::new(socket).unwrap())
    }

    pub(crate) fn on(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Client {
        Client::begun(&Builder::new(), io)
    }

    fn begun(
        builder: &Builder,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Client {
        let (sender, connection) = block_on(builder.handshake(io)).unwrap();
        let driver = thread::spawn(move || block_on(connection));
        Client { sender, driver }
    }

    /// Begins a request, whose body may follow.
    pub(crate) fn begin(
        &self,
        request: Request<()>,
        is_whole: bool,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let mut sender = block_on(self.sender.clone().ready()).unwrap();
        sender.send_request(request, is_whole).unwrap()
    }

    pub(crate) fn ask(&self, request: Request<()>, body: &[u8]) -> Result<Answer, h2::Error> {
        let (answer, mut stream) = self.begin(request, body.is_empty());
        if !body.is_empty() {
            send(&mut stream, Bytes::copy_from_slice(body), true);
        }
        receive(answer)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask(get(path), b"").unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: &[u8]) -> Answer {
        let request = Request::post(format!("http://a{path}")).body(()).unwrap();
        self.ask(request, body).unwrap()
    }

    /// Asks for no more, and waits for the connection's end.
    pub(crate) fn end(self) -> Result<(), h2::Error> {
        drop(self.sender);
        self.driver.join().unwrap()
    }
}

pub(crate) fn served(server: Server) -> Running {
    server.bind("127.0.0.1:0").unwrap().start().unwrap()
}

fn get(path: &str) -> Request<()> {
    Request::get(format!("http://a{path}")).body(()).unwrap()
}

/// Sends bytes, as far as the server wants them: it may have answered before.
pub(crate) fn send(stream: &mut SendStream<Bytes>, mut bytes: Bytes, is_end: bool) {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let room = match stream.capacity() {
            0 => block_on(poll_fn(|context| stream.poll_capacity(context))),
            room => Some(Ok(room)),
        };
        let Some(Ok(room)) = room else { return };
        let piece = bytes.split_to(room.min(bytes.len()));
        let is_last = is_end && bytes.is_empty();
        if stream.send_data(piece, is_last).is_err() {
            return;
        }
    }
}

fn receive(answer: ResponseFuture) -> Result<Answer, h2::Error> {
    let (head, mut stream) = block_on(answer)?.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = next_piece(&mut stream)? {
        body.extend_from_slice(&piece);
    }
    let trailers = block_on(stream.trailers())?;
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body,
        trailers,
    })
}

pub(crate) fn next_piece(stream: &mut RecvStream) -> Result<Option<Bytes>, h2::Error> {
    let Some(piece) = block_on(stream.data()).transpose()? else {
        return Ok(None);
    };
    stream.flow_control().release_capacity(piece.len())?;
    Ok(Some(piece))
}

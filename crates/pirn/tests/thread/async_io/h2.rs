//! HTTP/2 by the crate `h2`, which knows no runtime: client and server on virtual threads.

use std::net::{TcpListener, TcpStream};

use bytes::Bytes;
use h2::{RecvStream, SendStream, client, server};
use http::{Request, Response};

use crate::common::{on_virtual, pattern, watched};
use pirn::{AsyncIo, block_on, thread};

/// Sends as much as the peer's windows admit, and waits for more room.
fn send_body(stream: &mut SendStream<Bytes>, mut body: Bytes) {
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let room = block_on(std::future::poll_fn(|context| {
            stream.poll_capacity(context)
        }));
        let room = room.expect("the stream is open").unwrap();
        let part = body.split_to(room.min(body.len()));
        stream.send_data(part, body.is_empty()).unwrap();
    }
}

fn receive_body(stream: &mut RecvStream) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(part) = block_on(stream.data()) {
        let part = part.unwrap();
        all.extend_from_slice(&part);
        stream.flow_control().release_capacity(part.len()).unwrap();
    }
    all
}

/// Answers with the request's body, each byte increased.
fn answer(request: Request<RecvStream>, mut respond: server::SendResponse<Bytes>) {
    let mut body = receive_body(&mut request.into_body());
    body.iter_mut()
        .for_each(|byte| *byte = byte.wrapping_add(1));
    let mut stream = respond.send_response(Response::new(()), false).unwrap();
    send_body(&mut stream, body.into());
}

/// Serves one connection, each request on a thread of its own.
fn serve(stream: TcpStream) {
    let handlers = block_on(async {
        let mut connection = server::handshake(AsyncIo::new(stream).unwrap())
            .await
            .unwrap();
        let mut handlers = Vec::new();
        while let Some(request) = connection.accept().await {
            let (request, respond) = request.unwrap();
            handlers.push(thread::spawn(|| answer(request, respond)));
        }
        handlers
    });
    handlers
        .into_iter()
        .for_each(|handler| handler.join().unwrap());
}

fn ask(sender: client::SendRequest<Bytes>, body: Vec<u8>) -> Vec<u8> {
    let mut sender = block_on(sender.ready()).unwrap();
    let request = Request::post("http://localhost/").body(()).unwrap();
    let (response, mut stream) = sender.send_request(request, false).unwrap();
    send_body(&mut stream, body.into());
    let response = block_on(response).unwrap();
    assert_eq!(response.status(), 200);
    receive_body(&mut response.into_body())
}

/// The windows are 64 KiB at first, so 1 MiB cannot go without flow control.
#[watched]
fn bodies_of_a_mebibyte_go_both_ways_at_once() {
    const REQUESTS: usize = 8;
    on_virtual(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || serve(listener.accept().unwrap().0));
        let stream = AsyncIo::new(TcpStream::connect(address).unwrap()).unwrap();
        let (sender, connection) = block_on(client::handshake(stream)).unwrap();
        let driver = thread::spawn(move || block_on(connection));
        let asking: Vec<_> = (0..REQUESTS)
            .map(|i| {
                let (sender, body) = (sender.clone(), pattern((1 << 20) + i));
                thread::spawn(move || (ask(sender, body.clone()), body))
            })
            .collect();
        drop(sender);
        for asking in asking {
            let (answer, body) = asking.join().unwrap();
            assert_eq!(answer.len(), body.len());
            assert!(
                answer
                    .iter()
                    .zip(&body)
                    .all(|(a, b)| *a == b.wrapping_add(1))
            );
        }
        driver.join().unwrap().unwrap();
        server.join().unwrap();
    });
}

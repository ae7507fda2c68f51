//! Servers good and bad.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";

/// What a server does with a request.
#[derive(Clone, Copy)]
pub enum Manner {
    /// Answers as it should, after this time.
    Good(Duration),
    /// Answers with a body of the right length and the wrong words.
    WrongBody,
    /// Answers with status 503.
    WrongStatus,
    /// Sends something after the answer.
    Extra,
    /// Closes the connection after part of an answer.
    ClosesEarly,
    /// Answers the first request of a connection, and closes it.
    ClosesAfterOne,
    /// Sends back what it gets.
    Echo,
    /// Never answers.
    Mute,
}

/// Serves until dropped.
pub struct Server {
    pub port: u16,
    requests: Arc<AtomicU64>,
    _runtime: Runtime,
}

impl Server {
    pub fn start(manner: Manner) -> Server {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&requests);
        runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(converse(stream, manner, Arc::clone(&count)));
            }
        });
        Server {
            port,
            requests,
            _runtime: runtime,
        }
    }

    /// How many requests have come in.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

/// An error is the client's leaving.
async fn converse(
    mut stream: TcpStream,
    manner: Manner,
    requests: Arc<AtomicU64>,
) -> io::Result<()> {
    while let Manner::Echo = manner {
        let mut bytes = [0; 64];
        stream.read_exact(&mut bytes).await?;
        requests.fetch_add(1, Ordering::SeqCst);
        stream.write_all(&bytes).await?;
    }
    loop {
        read_request(&mut stream).await?;
        requests.fetch_add(1, Ordering::SeqCst);
        match manner {
            Manner::Good(delay) => {
                sleep(delay).await;
                stream.write_all(HELLO.as_bytes()).await?;
            }
            Manner::WrongBody => {
                stream
                    .write_all(HELLO.replace("World", "Earth").as_bytes())
                    .await?
            }
            Manner::WrongStatus => {
                stream
                    .write_all(HELLO.replace("200", "503").as_bytes())
                    .await?
            }
            Manner::Extra => stream.write_all(format!("{HELLO}!").as_bytes()).await?,
            Manner::ClosesEarly => return stream.write_all(&HELLO.as_bytes()[..20]).await,
            Manner::ClosesAfterOne => return stream.write_all(HELLO.as_bytes()).await,
            Manner::Echo | Manner::Mute => std::future::pending().await,
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

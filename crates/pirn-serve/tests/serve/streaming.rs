//! A client that sends the body of a request and reads its answer at once, in both versions.

use pirn_testing::Server;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// How many bytes of HTTP/2 the server takes now: on the connection, and on the stream.
type Room = Arc<(Mutex<(i64, i64)>, Condvar)>;

/// The client's direction of one request, whose body has no announced length.
pub(crate) struct Sender {
    pub(crate) stream: TcpStream,
    room: Option<Room>,
}

/// The other direction.
pub(crate) struct Receiver {
    stream: BufReader<TcpStream>,
    room: Option<Room>,
    /// The last frame of HTTP/2 has come.
    is_over: bool,
}

/// The next part of an answer's body.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Next {
    Piece(Vec<u8>),
    End,
    /// Something is missing.
    Broken,
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// Sends the head of a POST. Of an answer by HTTP/2 the client takes `window` bytes.
pub(crate) fn post(proxy: &Server, is_http2: bool, window: u32) -> (Sender, Receiver) {
    let mut stream = proxy.connect();
    let window = window.to_be_bytes();
    let head = match is_http2 {
        false => b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
        true => [
            &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
            &frame(4, 0, 0, &[&[0, 4], &window[..]].concat()),
            &frame(8, 0, 0, &[0x7f, 0, 0, 0]),
            // Of the static table: POST, "http", "/", a value of ":authority".
            &frame(1, 4, 1, &[0x83, 0x86, 0x84, 0x01, 1, b'a']),
        ]
        .concat(),
    };
    stream.write_all(&head).unwrap();
    let room = is_http2.then(|| Room::new((Mutex::new((65_535, 65_535)), Condvar::new())));
    let mut receiver = Receiver {
        stream: BufReader::new(stream.try_clone().unwrap()),
        room: room.clone(),
        is_over: false,
    };
    if is_http2 {
        receiver.take_frame().unwrap(); // The server's settings, and with them its window.
        stream.write_all(&frame(4, 1, 0, &[])).unwrap(); // That holds from now on.
    }
    (Sender { stream, room }, receiver)
}

impl Sender {
    /// Goes on sending, for as long as the other side takes more.
    pub(crate) fn go_on(&self) {
        let (stream, room) = (self.stream.try_clone().unwrap(), self.room.clone());
        let mut sender = Sender { stream, room };
        thread::spawn(move || while sender.send(&[b'x'; 65_536]).is_ok() {});
    }

    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let Some(room) = &self.room else {
            let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
            return self.stream.write_all(&chunk);
        };
        while !bytes.is_empty() {
            let mut left = room.0.lock().unwrap();
            while left.0.min(left.1) <= 0 {
                left = room.1.wait(left).unwrap();
            }
            let most = usize::try_from(left.0.min(left.1)).unwrap().min(16_384);
            let (piece, rest) = bytes.split_at(bytes.len().min(most));
            left.0 -= i64::try_from(piece.len()).unwrap();
            left.1 -= i64::try_from(piece.len()).unwrap();
            drop(left);
            self.stream.write_all(&frame(0, 0, 1, piece))?;
            bytes = rest;
        }
        Ok(())
    }

    pub(crate) fn end(&mut self) -> io::Result<()> {
        match self.room {
            None => self.stream.write_all(b"0\r\n\r\n"),
            Some(_) => self.stream.write_all(&frame(0, 1, 1, &[])),
        }
    }
}

impl Receiver {
    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        while !line.ends_with("\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte)?;
            line.push(char::from(byte[0]));
        }
        Ok(line.trim_end().to_owned())
    }

    /// Reads the head of an answer of HTTP/1.1, and returns its first line.
    pub(crate) fn head(&mut self) -> io::Result<String> {
        let first = self.line()?;
        while !self.line()?.is_empty() {}
        Ok(first)
    }

    fn take_frame(&mut self) -> io::Result<(u8, u8, Vec<u8>)> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload)?;
        let number =
            |at: usize| i64::from(u32::from_be_bytes(payload[at..at + 4].try_into().unwrap()));
        let room = self.room.as_ref().unwrap();
        let mut left = room.0.lock().unwrap();
        match (head[3], head[8]) {
            (4, _) if head[4] == 0 => {
                let windows = (0..payload.len())
                    .step_by(6)
                    .filter(|&at| payload[at + 1] == 4);
                windows.for_each(|at| left.1 += number(at + 2) - 65_535);
            }
            (8, 0) => left.0 += number(0),
            (8, _) => left.1 += number(0),
            _ => {}
        }
        room.1.notify_all();
        drop(left);
        Ok((head[3], head[4], payload))
    }

    pub(crate) fn next(&mut self) -> Next {
        self.try_next().unwrap_or(Next::Broken)
    }

    fn try_next(&mut self) -> io::Result<Next> {
        while self.room.is_some() {
            if self.is_over {
                return Ok(Next::End);
            }
            match self.take_frame()? {
                (0, flags, data) => {
                    self.is_over = flags & 1 != 0;
                    if !data.is_empty() {
                        return Ok(Next::Piece(data));
                    }
                }
                (3, ..) | (7, ..) => return Ok(Next::Broken),
                _ => {}
            }
        }
        let mut size = self.line()?;
        if size.starts_with("HTTP/") {
            while !self.line()?.is_empty() {}
            size = self.line()?;
        }
        let size = usize::from_str_radix(&size, 16).unwrap();
        let mut piece = vec![0; size + 2];
        self.stream.read_exact(&mut piece)?;
        piece.truncate(size);
        match size {
            0 => Ok(Next::End),
            _ => Ok(Next::Piece(piece)),
        }
    }

    /// Reads the next bytes of the body: this many, or more.
    pub(crate) fn at_least(&mut self, bytes: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < bytes {
            match self.next() {
                Next::Piece(piece) => all.extend_from_slice(&piece),
                other => panic!("{other:?} after {} bytes", all.len()),
            }
        }
        all
    }

    /// Waits for the end, and returns which one it is.
    pub(crate) fn end(&mut self) -> Next {
        loop {
            match self.next() {
                Next::Piece(_) => {}
                end => return end,
            }
        }
    }
}

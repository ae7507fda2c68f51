//! `postgres`, which is a `tokio` within, against a server that knows one query.

use pirn_sim::net::node;
use postgres::{Client, NoTls, SimpleQueryMessage};
use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Returns a message of the protocol.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind], &length[..], body].concat()
}

/// Answers `SELECT` with a row that has the text of the query.
fn session(mut stream: TcpStream) -> Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut startup)?;
    let ready = message(b'Z', b"I");
    stream.write_all(&[message(b'R', &[0; 4]), ready.clone()].concat())?;
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; length as usize - 4];
        stream.read_exact(&mut body)?;
        if head[0] != b'Q' {
            return Ok(());
        }
        let query = &body[..body.len() - 1];
        if query.starts_with(b"SELECT pg_sleep") {
            thread::sleep(Duration::from_secs(3600));
        }
        let column = [
            &1_u16.to_be_bytes()[..],
            b"text\0",
            &[0; 6],
            &25_u32.to_be_bytes()[..],
        ];
        let column = [
            &column.concat()[..],
            &(-1_i16).to_be_bytes(),
            &[0xff; 4],
            &[0; 2],
        ]
        .concat();
        let size = (query.len() as u32).to_be_bytes();
        let row = [&1_u16.to_be_bytes()[..], &size, query].concat();
        let answer = [
            message(b'T', &column),
            message(b'D', &row),
            message(b'C', b"SELECT 1\0"),
            ready.clone(),
        ];
        stream.write_all(&answer.concat())?;
    }
}

fn serve() {
    let listener = TcpListener::bind("0.0.0.0:5432").unwrap();
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        thread::spawn(move || session(stream));
    }
}

#[test]
fn clients_query_and_wait_for_an_hour() {
    pirn_sim_unmodified::check("postgres", 50, || {
        node("db", serve);
        thread::sleep(Duration::from_secs(1));
        let clients: Vec<_> = ["SELECT 1", "SELECT 2", "SELECT pg_sleep(3600)"]
            .into_iter()
            .map(|query| {
                thread::spawn(move || {
                    let begin = Instant::now();
                    let mut client = Client::connect("host=db user=me", NoTls).unwrap();
                    let rows = client.simple_query(query).unwrap();
                    let text = rows.iter().find_map(|it| match it {
                        SimpleQueryMessage::Row(row) => row.get(0),
                        _ => None,
                    });
                    assert_eq!(text, Some(query));
                    begin.elapsed()
                })
            })
            .collect();
        let times: Vec<_> = clients.into_iter().map(|it| it.join().unwrap()).collect();
        assert!(times[2] >= Duration::from_secs(3600));
    });
}

//! After a read that timed out, the next command gets the answer to the one before: redis-rs #1252.

use pirn_sim::Sim;
use pirn_sim::net::{self, node};
use redis::{Client, Commands, Connection};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

/// Answers each `GET` with the name of the key.
fn serve() {
    for stream in TcpListener::bind("0.0.0.0:6379").unwrap().incoming() {
        let mut writes = stream.unwrap();
        let reads = BufReader::new(writes.try_clone().unwrap());
        thread::spawn(move || {
            // A command is *2, $3, GET, $4, key1.
            let mut lines = reads.lines().map_while(Result::ok);
            while let Some(count) = lines.next() {
                let count: usize = count[1..].parse().unwrap();
                let words: Vec<_> = lines.by_ref().skip(1).step_by(2).take(count).collect();
                let answer = match &words[..] {
                    [get, key] if get == "GET" => format!("${}\r\n{key}\r\n", key.len()),
                    _ => "+OK\r\n".to_owned(),
                };
                if writes.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        });
    }
}

fn connect() -> Connection {
    let client = Client::open("redis://redis:6379").unwrap();
    loop {
        if let Ok(connection) = client.get_connection() {
            let _ = connection.set_read_timeout(Some(Duration::from_millis(300)));
            return connection;
        }
    }
}

#[test]
fn an_answer_is_the_one_to_the_command() {
    published::is_found("redis 0.25.4, #1252", Sim::new(), || {
        net::loss(0.02);
        node("redis", serve);
        let mut connection = connect();
        for n in 0..10 {
            let key = format!("key{n}");
            match connection.get::<_, String>(&key) {
                Ok(value) => assert_eq!(value, key),
                Err(_) if redis::ConnectionLike::is_open(&connection) => {}
                Err(_) => connection = connect(),
            }
        }
    });
}

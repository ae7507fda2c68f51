//! A chat of lines, with an actor for each connection:
//! `cargo run --release -p pirn-http --example lines [ADDRESS]`, then `nc localhost 8080` twice.
//!
//! The first line is the guest's name. A connection has a thread that reads, and an actor that
//! alone writes: each line that a guest says comes to the actors as a message. A guest that reads
//! too slowly misses the oldest lines, and does not delay the others.

use pirn_actor::topic::Topic;
use pirn_actor::{Builder, Overflow};
use pirn_http::{Upgraded, tcp_acceptor};
use std::io::{self, BufRead, BufReader, Write};
use std::sync::Arc;

/// How many lines a guest may be behind.
const BEHIND: usize = 100;

type Line = Arc<str>;

/// Serves a guest until it goes.
fn welcome(connection: &Upgraded, room: &Topic<Line>) -> io::Result<()> {
    let mut lines = BufReader::new(connection).lines();
    let Some(name) = lines.next().transpose()? else {
        return Ok(());
    };
    let to = connection.clone();
    let builder = Builder::new().name(name.clone()).capacity(BEHIND);
    let guest = builder
        .overflow(Overflow::DropOld)
        .consumer(move |line: Line| {
            // If the guest is gone, its reader says so.
            let _ = (&to).write_all(format!("{line}\n").as_bytes());
        });
    let subscription = room.subscribe(&guest);
    let say = |text: String| room.publish(text.into());
    say(format!("{name} has come"));
    let heard = lines.try_for_each(|line| {
        say(format!("{name}: {}", line?));
        Ok(())
    });
    drop(subscription);
    say(format!("{name} has gone"));
    guest.close();
    guest.join(); // It has written what it was told.
    heard
}

#[pirn::main]
fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    let room = Topic::new();
    tcp_acceptor(move |connection| welcome(&connection, &room))
        .bind(address)?
        .serve()
}

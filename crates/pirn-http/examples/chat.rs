//! A chat: `cargo run --release -p pirn-http --example chat [ADDRESS]`, then open the page twice.
//!
//! Each guest has a thread that reads, and one that sends, so a guest with a slow connection does
//! not delay the others. The room removes a guest that is a hundred messages behind.

use pirn_http::{Response, Server, WebSocket};
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

const PAGE: &str = r#"<!DOCTYPE html>
<meta charset="utf-8"><title>Chat</title>
<style>body { font: 16px sans-serif; max-width: 40em; margin: 2em auto; color-scheme: light dark }</style>
<ul id="said"></ul>
<form id="say"><input id="text" autofocus autocomplete="off" placeholder="say something"></form>
<script>
  const socket = new WebSocket(location.href.replace(/^http/, "ws") + "chat");
  socket.onmessage = event => {
    const line = document.createElement("li");
    line.textContent = event.data;
    said.append(line);
  };
  say.onsubmit = () => { socket.send(text.value); text.value = ""; return false; };
</script>
"#;

/// How many messages a guest may be behind.
const BEHIND: usize = 100;

/// A guest's number, and the channel to the thread that sends to the guest.
type Guest = (u64, SyncSender<String>);

#[derive(Clone, Default)]
struct Room {
    guests: Arc<Mutex<Vec<Guest>>>,
}

impl Room {
    /// Says something to all guests, and removes those that are too far behind or gone.
    fn say(&self, text: &str) {
        let mut guests = self.guests.lock().unwrap();
        guests.retain(|(_, to)| to.try_send(text.to_owned()).is_ok());
    }

    /// Serves a guest until it goes.
    fn welcome(&self, mut socket: WebSocket) -> io::Result<()> {
        let (to, messages) = sync_channel(BEHIND);
        let number = {
            let mut guests = self.guests.lock().unwrap();
            let number = guests.last().map_or(1, |(last, _)| last + 1);
            guests.push((number, to));
            number
        };
        self.say(&format!("guest {number} has come"));
        pirn::thread::scope(|scope| {
            let sender = socket.clone();
            scope.spawn(move || {
                // Ends when `say` has removed the guest, or the guest is gone.
                messages.iter().try_for_each(|text| sender.send(text))
            });
            let result = self.listen(number, &mut socket);
            self.guests
                .lock()
                .unwrap()
                .retain(|(other, _)| *other != number);
            self.say(&format!("guest {number} has gone"));
            result
        })
    }

    fn listen(&self, number: u64, socket: &mut WebSocket) -> io::Result<()> {
        while let Some(message) = socket.read()? {
            if let Ok(text) = message.to_text() {
                self.say(&format!("{number}: {text}"));
            }
        }
        Ok(())
    }
}

#[pirn::main]
fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    let room = Room::default();
    Server::new()
        .get("/", || Response::ok().html(PAGE))
        .websocket("/chat", move |socket| room.welcome(socket))
        .bind(address)?
        .serve()
}

//! Clients of WebSockets: messages that come back, and an end with or without a farewell.

use crate::Day;
use crate::wire::Pattern;
use tungstenite::Message;

pub(crate) fn client(day: &mut Day) {
    let server = &day.world.server;
    let url = format!("ws://{}/socket", server.plain);
    let (mut socket, _) = tungstenite::client(url, server.connect()).expect("a socket");
    for _ in 0..=day.below(30) {
        let (number, length) = (day.number(), day.length());
        let message = Message::from(Pattern::bytes(number, length));
        socket.send(message.clone()).expect("the server reads");
        let answer = socket.read().expect("the message");
        assert!(answer == message, "not my message: {} bytes", answer.len());
        day.checked("message");
    }
    if day.below(2) == 0 {
        socket.close(None).expect("the server reads");
        while socket.read().is_ok() {}
    }
}

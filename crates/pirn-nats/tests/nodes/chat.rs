//! The example: Alice and Bob.

use crate::common::watched;
use crate::server::Server;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Person {
    child: Child,
    says: ChildStdin,
    hears: BufReader<ChildStdout>,
}

impl Person {
    fn new(server: &Server, name: &str, friend: &str) -> Person {
        let tests = std::env::current_exe().unwrap();
        let program = tests.parent().unwrap().parent().unwrap();
        let mut child = Command::new(program.join("examples/talk"))
            .args([&server.url(), name, friend])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let says = child.stdin.take().unwrap();
        let hears = BufReader::new(child.stdout.take().unwrap());
        Person { child, says, hears }
    }

    fn say(&mut self, text: &str) {
        writeln!(self.says, "{text}").unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.hears.read_line(&mut line).unwrap();
        line.trim().to_string()
    }

    fn leave(mut self) -> bool {
        drop(self.says);
        self.child.wait().unwrap().success()
    }
}

#[watched]
fn alice_and_bob_chat() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut alice = Person::new(&server, "alice", "bob");
    assert_eq!(alice.hear(), "hello, alice");
    alice.say("anybody?");
    assert_eq!(alice.hear(), "(bob is not here)");
    let mut bob = Person::new(&server, "bob", "alice");
    assert_eq!(bob.hear(), "hello, bob");
    alice.say("hi, bob");
    assert_eq!(bob.hear(), "alice: hi, bob");
    bob.say("hi");
    bob.say("how are you?");
    assert_eq!(
        [alice.hear(), alice.hear()],
        ["bob: hi", "bob: how are you?"]
    );
    let second = Person::new(&server, "alice", "bob");
    assert!(!second.leave(), "there is one alice");
    assert!(bob.leave());
    alice.say("bye");
    assert_eq!(alice.hear(), "(bob is not here)");
    assert!(alice.leave());
}

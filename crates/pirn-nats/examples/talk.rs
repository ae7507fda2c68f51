//! Two people chat. Each is an actor on a node of its own, found by name.
//!
//! ```sh
//! nats-server -js &
//! cargo run -p pirn-nats --example talk -- nats://127.0.0.1:4222 alice bob
//! cargo run -p pirn-nats --example talk -- nats://127.0.0.1:4222 bob alice   # in another terminal
//! ```

use pirn_actor::{self as actor, AskError};
use pirn_nats::{Call, Node, NodeError, Remote, wire};
use serde::{Deserialize, Serialize};
use std::error::Error;

#[derive(Serialize, Deserialize)]
struct Say {
    from: String,
    text: String,
}
wire!(Say, "chat.Say");

#[pirn::main]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [url, me, friend] = &arguments[..] else {
        return Err("usage: chat URL MY-NAME FRIENDS-NAME".into());
    };
    let node = Node::builder().name(&**me).connect(url, "chat")?;
    let ear = actor::consumer(|said: Say| println!("{}: {}", said.from, said.text));
    match node.register(me, &ear) {
        Ok(registration) => drop(registration.accepts::<Say>()),
        Err(NodeError::Taken { name, .. }) => return Err(format!("{name} is here already").into()),
        Err(error) => return Err(error.into()),
    }
    let other: Remote<Call<Say, ()>> = node.find(friend);
    println!("hello, {me}");
    for line in std::io::stdin().lines() {
        let (from, text) = (me.clone(), line?);
        match other.ask(Say { from, text }) {
            Ok(()) => {}
            Err(AskError::Unreachable) => println!("({friend} is not here)"),
            Err(error) => println!("({error})"),
        }
    }
    node.close(); // the name is free at once
    Ok(())
}

//! What dumps show of actors at work.

use crate::common::watched;
use pirn_actor::process::Inbox;
use pirn_actor::{self as actor, Context, Handler};
use pirn_dump::Dump;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

struct Shop(Receiver<()>);
struct Buy;

impl Handler<Buy> for Shop {
    type Reply = ();
    fn handle(&mut self, _: Buy, _: &Context<Self>) {
        self.0.recv().unwrap();
    }
}

/// Returns true if a thread works for just this.
fn somebody_works_for(names: &[&str]) -> bool {
    let mut bytes = Vec::new();
    let dump = pirn::dump::Options::new().list(usize::MAX).take();
    dump.write_to(&mut bytes).unwrap();
    let threads = Dump::read_from(&bytes[..]).unwrap().threads;
    threads.iter().any(|thread| thread.works_for == names)
}

/// Makes dumps until a thread works for just this.
fn until_somebody_works_for(names: &[&str]) {
    while !somebody_works_for(names) {
        thread::yield_now();
    }
}

#[watched]
fn a_dump_shows_the_actor_and_the_message_that_a_thread_works_for() {
    let (buy, bought) = channel();
    let (builder, mut bought) = (actor::Builder::new().name("shop"), Some(bought));
    let shop = builder.spawn(move || Shop(bought.take().unwrap())).unwrap();
    shop.send(Buy).unwrap();
    let names = ["shop", std::any::type_name::<Buy>()];
    until_somebody_works_for(&names);
    buy.send(()).unwrap();
    shop.close();
    shop.join();
    assert!(!somebody_works_for(&names));
}

#[watched]
fn an_actor_without_a_name_is_shown_as_elsewhere() {
    let (go, gone): (Sender<()>, _) = channel();
    let waits = actor::function(move |(): ()| gone.recv().is_ok());
    waits.send(()).unwrap();
    until_somebody_works_for(&[&waits.name(), "()"]);
    drop(go);
}

#[watched]
fn all_kinds_of_actors_are_shown() {
    let named = |name: &str| actor::Builder::new().name(name);
    let process = named("desk").process(|inbox: &mut Inbox<()>| inbox.recv());
    until_somebody_works_for(&["desk"]);
    let (go, gone): (Sender<()>, _) = channel();
    let gone = std::sync::Mutex::new(gone);
    let each = named("fetch").each(move |_: u8| gone.lock().unwrap().recv().is_ok());
    each.send(7).unwrap();
    until_somebody_works_for(&["fetch", "u8"]);
    drop(go);
    process.unwrap().close();
}

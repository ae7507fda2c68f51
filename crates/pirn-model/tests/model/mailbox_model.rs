//! The mailbox of an actor: a sender that finds no room against the runner that makes some, and
//! ends against the next message.

use loom::sync::{Arc, Mutex};
use loom::thread;

use crate::check;
use crate::mailbox_word::{END, ROOM, Word as Begun};

/// A mailbox with room for one item, as `mailbox/mod.rs` has it under its lock.
struct Mailbox {
    word: Begun,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    sent: u64,
    /// Items that the runner has not taken.
    queue: u64,
    /// Senders that wait, each with an item.
    line: u64,
    is_idle: bool,
    ended: bool,
}

impl Mailbox {
    /// With one item, which the runner has taken and not begun.
    fn full() -> Arc<Mailbox> {
        Arc::new(Mailbox {
            word: Begun::new(),
            shared: Mutex::new(Shared {
                sent: 1,
                ..Shared::default()
            }),
        })
    }

    fn admit(&self, shared: &mut Shared, begun: u64) {
        while shared.line > 0 && shared.sent - begun < 1 {
            shared.line -= 1;
            shared.queue += 1;
            shared.sent += 1;
        }
        if shared.line == 0 {
            self.word.clear(ROOM);
        }
    }

    /// A sender, which waits if there is no room. Returns true if it is to start a runner.
    fn send(&self) -> bool {
        let mut shared = self.shared.lock().unwrap();
        if shared.sent - self.word.begun() < 1 && shared.line == 0 {
            shared.queue += 1;
            shared.sent += 1;
        } else {
            shared.line += 1;
            let begun = self.word.ask_for_room();
            self.admit(&mut shared, begun);
        }
        shared.queue > 0 && core::mem::take(&mut shared.is_idle)
    }

    /// The runner, with so many items that it has taken. Returns how many it has handled.
    fn run(&self, mut batch: u64) -> u64 {
        let mut handled = 0;
        loop {
            if batch > 0 && self.word.try_begin(1) {
                batch -= 1;
                handled += 1;
                continue;
            }
            let mut shared = self.shared.lock().unwrap();
            if self.word.flags() & END != 0 {
                shared.ended = true;
                return handled;
            }
            if batch == 0 {
                batch = core::mem::take(&mut shared.queue);
            }
            if batch == 0 {
                shared.is_idle = true;
                return handled;
            }
            batch -= 1;
            handled += 1;
            if let Some(begun) = self.word.begin() {
                self.admit(&mut shared, begun);
            }
        }
    }
}

#[test]
fn a_sender_that_waits_for_room_is_let_in() {
    check(3, || {
        let mailbox = Mailbox::full();
        let senders = [(); 2].map(|()| {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || if mailbox.send() { mailbox.run(0) } else { 0 })
        });
        // A thread of its own: loom has the main thread begin.
        let runner = {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || mailbox.run(1))
        };
        let all = senders.into_iter().chain([runner]);
        let handled = all.map(|thread| thread.join().unwrap()).sum::<u64>();
        let shared = mailbox.shared.lock().unwrap();
        assert_eq!((shared.line, shared.queue, handled), (0, 0, 3));
    });
}

#[test]
fn an_end_comes_before_the_next_item() {
    check(3, || {
        let mailbox = Mailbox::full();
        mailbox.shared.lock().unwrap().sent = 3;
        let ender = {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || {
                let _shared = mailbox.shared.lock().unwrap();
                mailbox.word.set(END);
                mailbox.word.begun()
            })
        };
        let handled = mailbox.run(3);
        let begun = ender.join().unwrap();
        // The exchange that would begin another one has failed.
        assert_eq!(begun, handled);
        assert!(mailbox.shared.lock().unwrap().ended || handled == 3);
    });
}

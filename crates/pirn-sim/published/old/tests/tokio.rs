//! `oneshot::Sender::send` panics if the receiver closes and looks: tokio #4225,
//! RUSTSEC-2021-0124, mended in 1.13.1.

use pirn_sim::Sim;
use std::thread;
use tokio::sync::oneshot;

#[test]
fn a_message_is_sent_or_comes_back() {
    if !published::has_places() {
        return; // The race is for what is not atomic.
    }
    published::is_found("tokio 1.13.0, #4225", Sim::new(), || {
        let (sender, mut receiver) = oneshot::channel();
        let sends = thread::spawn(move || sender.send(7));
        receiver.close();
        let received = receiver.try_recv();
        match sends.join().unwrap() {
            Ok(()) => assert_eq!(received, Ok(7)),
            Err(message) => assert_eq!((message, received.is_err()), (7, true)),
        }
    });
}

//! A receiver is told that all senders have gone, before it has had the message: flume #78. What
//! 0.10.4 has mended is one of two such races; this one is in all versions before 0.11.

use pirn_sim::Sim;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls all whenever one is woken, as `join_all` does.
fn block_on<T>(futures: [impl Future<Output = T>; 2]) -> Vec<T> {
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut left: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut values = Vec::new();
    loop {
        left.retain_mut(|it| match it.as_mut().poll(&mut context) {
            Poll::Ready(value) => {
                values.push(value);
                false
            }
            Poll::Pending => true,
        });
        if left.is_empty() {
            return values;
        }
        thread::park();
    }
}

#[test]
fn a_message_that_was_sent_is_received() {
    published::is_found("flume 0.10.14, #78", Sim::new(), || {
        let channels = [(); 2].map(|()| flume::bounded(1));
        let receivers = channels.map(|(sender, receiver)| {
            thread::spawn(move || sender.send(7).unwrap());
            receiver
        });
        let [one, other] = &receivers;
        let values = block_on([one, other].map(|it| it.recv_async()));
        assert_eq!(values, [Ok(7), Ok(7)]);
    });
}

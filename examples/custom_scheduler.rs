//! A custom scheduler: these virtual threads all run on the platform thread that is `main`,
//! as callbacks run on the one thread of a user interface. The library's carriers never run them.
use pirn::{Runnable, Scheduler, thread};
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Hands runnable threads to the thread that has the other end of the channel.
struct EventLoop(mpsc::Sender<Runnable>);

impl Scheduler for EventLoop {
    fn schedule(&self, thread: Runnable) {
        // If the loop is gone the thread is dropped with the message, and will not run again.
        let _ = self.0.send(thread);
    }
}

fn main() -> io::Result<()> {
    let (sender, events) = mpsc::channel();
    let cooks = thread::Builder::new()
        .name_counter("cook-", 1)
        .scheduler(Arc::new(EventLoop(sender)));

    let meals: Vec<_> = ["soup", "stew", "cake"]
        .into_iter()
        .zip([100, 150, 250])
        .map(|(dish, millis)| {
            let cook_it = move || cook(dish, Duration::from_millis(millis));
            cooks.clone().spawn(cook_it)
        })
        .collect::<io::Result<_>>()?;

    // The loop. Each turn runs one virtual thread, here, until it parks or ends.
    while !meals.iter().all(thread::JoinHandle::is_finished) {
        let ready = events.recv().expect("the scheduler has the sender");
        ready.run();
    }
    println!("one platform thread has cooked it all");
    Ok(())
}

/// Cooks in two steps; while it waits for one, the others go on.
fn cook(dish: &str, step: Duration) {
    for action in ["boiling", "tasting"] {
        println!("{:?}: {action} the {dish}", thread::current());
        std::thread::sleep(step);
    }
    println!("{:?}: {dish} is ready", thread::current());
}

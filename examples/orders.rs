//! Failures of an order that needs two services at once, and how the scope handles them: one
//! service fails; the caller gives up; the other service hangs. No thread is left running, and none
//! is waited for in vain.
use pirn::scope::JoinError;
use pirn::thread::{self, Interrupted};
use std::io;
use std::time::Duration;

/// Works until it is interrupted.
const HANGS: Duration = Duration::MAX;

#[derive(Clone, Copy)]
struct Services {
    inventory: Result<Duration, &'static str>,
    order: Result<Duration, &'static str>,
}

/// Runs both at once. The first failure cancels the other, and is the result.
fn handle_order(services: Services) -> Result<String, JoinError<io::Error>> {
    pirn::scope::open(|s| {
        let inventory = s.fork(|| call("update_inventory", services.inventory));
        let order = s.fork(|| call("update_order", services.order));
        let all = s.join()?;
        Ok(format!("{}, {}", inventory.get(&all), order.get(&all)))
    })
}

/// A service that takes some time, or fails.
fn call(name: &str, service: Result<Duration, &str>) -> io::Result<String> {
    let time = service.map_err(io::Error::other)?;
    match thread::sleep_interruptible(time) {
        Ok(()) => Ok(format!("{name} is done")),
        Err(Interrupted) => {
            println!("  {name} was interrupted, and ends");
            Err(Interrupted.into())
        }
    }
}

#[pirn::main]
fn main() {
    let quick = Duration::from_millis(10);
    let services = |inventory, order| Services { inventory, order };

    println!("all is well:");
    report(handle_order(services(Ok(quick), Ok(quick))));

    println!("one fails, and the other, which hangs, is not waited for:");
    report(handle_order(services(
        Ok(HANGS),
        Err("the order is refused"),
    )));

    println!("the caller is interrupted, and so are both:");
    let owner = thread::spawn(move || handle_order(services(Ok(HANGS), Ok(HANGS))));
    thread::sleep(quick);
    owner.thread().interrupt();
    report(owner.join().unwrap());
}

fn report(result: Result<String, JoinError<io::Error>>) {
    match result {
        Ok(response) => println!("  {response}\n"),
        Err(error) => println!("  {error}\n"),
    }
}

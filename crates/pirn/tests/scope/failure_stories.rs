//! The failure cases of structured concurrency, with `handleOrder` as the example: an order needs
//! two services, and one fails. In unstructured code the other subtask is leaked, the interrupt is
//! lost, or the owner waits in vain.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;

use crate::common::watched;
use crate::fixture::*;
use pirn::scope::{Builder, JoinError};
use pirn::thread;

#[derive(Debug, PartialEq)]
struct Response {
    in_stock: u32,
    order: String,
}

/// The services' behaviour, and how the calls have ended.
#[derive(Default)]
struct Services {
    inventory_fails: bool,
    order_hangs: bool,
    inventory_hangs: bool,
    begun: AtomicUsize,
    interrupted: AtomicUsize,
    ended: AtomicUsize,
}

impl Services {
    fn call<T>(&self, hangs: bool, result: Result<T, Oops>) -> Result<T, Oops> {
        self.begun.fetch_add(1, SeqCst);
        let result = match hangs {
            true => thread::sleep_interruptible(FOREVER)
                .map_err(|_| {
                    self.interrupted.fetch_add(1, SeqCst);
                    "interrupted"
                })
                .and(result),
            false => {
                // Not before the other one is under way.
                until(|| self.begun.load(SeqCst) == 2);
                result
            }
        };
        self.ended.fetch_add(1, SeqCst);
        result
    }

    fn update_inventory(&self) -> Result<u32, Oops> {
        let result = if self.inventory_fails {
            Err("out of stock")
        } else {
            Ok(3)
        };
        self.call(self.inventory_hangs, result)
    }

    fn update_order(&self, id: u32) -> Result<String, Oops> {
        self.call(self.order_hangs, Ok(format!("order {id}")))
    }

    fn handle_order(&self, id: u32) -> Result<Response, JoinError<Oops>> {
        Builder::new().name("handle_order").open(|s| {
            let inventory = s.fork(|| self.update_inventory());
            let order = s.fork(|| self.update_order(id));
            let all = s.join()?;
            Ok(Response {
                in_stock: inventory.get(&all),
                order: order.get(&all),
            })
        })
    }

    /// Returns the numbers of calls begun, interrupted, and ended.
    fn counts(&self) -> [usize; 3] {
        [&self.begun, &self.interrupted, &self.ended].map(|count| count.load(SeqCst))
    }
}

#[watched]
fn all_is_well() {
    everywhere(|| {
        let services = Services::default();
        let response = services.handle_order(7).unwrap();
        let order = "order 7".to_string();
        assert_eq!(response, Response { in_stock: 3, order });
        assert_eq!(services.counts(), [2, 0, 2]);
    });
}

#[watched]
fn one_fails_and_the_other_is_cancelled_not_leaked() {
    everywhere(|| {
        let services = Services {
            inventory_fails: true,
            order_hangs: true,
            ..Services::default()
        };
        let result = services.handle_order(7);
        assert!(matches!(result, Err(JoinError::Failed("out of stock"))));
        assert_eq!(services.counts(), [2, 1, 2]);
    });
}

#[watched]
fn the_owner_is_interrupted_and_so_are_both() {
    everywhere(|| {
        let services = Services {
            inventory_hangs: true,
            order_hangs: true,
            ..Services::default()
        };
        let services = &services;
        // The owner is a thread of its own, like one that serves a request.
        let (here, heard) = mpsc::channel();
        let owner = || {
            here.send(thread::current()).unwrap();
            let result = services.handle_order(7);
            assert!(matches!(result, Err(JoinError::Interrupted)));
            assert!(thread::is_interrupted(), "who called it is to know as well");
            assert_eq!(services.counts(), [2, 2, 2]);
        };
        let interrupt = || {
            until(|| services.counts()[0] == 2);
            heard.recv().unwrap().interrupt();
        };
        match thread::current().is_virtual() {
            true => thread::scope(|s| {
                s.spawn(owner);
                interrupt();
            }),
            false => std::thread::scope(|s| {
                s.spawn(owner);
                interrupt();
            }),
        }
    });
}

#[watched]
fn the_server_shuts_down_and_takes_its_requests_along() {
    everywhere(|| {
        let services = Services {
            inventory_hangs: true,
            order_hangs: true,
            ..Services::default()
        };
        let services = &services;
        let result = Builder::new().name("server").open(|server| {
            server.fork(move || match services.handle_order(7) {
                Err(JoinError::Interrupted) => Err::<Response, _>("shut down"),
                other => panic!("{other:?}"),
            });
            until(|| services.counts()[0] == 2);
            server.cancel();
            server.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::Cancelled)));
        assert_eq!(services.counts(), [2, 2, 2]);
    });
}

#[watched]
fn one_has_failed_and_the_owner_does_not_wait_for_the_long_one() {
    everywhere(|| {
        // Forked first, so that a join in the order of forks would wait for ever.
        let services = Services {
            inventory_hangs: true,
            ..Services::default()
        };
        let services = &services;
        let result = Builder::new().open(|s| {
            let inventory = s.fork(|| services.update_inventory());
            let order = s.fork(|| services.update_order(7).and(Err::<(), _>("refused")));
            let all = s.join()?;
            Ok((inventory.get(&all), order.get(&all)))
        });
        assert!(matches!(result, Err(JoinError::Failed("refused"))));
        assert_eq!(services.counts(), [2, 1, 2]);
    });
}

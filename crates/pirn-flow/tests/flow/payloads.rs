//! Panics whose payload panics when it is dropped: they are failures like any other.

use crate::common::watched;
use pirn::thread::Panic;
use pirn_flow::generator::{Out, generate};
use pirn_flow::graph::{Cause, Graph};
use pirn_flow::prefetch::{Error, prefetch};
use std::io;
use std::panic::panic_any;

/// A payload that panics when it is dropped, with a payload that does, too.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic_any(Bomb(self.0 - 1));
        }
    }
}

fn burst() -> ! {
    panic_any(Bomb(2))
}

#[watched]
fn a_generator_passes_the_panic_on() {
    let mut numbers = generate(8, |_: &mut Out<u32>| -> io::Result<()> { burst() });
    let panic = Panic::catch(|| numbers.next()).unwrap_err();
    let payload = panic.into_payload();
    assert!(payload.is::<Bomb>());
    std::mem::forget(payload);
    assert!(numbers.next().is_none());
}

#[watched]
fn a_supply_fails() {
    let none = prefetch(1, || -> Result<[u32; 1], io::Error> { burst() });
    assert!(matches!(none.take(), Err(Error::Failed(_))));
}

#[watched]
fn a_step_fails() {
    let template = Graph::template().step("burst", |_: &mut ()| -> io::Result<()> { burst() });
    let error = template.build().unwrap().run("burst", &mut ()).unwrap_err();
    assert!(matches!(error.cause, Cause::Panicked(_)), "{error}");
}

//! Panics whose payload panics when it is dropped: they are failures like any other.

use crate::common::watched;
use pirn::thread::Panic;
use pirn_flow::generator::{Out, generate};
use pirn_flow::graph::{Cause, Graph};
use pirn_flow::prefetch::{Error, prefetch};
use pirn_testing::{burst, is_bomb};
use std::io;

#[watched]
fn a_generator_passes_the_panic_on() {
    let mut numbers = generate(8, |_: &mut Out<u32>| -> io::Result<()> { burst() });
    let panic = Panic::catch(|| numbers.next()).unwrap_err();
    assert!(is_bomb(panic.into_payload()));
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

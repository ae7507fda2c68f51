//! An actor that adds up numbers.

use pirn_actor::{Context, Handle};

pub struct Counter(pub u64);

/// Adds a number.
pub struct Add(pub u64);

/// Asks for the sum.
pub struct Total;

/// Asks for the number after this one.
pub struct Next(pub u64);

impl Handle<Add> for Counter {
    type Reply = ();

    fn handle(&mut self, Add(number): Add, _: &Context<Self>) {
        self.0 += number;
    }
}

impl Handle<Total> for Counter {
    type Reply = u64;

    fn handle(&mut self, Total: Total, _: &Context<Self>) -> u64 {
        self.0
    }
}

impl Handle<Next> for Counter {
    type Reply = u64;

    fn handle(&mut self, Next(number): Next, _: &Context<Self>) -> u64 {
        number + 1
    }
}

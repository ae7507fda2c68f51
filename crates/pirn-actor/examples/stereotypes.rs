//! Three stereotypes of actors, a few lines each: a sink, which takes messages and answers none;
//! an actor that runs once; a schedule. The guide, `docs/actors.md`, lists the others.
//!
//! `cargo run -p pirn-actor --example stereotypes [TICKS]`

use pirn_actor::lifecycle::Hooks;
use pirn_actor::{self as actor, Address, AskError, Builder, Context, Exit, Handler};
use std::time::Duration;

/// Runs once: it stops with its first message, and others do not reach it.
struct Migration;

impl Handler<&'static str> for Migration {
    type Reply = String;

    fn handle(&mut self, table: &'static str, context: &Context<Self>) -> String {
        context.stop(); // when this message is done
        format!("{table} is migrated") // the asker gets its answer
    }
}

/// Works on a schedule, which its actor sets when it begins, and which ends with the actor.
struct Clock {
    ticks: u64,
    last: u64,
    sink: Address<String>,
}

#[derive(Clone)]
struct Tick;

impl Clock {
    fn started(&mut self, context: &Context<Self>) {
        context.every(Duration::from_millis(1), Tick);
    }

    fn stopped(&mut self, exit: &Exit) {
        let line = format!("schedule: {exit} after {} ticks", self.ticks);
        self.sink.send(line).expect("the sink is open");
    }
}

impl Handler<Tick> for Clock {
    type Reply = ();

    fn handle(&mut self, Tick: Tick, context: &Context<Self>) {
        self.ticks += 1;
        let line = format!("schedule: tick {}", self.ticks);
        self.sink.send(line).expect("the sink is open");
        if self.ticks >= self.last {
            context.stop();
        }
    }
}

#[pirn::main]
fn main() {
    let ticks = std::env::args().nth(1);
    let last = ticks.map_or(3, |text| text.parse().expect("a number"));

    let mut lines = 0;
    let sink: Address<String> = actor::consumer(move |line: String| {
        lines += 1;
        println!("{lines} {line}");
    });

    let once = actor::spawn(Migration);
    let answer = once.ask("users").expect("it is the first");
    sink.send(format!("run once: {answer}")).unwrap();
    assert_eq!(once.join(), Exit::Stopped);
    assert_eq!(once.ask("orders"), Err(AskError::Gone));

    let hooks = Hooks::new().started(Clock::started).stopped(Clock::stopped);
    let clock = Clock {
        ticks: 0,
        last,
        sink: sink.clone(),
    };
    let clock = Builder::new()
        .spawn_hooked(clock, hooks)
        .expect("a thread starts");
    assert_eq!(clock.join(), Exit::Stopped);
    sink.close(); // handles what has been sent
    assert_eq!(sink.join(), Exit::Closed);
}

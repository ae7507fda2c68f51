//! The actors of these tests: accounts.

use crate::common::Gate;
use pirn_actor::{Context, Handler};
use pirn_nats::wire;
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Account {
    pub balance: i64,
    pub gate: Gate,
}

impl Account {
    pub fn with(balance: i64) -> Account {
        Account {
            balance,
            ..Account::default()
        }
    }
}

/// Adds an amount, and answers with the balance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deposit(pub i64);
wire!(Deposit, "bank.Deposit");

impl Handler<Deposit> for Account {
    type Reply = i64;
    fn handle(&mut self, Deposit(amount): Deposit, _: &Context<Self>) -> i64 {
        assert_ne!(amount, 13, "bad luck");
        self.balance += amount;
        self.balance
    }
}

/// Waits for the account's gate.
#[derive(Serialize, Deserialize)]
pub struct Wait;
wire!(Wait, "bank.Wait");

impl Handler<Wait> for Account {
    type Reply = ();
    fn handle(&mut self, _: Wait, _: &Context<Self>) {
        self.gate.wait();
    }
}

/// Answers with how much time the handler has, in milliseconds.
#[derive(Serialize, Deserialize)]
pub struct TimeLeft;
wire!(TimeLeft, "bank.TimeLeft");

impl Handler<TimeLeft> for Account {
    type Reply = Option<u128>;
    fn handle(&mut self, _: TimeLeft, context: &Context<Self>) -> Option<u128> {
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        context.deadline().map(|at| left(at).as_millis())
    }
}

/// Sleeps until it is interrupted, and answers whether it was.
#[derive(Serialize, Deserialize)]
pub struct Sleep(pub Duration);
wire!(Sleep, "bank.Sleep");

impl Handler<Sleep> for Account {
    type Reply = bool;
    fn handle(&mut self, Sleep(time): Sleep, _: &Context<Self>) -> bool {
        pirn::thread::sleep_interruptible(time).is_err()
    }
}

/// Is as large as one likes, and answered with as much.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Echo(pub String);
wire!(Echo, "bank.Echo");

impl Handler<Echo> for Account {
    type Reply = String;
    fn handle(&mut self, Echo(text): Echo, _: &Context<Self>) -> String {
        // The answer is longer than the message: escapes.
        text.replace('q', "\"")
    }
}

/// Must not be decoded.
#[derive(Serialize)]
pub struct Dangerous;
wire!(Dangerous, "bank.Dangerous");

impl<'de> Deserialize<'de> for Dangerous {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Dangerous, D::Error> {
        panic!("it was decoded");
    }
}

impl Handler<Dangerous> for Account {
    type Reply = ();
    fn handle(&mut self, _: Dangerous, _: &Context<Self>) {}
}

/// Notes what it is sent.
pub struct Log(pub Sender<i64>);

impl Handler<Deposit> for Log {
    type Reply = ();
    fn handle(&mut self, Deposit(amount): Deposit, _: &Context<Self>) {
        let _ = self.0.send(amount);
    }
}

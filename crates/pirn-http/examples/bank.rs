//! An API with an actor for each request, and one for each account:
//! `cargo run --release -p pirn-http --example bank [ADDRESS]`.
//!
//! ```text
//! curl -d 100 localhost:8080/accounts/7
//! curl -d -30 localhost:8080/accounts/7
//! curl localhost:8080/accounts/7
//! ```
//!
//! The actor of a request has a thread of its own, and may wait wherever it likes: it ends after a
//! second at the latest. Requests share the accounts. Each account handles one message at a time,
//! so nothing is locked, and an account without work has no thread.

use pirn_actor::{self as actor, Address, AskError, Builder, Context, Handler, Ref};
use pirn_http::{Error, Request, Server, Status};
use std::collections::HashMap;
use std::time::Duration;

/// How long a request may take.
const LIMIT: Duration = Duration::from_secs(1);

struct Account {
    balance: i64,
}

/// Adds an amount, or takes one that is negative.
struct Add(i64);

/// The account has less than the client takes, or no room for what the client adds.
struct Refused;

impl Handler<Add> for Account {
    type Reply = Result<i64, Refused>;

    fn handle(&mut self, Add(amount): Add, _: &Context<Self>) -> Result<i64, Refused> {
        let balance = self.balance.checked_add(amount).ok_or(Refused)?;
        if balance < 0 {
            return Err(Refused);
        }
        self.balance = balance;
        Ok(balance)
    }
}

/// All accounts, by number.
#[derive(Default)]
struct Accounts(HashMap<u32, Ref<Account>>);

/// Returns the account with this number. A number without an account gets a new one.
struct Find(u32);

impl Handler<Find> for Accounts {
    type Reply = Ref<Account>;

    fn handle(&mut self, Find(number): Find, _: &Context<Self>) -> Ref<Account> {
        let account = self.0.entry(number);
        let make = || actor::spawn(Account { balance: 0 });
        account.or_insert_with(make).clone()
    }
}

/// What a client wants.
struct Order {
    account: u32,
    amount: i64,
}

type Outcome = Result<Result<i64, Refused>, AskError>;

/// What the actor of a request does.
fn perform(accounts: &Ref<Accounts>, order: Order) -> Outcome {
    accounts.ask(Find(order.account))?.ask(Add(order.amount))
}

fn serve(orders: &Address<Order, Outcome>, request: &mut Request) -> Result<String, Error> {
    let account = request.param("id")?;
    let body = request.bytes()?;
    let amount = match body.is_empty() {
        true => Some(0),
        false => str::from_utf8(&body).ok().and_then(|it| it.parse().ok()),
    };
    let order = Order {
        account,
        amount: amount.ok_or(Status::BAD_REQUEST)?,
    };
    match orders.ask_timeout(order, LIMIT) {
        Ok(Ok(Ok(balance))) => Ok(format!("{balance}\n")),
        Ok(Ok(Err(Refused))) => Err(Status::CONFLICT.into()),
        Ok(Err(error)) | Err(error) => {
            eprintln!("{error}"); // The client is not told.
            Err(Status::SERVICE_UNAVAILABLE.into())
        }
    }
}

#[pirn::main]
fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    let accounts = actor::spawn(Accounts::default());
    let requests = Builder::new().name("request").capacity(1000);
    let orders = requests.each(move |order| perform(&accounts, order));
    Server::with_state(orders)
        .get("/accounts/{id}", serve)
        .post("/accounts/{id}", serve)
        .bind(address)?
        .serve()
}

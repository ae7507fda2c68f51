//! Errors of one's own: `cargo run --release -p pirn-http --example
//! error_handling [ADDRESS]`.
//!
//! ```text
//! curl -d '{"name": "Ada"}' localhost:8080/users
//! curl -d '{"name": ""}' localhost:8080/users
//! curl -d 'nonsense' -H 'accept: application/json' localhost:8080/users
//! ```
//!
//! `?` turns an error of this crate into an answer: 400 if a body is not JSON, for example. It does
//! the same for a type of your own that implements `IntoResponse`. The cause of a 500 is for the
//! log; the client does not see it.

use pirn_http::{Error, IntoResponse, Json, Request, Response, Server, Status, observe};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Deserialize)]
struct NewUser {
    name: String,
}

#[derive(Serialize)]
struct User {
    id: u64,
    name: String,
}

/// What may be wrong with a name.
enum BadName {
    Empty,
    Taken(String),
}

impl IntoResponse for BadName {
    fn into_response(self) -> Response {
        match self {
            BadName::Empty => (Status::UNPROCESSABLE_ENTITY, "a name has letters").into_response(),
            BadName::Taken(name) => (Status::CONFLICT, format!("{name} is taken")).into_response(),
        }
    }
}

fn check(name: &str) -> Result<(), BadName> {
    match name {
        "" => Err(BadName::Empty),
        "root" => Err(BadName::Taken(name.to_owned())),
        _ => Ok(()),
    }
}

/// A database that fails from time to time.
#[derive(Default)]
struct Users {
    inserted: AtomicU64,
}

impl Users {
    fn insert(&self) -> Result<u64, std::io::Error> {
        match self.inserted.fetch_add(1, Relaxed) + 1 {
            id if id.is_multiple_of(3) => Err(std::io::Error::other("the database is away")),
            id => Ok(id),
        }
    }
}

fn create(users: &Users, request: &mut Request) -> Result<Json<User>, Error> {
    let NewUser { name } = request.json()?;
    check(&name)?;
    let id = users.insert()?;
    Ok(Json(User { id, name }))
}

#[pirn::main]
fn main() -> std::io::Result<()> {
    tracing_subscriber::fmt().init();
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    Server::with_state(Users::default())
        .post("/users", create)
        .fallback(|request: &mut Request| {
            let detail = format!("there is nothing at {}", request.uri.path());
            Err::<(), _>(Error::new(Status::NOT_FOUND, detail))
        })
        .with(observe::spans())
        .bind(address)?
        .serve()
}

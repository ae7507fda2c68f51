//! An API of things to do, in memory: `cargo run --release -p pirn-http --example todos [ADDRESS]`.
//!
//! ```text
//! curl -d '{"text": "buy milk"}' -H 'content-type: application/json' localhost:8080/todos
//! curl 'localhost:8080/todos?offset=0&limit=10'
//! curl -X PATCH -d '{"completed": true}' localhost:8080/todos/1
//! curl -X DELETE localhost:8080/todos/1
//! ```

use pirn_http::{Error, Json, Request, Server, Status, Timeouts, observe};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

#[derive(Default)]
struct Todos {
    by_id: RwLock<BTreeMap<u64, Task>>,
    last_id: AtomicU64,
}

#[derive(Clone, Serialize)]
struct Task {
    id: u64,
    text: String,
    completed: bool,
}

#[derive(Deserialize)]
struct Page {
    offset: Option<usize>,
    limit: Option<usize>,
}

fn list(todos: &Todos, request: &mut Request) -> Result<Json<Vec<Task>>, Error> {
    let page: Page = request.query_as()?;
    let todos = todos.by_id.read().unwrap();
    let todos = todos.values().skip(page.offset.unwrap_or(0));
    let todos = todos.take(page.limit.unwrap_or(usize::MAX));
    Ok(Json(todos.cloned().collect()))
}

#[derive(Deserialize)]
struct NewTask {
    text: String,
}

fn create(todos: &Todos, request: &mut Request) -> Result<(Status, Json<Task>), Error> {
    let NewTask { text } = request.json()?;
    let task = Task {
        id: todos.last_id.fetch_add(1, Relaxed) + 1,
        text,
        completed: false,
    };
    todos.by_id.write().unwrap().insert(task.id, task.clone());
    Ok((Status::CREATED, Json(task)))
}

#[derive(Deserialize)]
struct Change {
    text: Option<String>,
    completed: Option<bool>,
}

fn update(todos: &Todos, request: &mut Request) -> Result<Json<Task>, Error> {
    let (id, change): (u64, Change) = (request.param("id")?, request.json()?);
    let mut todos = todos.by_id.write().unwrap();
    let task = todos.get_mut(&id).ok_or(Status::NOT_FOUND)?;
    task.text = change.text.unwrap_or_else(|| task.text.clone());
    task.completed = change.completed.unwrap_or(task.completed);
    Ok(Json(task.clone()))
}

fn delete(todos: &Todos, request: &mut Request) -> Result<Status, Error> {
    let id: u64 = request.param("id")?;
    let removed = todos.by_id.write().unwrap().remove(&id);
    removed.ok_or(Status::NOT_FOUND)?;
    Ok(Status::NO_CONTENT)
}

#[pirn::main]
fn main() -> std::io::Result<()> {
    tracing_subscriber::fmt().init();
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    Server::with_state(Todos::default())
        .get("/todos", list)
        .post("/todos", create)
        .patch("/todos/{id}", update)
        .delete("/todos/{id}", delete)
        .with(observe::spans())
        .timeouts(Timeouts::default().handler(Duration::from_secs(10)))
        .bind(address)?
        .serve()
}

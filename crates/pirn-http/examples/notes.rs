//! An API in JSON on SQLite: `cargo run --release -p pirn-http --example notes [ADDRESS [FILE]]`.
//!
//! ```text
//! curl -d '{"text": "buy milk"}' -H 'content-type: application/json' localhost:8080/notes
//! curl localhost:8080/notes
//! curl -X DELETE localhost:8080/notes/1
//! ```
//!
//! SQLite blocks, and has one writer at a time: each request takes one of four connections, and
//! waits for it as long as it may take. A thread that waits costs a page of memory.

use pirn_http::observe::{AccessLog, LogFormat};
use pirn_http::{Error, Json, Request, Server, Status};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

#[derive(Serialize)]
struct Note {
    id: i64,
    text: String,
}

#[derive(Deserialize)]
struct NewNote {
    text: String,
}

/// Connections that requests borrow.
struct Database {
    free: Mutex<Vec<Connection>>,
    returned: Condvar,
}

impl Database {
    fn open(file: &str, connections: usize) -> rusqlite::Result<Database> {
        let open = |_| {
            let connection = Connection::open(file)?;
            connection.busy_timeout(Duration::from_secs(5))?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            Ok(connection)
        };
        let free = (0..connections)
            .map(open)
            .collect::<rusqlite::Result<Vec<_>>>()?;
        let table = "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)";
        free[0].execute(table, [])?;
        Ok(Database {
            free: Mutex::new(free),
            returned: Condvar::new(),
        })
    }

    /// Calls a function with a connection. If it fails, the client is not told why.
    fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        let free = self.free.lock().unwrap();
        let connection = self
            .returned
            .wait_while(free, |free| free.is_empty())
            .unwrap()
            .pop();
        let connection = connection.expect("there is one");
        let result = work(&connection);
        self.free.lock().unwrap().push(connection);
        self.returned.notify_one();
        result.map_err(Error::internal)
    }
}

fn list(database: &Database) -> Result<Json<Vec<Note>>, Error> {
    let notes = database.with(|connection| {
        let mut query = connection.prepare_cached("SELECT id, text FROM notes ORDER BY id")?;
        let notes = query.query_map([], |row| {
            let (id, text) = (row.get(0)?, row.get(1)?);
            Ok(Note { id, text })
        })?;
        notes.collect()
    })?;
    Ok(Json(notes))
}

fn find(database: &Database, request: &mut Request) -> Result<Json<Note>, Error> {
    let id: i64 = request.param("id")?;
    let text = database.with(|connection| {
        let query = "SELECT text FROM notes WHERE id = ?";
        connection
            .query_row(query, [id], |row| row.get(0))
            .optional()
    })?;
    let text = text.ok_or(Status::NOT_FOUND)?;
    Ok(Json(Note { id, text }))
}

fn add(database: &Database, request: &mut Request) -> Result<(Status, Json<Note>), Error> {
    let NewNote { text } = request.json()?;
    let id = database.with(|connection| {
        connection.execute("INSERT INTO notes (text) VALUES (?)", params![text])?;
        Ok(connection.last_insert_rowid())
    })?;
    Ok((Status::CREATED, Json(Note { id, text })))
}

fn delete(database: &Database, request: &mut Request) -> Result<Status, Error> {
    let id: i64 = request.param("id")?;
    let deleted =
        database.with(|connection| connection.execute("DELETE FROM notes WHERE id = ?", [id]))?;
    match deleted {
        0 => Err(Status::NOT_FOUND.into()),
        _ => Ok(Status::NO_CONTENT),
    }
}

#[pirn::main]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:8080".into());
    let file = arguments.next().unwrap_or("notes.db".into());
    Server::with_state(Database::open(&file, 4)?)
        .get("/notes", list)
        .post("/notes", add)
        .get("/notes/{id}", find)
        .delete("/notes/{id}", delete)
        .with(AccessLog::new(io::stdout()).format(LogFormat::Json))
        .bind(address)?
        .serve()?;
    Ok(())
}

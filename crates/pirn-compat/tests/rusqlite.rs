//! `rusqlite`: many connections to one database file, waiting for each other in SQLite's own
//! busy handler, which sleeps in C.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pirn::thread;
use pirn_compat::{self as common, Latch, NEVER, THREADS, on_threads, watched};
use rusqlite::{Connection, ErrorCode, TransactionBehavior, params};
use tempfile::TempDir;

/// A database file in a directory of its own.
struct Database {
    path: PathBuf,
    _directory: TempDir,
}

impl Database {
    fn new(journal: &str, schema: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("test.db");
        let connection = connect(&path);
        connection
            .pragma_update_and_check(None, "journal_mode", journal, |row| {
                assert_eq!(row.get::<_, String>(0)?, journal);
                Ok(())
            })
            .unwrap();
        connection.execute_batch(schema).unwrap();
        Database {
            path,
            _directory: directory,
        }
    }

    fn connect(&self) -> Connection {
        connect(&self.path)
    }
}

/// A connection that waits for others rather than fail with `SQLITE_BUSY`, and does not wait for
/// the disk: no test here survives a power cut.
fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(NEVER).unwrap();
    connection
        .pragma_update(None, "synchronous", "OFF")
        .unwrap();
    connection
}

/// Sleeps from 0 to 100 ms, longer for each thread. SQLite tries again after fixed times, at the
/// end every 100 ms: of threads that begin together all try together, and one in 100 ms gets on.
fn stagger(index: usize) {
    const PERIOD: Duration = Duration::from_millis(100);
    thread::sleep(PERIOD * index as u32 / THREADS as u32);
}

/// All writers run into the lock that one thread holds until they have.
fn writers_queue(journal: &str) {
    const EACH: usize = 3;
    let database = Database::new(
        journal,
        "CREATE TABLE entry (writer INTEGER, number INTEGER)",
    );
    let (held, locking) = (Latch::new(1), Latch::new(THREADS));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut holder = database.connect();
            let transaction = holder
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .unwrap();
            held.arrive();
            locking.wait();
            transaction.commit().unwrap();
        });
        on_threads(THREADS, |writer| {
            let mut connection = database.connect();
            held.wait();
            stagger(writer);
            locking.arrive();
            for number in 0..EACH {
                let transaction = connection
                    .transaction_with_behavior(TransactionBehavior::Immediate)
                    .unwrap();
                transaction
                    .execute("INSERT INTO entry VALUES (?, ?)", params![writer, number])
                    .unwrap();
                transaction.commit().unwrap();
            }
        });
    });

    let connection = database.connect();
    let mut query = connection
        .prepare("SELECT writer, number FROM entry ORDER BY writer, rowid")
        .unwrap();
    let entries: Vec<(usize, usize)> = query
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let written = (0..THREADS).flat_map(|writer| (0..EACH).map(move |number| (writer, number)));
    assert!(entries.into_iter().eq(written));
}

#[watched]
fn writers_queue_with_a_rollback_journal() {
    writers_queue("delete");
}

#[watched]
fn writers_queue_with_a_write_ahead_log() {
    writers_queue("wal");
}

/// Writers move money between accounts; whenever a reader looks, the sum is the same.
#[watched]
fn readers_see_whole_transactions() {
    const ACCOUNTS: usize = 10;
    const TOTAL: i64 = 1000 * ACCOUNTS as i64;
    let database = Database::new("wal", "CREATE TABLE account (id INTEGER, balance INTEGER)");
    for id in 0..ACCOUNTS {
        database
            .connect()
            .execute("INSERT INTO account VALUES (?, 1000)", [id])
            .unwrap();
    }
    let sum = |connection: &Connection| -> i64 {
        connection
            .query_one("SELECT sum(balance) FROM account", [], |row| row.get(0))
            .unwrap()
    };
    on_threads(THREADS, |index| {
        let mut connection = database.connect();
        if index % 4 != 0 {
            for _ in 0..10 {
                assert_eq!(sum(&connection), TOTAL);
            }
            return;
        }
        stagger(index);
        for round in 0..4 {
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .unwrap();
            let transfer = "UPDATE account SET balance = balance + ?2 WHERE id = ?1";
            let from = (index + round) % ACCOUNTS;
            let to = (index + 3 * round + 1) % ACCOUNTS;
            transaction.execute(transfer, params![from, -7]).unwrap();
            thread::yield_now();
            transaction.execute(transfer, params![to, 7]).unwrap();
            transaction.commit().unwrap();
        }
    });
    assert_eq!(sum(&database.connect()), TOTAL);
}

#[watched]
fn the_busy_timeout_passes_for_all_writers() {
    const TIMEOUT: Duration = Duration::from_millis(100);
    let database = Database::new("delete", "CREATE TABLE entry (number INTEGER)");
    let holder = database.connect();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    on_threads(THREADS, |_| {
        let connection = database.connect();
        connection.busy_timeout(TIMEOUT).unwrap();
        let start = Instant::now();
        let error = connection.execute_batch("BEGIN IMMEDIATE").unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
        assert!(start.elapsed() >= TIMEOUT);
    });
    holder.execute_batch("COMMIT").unwrap();
}

/// SQLite calls back into Rust, where the thread blocks: all are in their busy handlers at once.
#[watched]
fn all_threads_block_in_their_busy_handlers() {
    let database = Database::new("delete", "CREATE TABLE entry (writer INTEGER)");
    let busy = Arc::new((Latch::new(THREADS), Latch::new(1)));
    let holder = database.connect();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    thread::scope(|scope| {
        let writers = scope.spawn(|| {
            on_threads(THREADS, |writer| {
                let mut connection = database.connect();
                let latches = Arc::clone(&busy);
                let wait = move |earlier_calls| {
                    let (all_busy, released) = &*latches;
                    if earlier_calls == 0 {
                        all_busy.arrive();
                    }
                    released.wait();
                    thread::sleep(Duration::from_millis(1)); // then SQLite tries again
                    true
                };
                connection.busy_handler(Some(wait)).unwrap();
                connection
                    .execute_batch("BEGIN IMMEDIATE")
                    .expect("begin when the holder has committed");
                connection.busy_timeout(NEVER).unwrap();
                connection
                    .execute("INSERT INTO entry VALUES (?)", [writer])
                    .unwrap();
                connection.execute_batch("COMMIT").unwrap();
            });
        });
        let (all_busy, released) = &*busy;
        all_busy.wait();
        holder.execute_batch("COMMIT").unwrap();
        released.arrive();
        writers.join().unwrap();
    });
    let writers: usize = holder
        .query_one("SELECT count(DISTINCT writer) FROM entry", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(writers, THREADS);
}

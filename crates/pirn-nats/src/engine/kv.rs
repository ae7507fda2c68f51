//! The registry of names: a bucket of JetStream's key-value store whose entries live as long as a
//! lease.
//!
//! ```text
//!   no entry --create--> revision r --update if r--> revision s --...--> no update for as long as
//!      ^                     |                           |               a lease: the server drops it
//!      +---delete if r-------+-----------delete if s-----+--------------------------+
//! ```
//!
//! An update whose answer got lost has perhaps been made: then the revision is another one, and the
//! value still this holder's. So after a refusal the entry is looked at.
//!
//! Rejected: a time limit per key and markers of expiry. They need a server of version 2.11.

use super::nats::Registry;
use super::runtime::Runtime;
use super::{Names, NotHeld};
use crate::error::NodeError;
use crate::poison::locked;
use crate::subject::key;
use async_nats::jetstream::Context;
use async_nats::jetstream::kv::{CreateErrorKind, Entry, Operation, Store, UpdateErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use bytes::Bytes;
use core::time::Duration;
use std::sync::{Arc, Mutex};

/// How often a name is asked for that has an owner, and has none when the owner is looked up.
/// Once is the rule: a second time, it was another's for no longer than the answer took.
const ATTEMPTS: u32 = 4;

pub(super) struct Kv {
    runtime: Arc<Runtime>,
    jetstream: Context,
    registry: Registry,
    /// Set once the bucket has been found, or made.
    store: Mutex<Option<Store>>,
}

impl Kv {
    pub(super) fn new(runtime: Arc<Runtime>, jetstream: Context, registry: Registry) -> Kv {
        Kv {
            runtime,
            jetstream,
            registry,
            store: Mutex::new(None),
        }
    }

    /// Returns the bucket.
    fn store(&self, limit: Duration) -> Result<Store, NodeError> {
        let found = locked(&self.store).clone();
        if let Some(store) = found {
            return Ok(store);
        }
        let open = open(self.jetstream.clone(), self.registry.clone());
        let store = self.runtime.run_within(limit, open)??;
        *locked(&self.store) = Some(store.clone());
        Ok(store)
    }

    /// Does something with the bucket. After an error the bucket is looked for again: the server's
    /// store may be a new one.
    fn on_store<T, E, F>(&self, limit: Duration, f: impl FnOnce(Store) -> F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<NodeError> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let store = self.store(limit)?;
        let done = self.runtime.run_within(limit, f(store));
        let done = done.map_err(E::from).flatten();
        done.inspect_err(|_| *locked(&self.store) = None)
    }
}

/// Returns the bucket. Makes it if it does not exist.
async fn open(jetstream: Context, registry: Registry) -> Result<Store, NodeError> {
    let store = match jetstream.get_key_value(&registry.bucket).await {
        Ok(store) => store,
        Err(_) => {
            let made = jetstream.create_stream(config(&registry)).await;
            made.map_err(NodeError::unavailable)?;
            let found = jetstream.get_key_value(&registry.bucket).await;
            found.map_err(NodeError::unavailable)?
        }
    };
    let lease = store.stream.cached_info().config.max_age;
    if lease != registry.lease {
        return Err(NodeError::unavailable(format_args!(
            "the leases of this system last {lease:?}, not {:?}",
            registry.lease
        )));
    }
    Ok(store)
}

/// Returns the stream that is the bucket. (`create_key_value` first asks for the account's limits,
/// and does not understand what a server of version 2.9 answers.)
fn config(registry: &Registry) -> Config {
    Config {
        name: format!("KV_{}", registry.bucket),
        description: Some("names of pirn-nats: one holder each".to_string()),
        subjects: vec![format!("$KV.{}.>", registry.bucket)],
        max_messages_per_subject: 1,
        max_age: registry.lease,
        duplicate_window: registry.lease.min(Duration::from_secs(120)),
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        // The leader answers reads: other servers may not know a name's holder yet.
        allow_direct: false,
        // A server that is started again must still know it.
        storage: StorageType::File,
        num_replicas: registry.replicas,
        ..Config::default()
    }
}

/// Returns the entry, or `None` if it has been deleted.
async fn entry(store: &Store, key: &str) -> Result<Option<Entry>, NodeError> {
    let entry = store.entry(key).await.map_err(NodeError::unavailable)?;
    Ok(entry.filter(|entry| entry.operation == Operation::Put))
}

async fn take(store: Store, key: String, holder: Bytes) -> Result<u64, NotHeld> {
    let mut attempts = ATTEMPTS;
    loop {
        let error = match store.create(&key, holder.clone()).await {
            Ok(revision) => return Ok(revision),
            Err(error) => error,
        };
        attempts -= 1;
        match entry(&store, &key).await {
            Ok(Some(entry)) if entry.value == holder => return Ok(entry.revision),
            Ok(Some(entry)) => return Err(NotHeld::By(entry.value.into())),
            // It had an owner, and has been given back, or has run out, in this moment.
            Ok(None) if error.kind() == CreateErrorKind::AlreadyExists && attempts > 0 => {}
            Ok(None) | Err(_) => return Err(NotHeld::Unknown(NodeError::unavailable(error))),
        }
    }
}

async fn keep(store: Store, key: String, holder: Bytes, revision: u64) -> Result<u64, NotHeld> {
    let error = match store.update(&key, holder.clone(), revision).await {
        Ok(revision) => return Ok(revision),
        Err(error) => error,
    };
    if error.kind() != UpdateErrorKind::WrongLastRevision {
        return Err(NotHeld::Unknown(NodeError::unavailable(error)));
    }
    match entry(&store, &key).await.map_err(NotHeld::Unknown)? {
        Some(entry) if entry.value == holder => {
            let again = store.update(&key, holder, entry.revision).await;
            again.map_err(|error| NotHeld::Unknown(NodeError::unavailable(error)))
        }
        Some(entry) => Err(NotHeld::By(entry.value.into())),
        None => Err(NotHeld::By(Vec::new())),
    }
}

impl Names for Kv {
    fn take(&self, name: &str, holder: &[u8], limit: Duration) -> Result<u64, NotHeld> {
        let (key, holder) = (key(name), Bytes::copy_from_slice(holder));
        self.on_store(limit, |store| take(store, key, holder))
    }

    fn keep(
        &self,
        name: &str,
        holder: &[u8],
        revision: u64,
        limit: Duration,
    ) -> Result<u64, NotHeld> {
        let (key, holder) = (key(name), Bytes::copy_from_slice(holder));
        self.on_store(limit, |store| keep(store, key, holder, revision))
    }

    fn release(&self, name: &str, revision: u64, limit: Duration) {
        let key = key(name);
        // If it fails, the lease runs out.
        let _ = self.on_store(limit, |store| async move {
            let deleted = store.delete_expect_revision(key, Some(revision)).await;
            deleted.map_err(NodeError::unavailable)
        });
    }

    fn holder(&self, name: &str, limit: Duration) -> Result<Option<(Vec<u8>, u64)>, NodeError> {
        let key = key(name);
        let found = self.on_store(limit, |store| async move { entry(&store, &key).await });
        Ok(found?.map(|entry| (entry.value.into(), entry.revision)))
    }
}

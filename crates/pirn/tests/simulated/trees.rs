//! Trees of scopes, whatever their subtasks and owners do: no thread of a scope is there after it,
//! and an interrupt of the root ends all.

use crate::common::{Count, below, millis, nap};
use pirn::scope::{self, JoinError};
use pirn::thread::{self, Panic};
use std::panic::resume_unwind;

#[derive(Debug)]
struct Failed;

/// Opens a scope with some subtasks, each of which may do the same.
fn tree(depth: u64, all: &Count) -> Result<(), Failed> {
    let own = Count::default();
    let mut builder = scope::Builder::new();
    if below(3) == 0 {
        builder = builder.timeout(millis(1 + below(30)));
    }
    if below(3) == 0 {
        builder = builder.limit(1 + below(2) as usize);
    }
    let way = below(8);
    let result = Panic::catch(|| {
        builder.open_with(scope::await_all(), |s| {
            for _ in 0..1 + below(3) {
                let (own, all) = (&own, all);
                s.fork(move || {
                    let _both = (own.add().0, all.add().0);
                    let slept = nap(10);
                    match below(6) {
                        0 => Err(Failed),
                        1 => resume_unwind(Box::new("a bug")),
                        _ if !slept => Err(Failed),
                        _ if depth == 0 => Ok(()),
                        _ => tree(depth - 1, all),
                    }
                });
                if below(6) == 0 {
                    s.cancel();
                }
            }
            match way {
                0 => return Err(JoinError::Failed(Failed)),
                1 => resume_unwind(Box::new("a bug of the block")),
                2 => drop(nap(5)),
                _ => {}
            }
            s.join()?;
            Ok(())
        })
    });
    assert_eq!(own.get(), 0, "a subtask outlives its scope");
    match result {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Failed),
    }
}

#[pirn_sim::test(seeds(0..500), pauses(100, millis(20)))]
fn no_thread_outlives_its_scope() {
    let all = Count::default();
    let roots: Vec<_> = (0..2)
        .map(|_| {
            let all = all.clone();
            thread::spawn(move || drop(tree(2, &all)))
        })
        .collect();
    for root in &roots {
        if below(2) == 0 {
            nap(30);
            root.thread().interrupt();
        }
    }
    roots.into_iter().for_each(|it| it.join().unwrap());
    assert_eq!(all.get(), 0);
    assert!(scope::snapshot().is_empty(), "{:?}", scope::snapshot());
}

//! The output about scopes: `Debug`, and the tree of all scopes.

use std::sync::mpsc;

use crate::common::watched;
use crate::fixture::*;
use pirn::scope::{self, Builder, JoinError, ScopeInfo};
use pirn::thread;

/// Returns the scope of this name.
#[track_caller]
fn find(name: &str) -> ScopeInfo {
    let mut all = scope::snapshot();
    all.retain(|scope| scope.name.as_deref() == Some(name));
    assert_eq!(all.len(), 1, "{name}: {all:?}");
    all.remove(0)
}

/// Returns whether a scope of this name is open.
fn is_open(name: &str) -> bool {
    let all = scope::snapshot();
    all.iter().any(|scope| scope.name.as_deref() == Some(name))
}

#[watched]
fn debug_shows_name_owner_and_subtasks() {
    everywhere(|| {
        let result = Builder::new().name("duke").open(|s| {
            let shown = format!("{s:?}");
            assert!(shown.contains("duke"), "{shown}");
            assert!(shown.contains("subtasks: []"), "{shown}");
            let (here, heard) = mpsc::channel();
            s.fork(move || {
                here.send(thread::current().id()).unwrap();
                forever::<()>()
            });
            let id = format!("{:?}", heard.recv().unwrap());
            let number = id.trim_start_matches("ThreadId(").trim_end_matches(')');
            let shown = format!("{s:?}");
            assert!(shown.contains(&format!("#{number}]")), "{id} in {shown}");
            let owner = format!("owner: {:?}", thread::current());
            assert!(shown.contains(&owner), "{owner} in {shown}");
            assert!(!shown.contains("cancelled"), "{shown}");
            s.cancel();
            assert!(format!("{s:?}").contains("/cancelled"));
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::Cancelled)));
    });
}

/// Returns a name that no other test uses.
fn unique(label: &str) -> String {
    format!("{label} of {:?}", thread::current().id())
}

#[watched]
fn the_tree_shows_nested_scopes() {
    everywhere(|| {
        let me = thread::current().id();
        let [outer, inner, deep] = ["outer", "inner", "deep"].map(unique);
        let name = deep.clone();
        let result = Builder::new().name(&*outer).open(|s| {
            let (here, heard) = mpsc::channel();
            s.fork(move || {
                let result = Builder::new().name(&*name).open(|s| {
                    let ids = here.clone();
                    s.fork(move || {
                        ids.send(thread::current().id()).unwrap();
                        forever::<()>()
                    });
                    here.send(thread::current().id()).unwrap();
                    s.join()?;
                    Ok(())
                });
                result.map_err(|_| "cancelled")
            });
            let subtasks = [heard.recv().unwrap(), heard.recv().unwrap()];
            Builder::new().name(&*inner).open::<Oops, _, _>(|s| {
                let (outer, inner, deep) = (find(&outer), find(&inner), find(&deep));
                assert_eq!((outer.owner.id(), inner.owner.id()), (me, me));
                assert_eq!(inner.parent, Some(outer.id));
                assert_eq!(deep.parent, Some(outer.id));
                assert!(outer.subtask_ids().eq([deep.owner.id()]));
                assert!(subtasks.contains(&deep.owner.id()));
                assert_eq!(deep.subtasks.len(), 1);
                assert!(subtasks.contains(&deep.subtasks[0].id()));
                assert!(inner.subtasks.is_empty());
                assert!(!outer.cancelled);
                s.join()?;
                Ok(())
            })?;
            assert!(!is_open(&inner));
            s.cancel();
            assert!(find(&outer).cancelled);
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::Cancelled)), "{result:?}");
        for name in [outer, inner, deep] {
            assert!(!is_open(&name), "{name} is left behind");
        }
    });
}

#[watched]
fn subtasks_are_shown_until_they_end_also_when_cancelled() {
    everywhere(|| {
        let name = unique("busy");
        let (go, gone) = mpsc::channel::<()>();
        let (here, heard) = mpsc::channel();
        let result = Builder::new().name(&*name).open(|s| {
            for _ in 0..40 {
                let here = here.clone();
                s.fork(move || {
                    here.send(()).unwrap();
                    forever::<()>()
                });
            }
            s.fork(move || {
                here.send(()).unwrap();
                gone.recv().unwrap_err(); // whatever happens
                Ok(())
            });
            for _ in 0..41 {
                heard.recv().unwrap();
            }
            assert_eq!(find(&name).subtasks.len(), 41);
            s.cancel();
            until(|| find(&name).subtasks.len() == 1);
            assert!(find(&name).cancelled);
            drop(go);
            s.join()?;
            Ok(())
        });
        assert!(matches!(result, Err(JoinError::Cancelled)));
        assert!(!is_open(&name));
    });
}

#[watched]
fn a_scope_that_panics_is_forgotten() {
    everywhere(|| {
        let name = unique("panicking");
        panic_of(|| {
            Builder::new().name(&*name).open::<Oops, (), _>(|_| {
                assert!(is_open(&name));
                panic!("out of it");
            })
        });
        assert!(!is_open(&name));
    });
}

#[watched]
fn snapshots_while_scopes_come_and_go() {
    let results = scope::open_with(scope::await_all::<Oops>(), |s| {
        for _ in 0..4 {
            s.fork(|| {
                for _ in 0..200 {
                    let result = scope::open_with(scope::await_all::<Oops>(), |s| {
                        for _ in 0..3 {
                            s.fork(|| {
                                thread::yield_now();
                                Ok(())
                            });
                        }
                        s.join()?;
                        Ok(())
                    });
                    result.unwrap();
                }
                Ok(())
            });
        }
        for _ in 0..500 {
            let all = scope::snapshot();
            assert!(all.is_sorted_by_key(|scope| scope.id));
            assert!(!format!("{all:?}").is_empty());
            thread::yield_now();
        }
        s.join()?;
        Ok(())
    });
    results.unwrap();
}

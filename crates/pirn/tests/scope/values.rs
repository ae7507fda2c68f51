//! Scoped values in scopes: subtasks inherit what was bound when the scope was opened.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use crate::common::watched;
use crate::fixture::*;
use pirn::scope::{self, Builder, JoinError, State};
use pirn::thread;

pirn::scoped_value! {
    static NAME: str;
    static ID: u32;
}

const STRUCTURE: &str =
    "a subtask was forked while scoped values are bound that were not when its scope was opened";

/// What a subtask of a scope opened here reads as `NAME`.
fn name_in_subtask() -> Option<String> {
    let name = Builder::new().open::<Oops, _, _>(|s| {
        let subtask = s.fork(|| Ok(NAME.try_with(str::to_owned)));
        let all = s.join()?;
        Ok(subtask.get(&all))
    });
    name.unwrap()
}

/// What a subtask of a subtask reads.
fn name_in_grandchild() -> Option<String> {
    let name = Builder::new().open::<Oops, _, _>(|s| {
        let subtask = s.fork(move || Ok(name_in_subtask()));
        let all = s.join()?;
        Ok(subtask.get(&all))
    });
    name.unwrap()
}

#[watched]
fn subtasks_and_theirs_inherit() {
    everywhere(|| {
        assert_eq!(name_in_subtask(), None);
        assert_eq!(name_in_grandchild(), None);
        let name = String::from("x");
        NAME.bind(&name, || {
            assert_eq!(name_in_subtask().unwrap(), "x");
            assert_eq!(name_in_grandchild().unwrap(), "x");
            NAME.bind("y", || assert_eq!(name_in_subtask().unwrap(), "y"));
            assert_eq!(name_in_subtask().unwrap(), "x");
        });
        assert_eq!(name_in_subtask(), None);
    });
}

#[watched]
fn the_value_itself_is_inherited() {
    everywhere(|| {
        let name = String::from("x");
        let result = NAME.bind(&name, || {
            Builder::new().open::<Oops, _, _>(|s| {
                s.fork(|| {
                    NAME.with(|bound| assert!(std::ptr::eq(bound, &*name), "a copy"));
                    Ok(())
                });
                s.join()?;
                Ok(())
            })
        });
        result.unwrap();
    });
}

#[watched]
fn a_subtask_binds_for_itself_and_its_own() {
    everywhere(|| {
        let names = NAME.bind("x", || {
            Builder::new().open::<Oops, _, _>(|s| {
                let bound = AtomicBool::new(false);
                let bound: &'static AtomicBool = Box::leak(Box::new(bound));
                let rebinds = s.fork(move || {
                    let inner = NAME.bind("y", || {
                        bound.store(true, SeqCst);
                        name_in_subtask()
                    });
                    Ok((inner, NAME.cloned_text()))
                });
                let sibling = s.fork(move || {
                    until(|| bound.load(SeqCst));
                    Ok(NAME.cloned_text())
                });
                let all = s.join()?;
                assert_eq!(NAME.cloned_text(), "x");
                Ok((rebinds.get(&all), sibling.get(&all)))
            })
        });
        let ((inner, after), sibling) = names.unwrap();
        assert_eq!(
            (inner.as_deref(), &*after, &*sibling),
            (Some("y"), "x", "x")
        );
    });
}

/// Returns the bound text.
trait ClonedText {
    fn cloned_text(&self) -> String;
}

impl ClonedText for pirn::ScopedValue<str> {
    fn cloned_text(&self) -> String {
        self.with(str::to_owned)
    }
}

#[watched]
fn a_fork_inside_a_later_binding_panics_and_the_scope_goes_on() {
    everywhere(|| {
        for outside in [false, true] {
            let fork_inside = || {
                let (begun, drops) = (AtomicUsize::new(0), Drops::default());
                let value = Builder::new().open::<Oops, _, _>(|s| {
                    let before = s.fork(|| Ok(begun.fetch_add(1, SeqCst)));
                    let token = drops.token();
                    // Bound again.
                    let message = NAME.bind("later", || {
                        panic_of(|| {
                            s.fork(move || {
                                drop(token);
                                Ok(())
                            })
                        })
                    });
                    assert!(message.starts_with(STRUCTURE), "{message}");
                    drops.assert_all(1);
                    assert!(!s.is_cancelled());
                    let after = s.fork(|| Ok(NAME.is_bound()));
                    assert_eq!((before.index(), after.index()), (0, 1));
                    let all = s.join()?;
                    before.get(&all);
                    Ok(after.get(&all))
                });
                assert_eq!(value.unwrap(), outside);
                assert_eq!(begun.load(SeqCst), 1);
            };
            match outside {
                true => NAME.bind("outside", fork_inside),
                false => fork_inside(),
            }
        }
    });
}

#[watched]
fn a_fork_inside_a_later_binding_that_nobody_catches() {
    everywhere(|| {
        let (begun, interrupted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let message = panic_of(|| {
            Builder::new().open::<Oops, _, _>(|s| {
                s.fork(|| counted_forever::<()>(&begun, &interrupted));
                until(|| begun.load(SeqCst) == 1);
                ID.bind(&7, || s.fork(|| Ok(())));
                s.join()?;
                Ok(())
            })
        });
        assert!(message.starts_with(STRUCTURE), "{message}");
        assert_eq!(interrupted.load(SeqCst), 1);
        assert!(!ID.is_bound());
    });
}

#[watched]
fn a_scope_opened_inside_a_binding_serves_there() {
    everywhere(|| {
        let result = Builder::new().open::<Oops, _, _>(|outer| {
            let inner = ID.bind(&7, || {
                // The inner scope knows the binding, the outer one does not.
                Builder::new().open::<Oops, _, _>(|inner| {
                    let message = panic_of(|| outer.fork(|| Ok(())));
                    assert!(message.starts_with(STRUCTURE), "{message}");
                    let id = inner.fork(|| Ok(ID.get()));
                    let all = inner.join()?;
                    Ok(id.get(&all))
                })
            })?;
            let bound = outer.fork(|| Ok(ID.is_bound()));
            let all = outer.join()?;
            Ok((inner, bound.get(&all)))
        });
        assert_eq!(result.unwrap(), (7, false));
    });
}

#[watched]
fn a_join_inside_a_later_binding() {
    everywhere(|| {
        let value = Builder::new().open::<Oops, _, _>(|s| {
            let id = s.fork(|| Ok(ID.cloned_or(3)));
            let all = ID.bind(&7, || s.join())?;
            Ok(id.get(&all))
        });
        assert_eq!(value.unwrap(), 3);
    });
}

#[watched]
fn a_panic_of_a_subtask_ends_its_bindings_only() {
    everywhere(|| {
        let result = ID.bind(&1, || {
            let result = Builder::new().open_with(scope::await_all::<Oops>(), |s| {
                let panics = s.fork(|| -> Result<(), Oops> { ID.bind(&2, || panic!("bound")) });
                s.join()?;
                assert_eq!(panics.state(), State::Failed);
                Ok(())
            });
            assert_eq!(ID.get(), 1);
            result
        });
        result.unwrap();
    });
}

#[watched]
fn many_bindings_in_many_subtasks() {
    everywhere(|| {
        let sum = ID.bind(&1, || {
            Builder::new().open_with(scope::all_successful(), |s| {
                for i in 0..50 {
                    s.fork(move || {
                        ID.bind(&i, || {
                            thread::yield_now();
                            assert_eq!(ID.get(), i);
                        });
                        Ok::<_, Oops>(ID.get())
                    });
                }
                Ok(s.join()?.into_output().into_iter().sum::<u32>())
            })
        });
        assert_eq!(sum.unwrap(), 50);
    });
}

#[watched]
fn threads_of_other_kinds_inherit_nothing_from_a_subtask() {
    everywhere(|| {
        let result: Result<_, JoinError<Oops>> = ID.bind(&1, || {
            Builder::new().open(|s| {
                let seen = s.fork(|| {
                    let spawned = thread::spawn(|| ID.is_bound()).join().unwrap();
                    let scoped = thread::scope(|s| s.spawn(|| ID.is_bound()).join().unwrap());
                    Ok((ID.is_bound(), spawned, scoped))
                });
                let all = s.join()?;
                Ok(seen.get(&all))
            })
        });
        assert_eq!(result.unwrap(), (true, false, false));
    });
}

//! Scopes in scopes, and scopes in all places where code can run.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::common::{on_virtual, watched};
use crate::fixture::*;
use pirn::scope::{self, Builder, JoinError};
use pirn::thread;

/// Sums up to `n` by halves, each in a subtask.
fn sum(from: u64, to: u64) -> Result<u64, JoinError<Oops>> {
    if to - from == 1 {
        return Ok(from);
    }
    let middle = from.midpoint(to);
    Builder::new().open(|s| {
        let low = s.fork(move || sum(from, middle).map_err(|_| "low"));
        let high = s.fork(move || sum(middle, to).map_err(|_| "high"));
        let all = s.join()?;
        Ok(low.get(&all) + high.get(&all))
    })
}

#[watched]
fn scopes_in_subtasks() {
    everywhere(|| {
        assert_eq!(sum(0, 1000).unwrap(), 1000 * 999 / 2);
    });
}

/// Opens a scope in a subtask of a scope in a subtask, this many times.
fn descend(depth: u32) -> Result<u32, Oops> {
    if depth == 0 {
        return Ok(0);
    }
    let result = pirn::scope::open(|s| {
        let next = s.fork(move || descend(depth - 1));
        let all = s.join()?;
        Ok(next.get(&all) + 1)
    });
    result.map_err(|_| "too deep")
}

#[watched]
fn a_thousand_subtasks_deep() {
    assert_eq!(descend(1000).unwrap(), 1000);
    assert_eq!(on_virtual(|| descend(1000)).unwrap(), 1000);
}

/// Opens a scope in a scope on the same thread, this many times; each runs a subtask.
fn nest(depth: u32) -> Result<u32, JoinError<Oops>> {
    pirn::scope::open(|s| {
        let one = s.fork(|| Ok(1));
        let rest = if depth == 0 { 0 } else { nest(depth - 1)? };
        let all = s.join()?;
        Ok(one.get(&all) + rest)
    })
}

#[watched]
fn a_thousand_scopes_on_one_stack() {
    let builder = thread::Builder::new().stack_size(64 << 20);
    let nested = builder.spawn(|| nest(1000).unwrap()).unwrap();
    assert_eq!(nested.join().unwrap(), 1001);
    let builder = std::thread::Builder::new().stack_size(64 << 20);
    let nested = builder.spawn(|| nest(1000).unwrap()).unwrap();
    assert_eq!(nested.join().unwrap(), 1001);
}

#[watched]
fn one_after_the_other() {
    everywhere(|| {
        for i in 0..100 {
            let value = Builder::new().open::<Oops, _, _>(|s| {
                let subtask = s.fork(|| Ok(i));
                let all = s.join()?;
                Ok(subtask.get(&all))
            });
            assert_eq!(value.unwrap(), i);
        }
    });
}

#[watched]
fn forks_of_the_outer_scope_while_an_inner_one_is_open() {
    everywhere(|| {
        let result = Builder::new().open::<Oops, _, _>(|outer| {
            let before = outer.fork(|| Ok("before"));
            let (meanwhile, inner) = Builder::new().open(|inner| {
                let meanwhile = outer.fork(|| Ok("meanwhile"));
                let inside = inner.fork(|| Ok::<_, Oops>("inside"));
                let all = inner.join()?;
                Ok((meanwhile, inside.get(&all)))
            })?;
            let all = outer.join()?;
            Ok([before.get(&all), meanwhile.get(&all), inner])
        });
        assert_eq!(result.unwrap(), ["before", "meanwhile", "inside"]);
    });
}

#[watched]
fn the_outer_scope_may_be_joined_in_the_inner_one() {
    everywhere(|| {
        let result = Builder::new().open::<Oops, _, _>(|outer| {
            let value = outer.fork(|| Ok(1));
            Builder::new().open::<Oops, _, _>(|inner| {
                let endless = inner.fork(forever::<()>);
                let all = outer.join().map_err(|unjoined| unjoined.into_error())?;
                drop(endless);
                inner.cancel();
                inner.join().unwrap_err();
                Ok(value.get(&all))
            })
        });
        assert_eq!(result.unwrap(), 1);
    });
}

#[watched]
fn a_failure_inside_does_not_touch_the_outside() {
    everywhere(|| {
        let result = Builder::new().open(|outer| {
            let other = outer.fork(|| Ok(7));
            let inner = Builder::new().open(|inner| {
                inner.fork(|| Err::<(), _>("inner"));
                inner.fork(forever::<()>);
                inner.join()?;
                Ok(())
            });
            assert!(matches!(inner, Err(JoinError::Failed("inner"))));
            assert!(!outer.is_cancelled());
            let all = outer.join()?;
            Ok::<_, JoinError<Oops>>(other.get(&all))
        });
        assert_eq!(result.unwrap(), 7);
    });
}

#[watched]
fn a_cancelled_outer_scope_lets_the_owner_finish_an_inner_one() {
    everywhere(|| {
        let result = Builder::new().open(|outer| {
            outer.cancel();
            let inner = Builder::new().open::<Oops, _, _>(|inner| {
                let subtask = inner.fork(|| Ok(7));
                let all = inner.join()?;
                Ok(subtask.get(&all))
            });
            assert_eq!(inner.unwrap(), 7);
            outer.join()?;
            Ok::<(), JoinError<Oops>>(())
        });
        assert!(matches!(result, Err(JoinError::Cancelled)));
    });
}

/// Opens a scope here, and returns 7 from there.
fn seven() -> u32 {
    let value = pirn::scope::open(|s| {
        let seven = s.fork(|| Ok::<_, Oops>(7));
        let all = s.join()?;
        Ok(seven.get(&all))
    });
    value.unwrap()
}

#[watched]
fn in_threads_and_scopes_of_other_kinds() {
    everywhere(|| {
        assert_eq!(std::thread::spawn(seven).join().unwrap(), 7);
        std::thread::scope(|s| {
            let threads = [s.spawn(seven), s.spawn(seven)];
            assert_eq!(threads.map(|thread| thread.join().unwrap()), [7, 7]);
        });
        thread::scope(|s| {
            let threads = [s.spawn(seven), s.spawn(seven)];
            assert_eq!(seven(), 7);
            assert_eq!(threads.map(|thread| thread.join().unwrap()), [7, 7]);
        });
        // And those in subtasks.
        let result = pirn::scope::open::<Oops, _, _>(|s| {
            let subtask = s.fork(|| {
                let sum = thread::scope(|s| s.spawn(seven).join().unwrap() + seven());
                Ok(sum)
            });
            let all = s.join()?;
            Ok(subtask.get(&all))
        });
        assert_eq!(result.unwrap(), 14);
    });
}

#[watched]
fn in_futures() {
    everywhere(|| {
        let future = async {
            let spawned = thread::spawn(seven).await.unwrap();
            spawned + seven()
        };
        assert_eq!(pirn::block_on(future), 14);
    });
}

#[watched]
fn in_destructors_while_a_panic_unwinds() {
    struct AtEnd<'a>(&'a AtomicBool);
    impl Drop for AtEnd<'_> {
        fn drop(&mut self) {
            assert!(thread::panicking());
            self.0.store(seven() == 7, SeqCst);
        }
    }
    everywhere(|| {
        let ran = AtomicBool::new(false);
        let message = panic_of(|| {
            let _at_end = AtEnd(&ran);
            panic!("unwinding");
        });
        assert_eq!(message, "unwinding");
        assert!(ran.load(SeqCst));
    });
}

#[watched]
fn in_destructors_of_thread_locals() {
    struct AtEnd(std::sync::mpsc::Sender<u32>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            self.0.send(seven()).unwrap();
        }
    }
    thread_local!(static AT_END: std::cell::RefCell<Option<AtEnd>> = const { std::cell::RefCell::new(None) });
    let (sender, receiver) = std::sync::mpsc::channel();
    {
        let sender = &sender;
        let result = Builder::new().open_with(scope::await_all::<Oops>(), |s| {
            let sender = sender.clone();
            s.fork(move || {
                AT_END.set(Some(AtEnd(sender)));
                Ok(())
            });
            s.join()?;
            Ok(())
        });
        result.unwrap();
        assert_eq!(receiver.try_recv(), Ok(7));
    }
}

//! Scoped values are bound during a call, on the thread that makes it, and nowhere else.

use std::cell::RefCell;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use crate::common::{PLATFORM, migrate, on_virtual, watched};
use pirn::{ScopedValue, thread};

pirn::scoped_value! {
    /// Documented, and visible to others.
    pub static ID: usize;
    static OTHER_ID: usize;
    static NAME: String;
    pub(crate) static TEXT: str;
    #[cfg(any())]
    static NEVER: NoSuchType;
    static NOTHING: ();
}

/// Runs `test` on a platform and on a virtual thread.
fn on_both(test: fn()) {
    test();
    on_virtual(test);
}

/// Returns the message of the panic that `f` ends with.
fn panic_of<R: Debug>(f: impl FnOnce() -> R) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => payload.downcast_ref::<&str>().unwrap().to_string(),
    }
}

#[watched]
fn a_value_is_bound_inside_the_call_only() {
    on_both(|| {
        assert!(!ID.is_bound());
        let result = ID.bind(&7, || {
            assert!(ID.is_bound());
            migrate();
            assert_eq!(ID.get(), 7);
            assert_eq!(ID.try_with(|id| id + 1), Some(8));
            "result"
        });
        assert_eq!(result, "result");
        assert!(!ID.is_bound());
        assert_eq!(ID.try_with(|id| id + 1), None);
    });
}

#[watched]
fn the_value_itself_is_lent() {
    on_both(|| {
        let name = String::from("warp");
        NAME.bind(&name, || {
            NAME.with(|bound| assert!(std::ptr::eq(bound, &name), "a copy"));
            assert_eq!(NAME.cloned(), name);
        });
        // Unsized, on the stack and without a size at all.
        TEXT.bind(&name[1..], || TEXT.with(|text| assert_eq!(text, "arp")));
        NOTHING.bind(&(), || NOTHING.get());
    });
}

#[watched]
fn a_default_serves_while_nothing_is_bound() {
    on_both(|| {
        assert_eq!(ID.cloned_or(3), 3);
        assert_eq!(ID.bind(&7, || ID.cloned_or(3)), 7);
    });
}

#[watched]
fn reading_an_unbound_value_panics_and_says_which() {
    on_both(|| {
        let reads: [fn() -> String; 4] = [
            || panic_of(|| ID.with(|id| *id)),
            || panic_of(|| ID.get()),
            || panic_of(|| ID.cloned()),
            || OTHER_ID.bind(&1, || panic_of(|| ID.get())),
        ];
        for read in reads {
            let message = read();
            assert!(message.contains("type `usize`"), "{message}");
            assert!(message.contains(file!()), "{message}");
            assert!(message.contains("ScopedValue::bind"), "{message}");
        }
    });
}

#[watched]
fn debug_shows_the_value_bound() {
    on_both(|| {
        assert_eq!(format!("{ID:?}"), "ScopedValue(<unbound>)");
        ID.bind(&7, || assert_eq!(format!("{ID:?}"), "ScopedValue(7)"));
        TEXT.bind("weft", || {
            assert_eq!(format!("{TEXT:?}"), "ScopedValue(\"weft\")");
        });
    });
}

#[watched]
fn an_inner_binding_hides_the_outer_one() {
    on_both(|| {
        ID.bind(&1, || {
            ID.bind(&2, || {
                assert_eq!(ID.get(), 2);
                ID.bind(&3, || assert_eq!(ID.get(), 3));
                assert_eq!(ID.get(), 2);
            });
            assert_eq!(ID.get(), 1);
        });
        assert!(!ID.is_bound());
    });
}

#[watched]
fn a_value_can_be_bound_again_while_it_is_read() {
    on_both(|| {
        ID.bind(&1, || {
            ID.with(|outer| {
                let inner = ID.bind(&(outer + 1), || ID.get());
                assert_eq!((*outer, inner), (1, 2));
            });
        });
    });
}

#[watched]
fn a_panic_ends_the_bindings_it_leaves() {
    on_both(|| {
        ID.bind(&1, || {
            let message = panic_of(|| ID.bind(&2, || NAME.bind(&String::new(), || panic!("two"))));
            assert_eq!(message, "two");
            assert_eq!(ID.get(), 1);
            assert!(!NAME.is_bound());
            // Also from a closure that reads.
            assert_eq!(panic_of(|| ID.with(|id| panic!("{id}"))), "1");
            assert_eq!(ID.get(), 1);
        });
        assert!(!ID.is_bound());
    });
}

#[watched]
fn several_values_are_told_apart() {
    static LOCAL: ScopedValue<usize> = ScopedValue::new();
    on_both(|| {
        ID.bind(&1, || {
            NAME.bind(&"two".into(), || {
                OTHER_ID.bind(&3, || {
                    assert_eq!((ID.get(), OTHER_ID.get()), (1, 3));
                    assert_eq!(NAME.cloned(), "two");
                    assert!(!LOCAL.is_bound());
                    ID.bind(&4, || assert_eq!((ID.get(), OTHER_ID.get()), (4, 3)));
                });
                assert!(!OTHER_ID.is_bound());
                assert_eq!(ID.get(), 1);
            });
        });
    });
}

#[watched]
fn scoped_values_can_be_made_at_run_time() {
    let made: Vec<&'static ScopedValue<usize>> = (0..100)
        .map(|_| &*Box::leak(Box::new(ScopedValue::new())))
        .collect();
    fn bind_rest(made: &[&'static ScopedValue<usize>], bound: usize) {
        let Some(value) = made.get(bound) else { return };
        value.bind(&bound, || {
            for (i, value) in made.iter().enumerate() {
                assert_eq!(value.try_with(|i| *i), (i <= bound).then_some(i));
            }
            bind_rest(made, bound + 1);
        });
    }
    let made = &made;
    thread::scope(|scope| {
        scope.spawn(|| bind_rest(made, 0));
    });
    bind_rest(made, 0);
}

#[watched]
fn bindings_nest_a_thousand_deep() {
    const DEPTH: usize = 1000;
    fn nest(depth: usize) {
        ID.bind(&depth, || {
            if depth < DEPTH {
                nest(depth + 1);
            } else {
                // The farthest and the nearest.
                assert_eq!(NAME.cloned(), "outermost");
                migrate();
            }
            assert_eq!(ID.get(), depth);
        });
    }
    let test = || NAME.bind(&"outermost".into(), || nest(1));
    test();
    let builder = thread::Builder::new().stack_size(4 << 20); // for builds without optimization
    builder.spawn(test).unwrap().join().unwrap();
}

#[watched]
fn spawned_threads_inherit_nothing() {
    on_both(|| {
        ID.bind(&7, || {
            assert!(!thread::spawn(|| ID.is_bound()).join().unwrap());
            assert!(!std::thread::spawn(|| ID.is_bound()).join().unwrap());
            thread::scope(|scope| {
                scope.spawn(|| assert!(!ID.is_bound()));
            });
            assert_eq!(ID.get(), 7);
        });
    });
}

/// Binds `id` on a thread, waits for others inside, and migrates.
fn bind_and_check(id: usize, all: usize) {
    static BOUND: AtomicUsize = AtomicUsize::new(0);
    let name = format!("thread {id}");
    ID.bind(&id, || {
        BOUND.fetch_add(1, SeqCst);
        while BOUND.load(SeqCst) < all {
            migrate();
        }
        NAME.bind(&name, || {
            for _ in 0..3 {
                migrate();
                assert_eq!(ID.get(), id);
                NAME.with(|name| assert_eq!(*name, format!("thread {id}")));
            }
        });
        assert!(!NAME.is_bound());
    });
    assert!(!ID.is_bound());
}

#[watched]
fn ten_thousand_threads_each_have_their_own() {
    const VIRTUAL: usize = 10_000;
    std::thread::scope(|platform| {
        for i in 0..PLATFORM {
            platform.spawn(move || bind_and_check(VIRTUAL + i, VIRTUAL + PLATFORM));
        }
        thread::scope(|scope| {
            for i in 0..VIRTUAL {
                scope.spawn(move || bind_and_check(i, VIRTUAL + PLATFORM));
            }
        });
    });
}

#[watched]
fn a_thread_that_waits_inside_a_binding_keeps_it() {
    let (ask, asked) = mpsc::channel::<()>();
    let (answer, answered) = mpsc::channel();
    let waiting = thread::spawn(move || {
        ID.bind(&1, || {
            for () in asked {
                answer.send(ID.get()).unwrap();
            }
        });
    });
    ID.bind(&2, || {
        for _ in 0..100 {
            ask.send(()).unwrap();
            assert_eq!((answered.recv().unwrap(), ID.get()), (1, 2));
        }
    });
    drop(ask);
    waiting.join().unwrap();
}

/// Notes, when it is dropped, the value of `ID`.
struct Note<'a>(&'a str, &'a Mutex<Vec<String>>);

impl Drop for Note<'_> {
    fn drop(&mut self) {
        let bound = ID.try_with(|id| *id);
        self.1.lock().unwrap().push(format!("{} {bound:?}", self.0));
    }
}

#[watched]
fn what_the_call_owns_is_dropped_while_bound() {
    on_both(|| {
        let notes = Mutex::new(Vec::new());
        let captured = Note("captured", &notes);
        let result = ID.bind(&1, || {
            let _captured = captured;
            let _local = Note("local", &notes);
            ID.bind(&2, || Note("inner result", &notes));
            Note("result", &notes)
        });
        drop(result);
        let notes = notes.into_inner().unwrap();
        let expected = [
            "inner result Some(1)",
            "local Some(1)",
            "captured Some(1)",
            "result None",
        ];
        assert_eq!(notes, expected);
    });
}

#[watched]
fn unwinding_drops_each_frame_under_its_own_binding() {
    on_both(|| {
        let notes = Mutex::new(Vec::new());
        panic_of(|| {
            let _outside = Note("outside", &notes);
            ID.bind(&1, || {
                let _outer = Note("outer", &notes);
                ID.bind(&2, || {
                    let _inner = Note("inner", &notes);
                    panic!("through all of them");
                });
            });
        });
        let notes = notes.into_inner().unwrap();
        assert_eq!(notes, ["inner Some(2)", "outer Some(1)", "outside None"]);
    });
}

#[watched]
fn thread_local_destructors_find_nothing_bound_and_may_bind() {
    struct AtEnd(Arc<Mutex<Vec<Option<usize>>>>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            let mut seen = self.0.lock().unwrap();
            seen.push(ID.try_with(|id| *id));
            seen.push(ID.bind(&2, || ID.try_with(|id| *id)));
        }
    }
    thread_local!(static AT_END: RefCell<Option<AtEnd>> = const { RefCell::new(None) });

    let seen = Arc::new(Mutex::new(Vec::new()));
    let run = |seen: &Arc<_>| {
        let seen = Arc::clone(seen);
        move || {
            ID.bind(&1, || {
                AT_END.set(Some(AtEnd(seen)));
            });
        }
    };
    thread::spawn(run(&seen)).join().unwrap();
    std::thread::spawn(run(&seen)).join().unwrap();
    assert_eq!(*seen.lock().unwrap(), [None, Some(2), None, Some(2)]);
}

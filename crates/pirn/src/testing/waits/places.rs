//! Where threads were spawned: the line of the program, whatever is in between.

use crate::executor::ThreadPerTask;
use crate::scope;
use crate::thread::{self, Builder};
use pirn_rt::vthread;
use std::sync::mpsc;

/// The line of the place at which the running virtual thread was spawned, if that is in this file.
fn own_line() -> Option<u32> {
    let place = vthread::current().expect("a virtual thread").place();
    place
        .file()
        .ends_with("waits/places.rs")
        .then(|| place.line())
}

#[test]
fn threads() {
    let line = line!() + 1;
    let own = thread::spawn(own_line);
    assert_eq!(own.join().unwrap(), Some(line));
    let line = line!() + 1;
    let own = Builder::new().spawn(own_line).unwrap();
    assert_eq!(own.join().unwrap(), Some(line));
    thread::scope(|s| {
        let line = line!() + 1;
        let own = s.spawn(own_line);
        assert_eq!(own.join().unwrap(), Some(line));
        let line = line!() + 1;
        let own = Builder::new().spawn_scoped(s, own_line).unwrap();
        assert_eq!(own.join().unwrap(), Some(line));
    });
}

#[test]
fn subtasks() {
    type Line = Result<Option<u32>, std::fmt::Error>;
    let own = || -> Line { Ok(own_line()) };
    let line = scope::open_with(scope::all_successful(), |s| {
        s.fork(own);
        Ok(s.join()?.into_output())
    });
    assert_eq!(line.unwrap(), [Some(line!() - 3)]);
    let line = line!() + 1;
    assert_eq!(scope::all(vec![own]).unwrap(), [Some(line)]);
    let line = line!() + 1;
    assert_eq!(scope::all([own, own]).unwrap(), [Some(line); 2]);
    let line = line!() + 1;
    assert_eq!(scope::all((own, own)).unwrap(), (Some(line), Some(line)));
    let line = line!() + 1;
    assert_eq!(scope::any([own]).unwrap(), Some(line));
}

#[test]
fn tasks() {
    let executor = ThreadPerTask::new();
    let line = line!() + 1;
    let own = executor.submit(own_line).unwrap();
    assert_eq!(own.join().unwrap(), Some(line));
    let line = line!() + 1;
    let mapped = executor.map([0; 3], 2, |_| own_line());
    assert!(mapped.map(Result::unwrap).all(|own| own == Some(line)));
}

#[test]
fn the_main_thread_and_a_test() {
    let line = line!() + 1;
    assert_eq!(crate::__private::run_main("main", own_line), Some(line));
    let line = line!() + 1;
    assert_eq!(crate::__private::run_test("a::test", own_line), Some(line));
}

#[test]
fn mounts_are_counted() {
    let (give, given) = mpsc::channel();
    let thread = thread::spawn(move || {
        let mounts = || vthread::current().unwrap().mounts();
        let before = mounts();
        (0..10).for_each(|_| thread::sleep(std::time::Duration::from_micros(1)));
        give.send((before, mounts())).unwrap();
    });
    let (before, after) = given.recv().unwrap();
    assert!(before >= 1 && after >= before + 10, "{before} {after}");
    thread.join().unwrap();
}

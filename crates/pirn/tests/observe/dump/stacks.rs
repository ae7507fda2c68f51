//! Stacks of threads that wait.

use super::{Read, depth_in, descend};
use crate::common::{sys, watched};
use pirn::thread;
use pirn_dump::State;
use std::io::Read as _;
use std::sync::Mutex;
use std::time::Duration;

#[watched(alone)]
fn each_thread_has_its_whole_stack() {
    const THREADS: usize = 40;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|depth| {
                let builder = thread::Builder::new().name(format!("depth {depth}"));
                builder
                    .spawn_scoped(scope, move || descend(depth, &mut thread::park))
                    .unwrap()
            })
            .collect();
        let read = Read::when_waiting(THREADS);
        for (depth, thread) in threads.iter().enumerate() {
            let seen = read.named(&format!("depth {depth}"));
            assert_eq!(
                format!("ThreadId({})", seen.id),
                format!("{:?}", thread.thread().id())
            );
            let functions = read.functions(seen).expect("a whole stack");
            assert_eq!(depth_in(&functions), depth, "{functions:?}");
            assert!(seen.stack_bytes.unwrap() as usize > depth * 16);
        }
        threads.iter().for_each(|thread| thread.thread().unpark());
    });
    assert_eq!(pirn::dump::take().threads(), 0);
}

#[watched(alone)]
fn threads_that_wait_alike_are_one_group() {
    const EACH: u64 = 30;
    let (reader, writer) = std::io::pipe().unwrap();
    let lock = Mutex::new(());
    let guard = lock.lock().unwrap();
    let (reader, locked) = (&reader, &lock);
    thread::scope(|scope| {
        let mut parked = Vec::new();
        for _ in 0..EACH {
            scope.spawn(move || (&*reader).read(&mut [0]).unwrap());
            scope.spawn(move || drop(locked.lock()));
            parked.push(scope.spawn(thread::park));
        }
        let read = Read::when_waiting(3 * EACH as usize);
        let groups = &read.dump.groups;
        assert_eq!(groups.iter().map(|g| g.count).sum::<u64>(), 3 * EACH);
        let counts: Vec<u64> = groups.iter().map(|group| group.count).collect();
        assert_eq!(counts, [EACH; 3], "{}", pirn::dump::take());
        assert!(
            groups
                .iter()
                .all(|g| g.state == State::Waiting && g.examples.len() == 3)
        );
        // The runtime's frames are hidden down to the function that the program has called.
        let innermost = |group: &pirn_dump::Group| {
            let stack = &read.dump.stacks[group.stack.unwrap() as usize];
            read.names.shown(stack)[0].name()
        };
        let innermost: Vec<String> = groups.iter().map(innermost).collect();
        assert!(innermost.contains(&"read".to_owned()), "{innermost:?}");
        assert!(innermost.contains(&"syscall".to_owned()), "{innermost:?}");
        drop((guard, writer));
        parked.iter().for_each(|thread| thread.thread().unpark());
    });
}

#[watched(alone)]
fn who_waits_for_long_is_known_from_the_second_dump_on() {
    let sleeps = thread::Builder::new().name("sleeps".into());
    let sleeps = sleeps.spawn(thread::park).unwrap();
    let first = Read::when_waiting(1);
    let since = first.named("sleeps").unmoved_since.unwrap();
    assert!(since >= first.dump.process.begin && since <= first.dump.process.end);
    std::thread::sleep(Duration::from_millis(30));
    let second = Read::now();
    assert!(second.dump.process.begin > since);
    let still = second.named("sleeps").unmoved_since.unwrap();
    assert!(still.abs_diff(since) <= 10_000_000, "in units of 10 ms");
    sleeps.thread().unpark();
    sleeps.join().unwrap();
}

#[watched(alone)]
fn a_virtual_thread_makes_a_dump_in_which_it_is() {
    let threads = thread::spawn(|| pirn::dump::take().threads());
    assert_eq!(threads.join().unwrap(), 1);
}

#[watched(alone)]
fn the_list_has_a_maximum() {
    let parked: Vec<_> = (0..20).map(|_| thread::spawn(thread::park)).collect();
    Read::when_waiting(20);
    let dump = pirn::dump::Options::new().list(5).take();
    let mut bytes = Vec::new();
    dump.write_to(&mut bytes).unwrap();
    let dump = pirn_dump::Dump::read_from(&bytes[..]).unwrap();
    assert_eq!(dump.totals.listed, 20);
    assert_eq!(dump.threads.len(), 3 + 5, "the examples, and five more");
    assert_eq!(dump.totals.cut, 12);
    for thread in parked {
        thread.thread().unpark();
        thread.join().unwrap();
    }
}

/// The threads of a process are not in the child of its fork, though their memory is.
#[watched(alone)]
fn the_child_of_a_fork_has_no_threads() {
    let parked: Vec<_> = (0..3).map(|_| thread::spawn(thread::park)).collect();
    Read::when_waiting(3);
    // SAFETY: the child only makes a dump, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let threads = pirn::dump::take().threads();
        // SAFETY: no pointers.
        unsafe { libc::_exit(threads as i32) };
    }
    assert_eq!(sys::waitpid(child).unwrap(), 0);
    assert_eq!(pirn::dump::take().threads(), 3);
    for thread in parked {
        thread.thread().unpark();
        thread.join().unwrap();
    }
}

/// Without descriptors the stacks of threads that wait are there all the same.
#[watched(alone)]
fn a_dump_needs_no_descriptor() {
    let parked = thread::Builder::new().name("parked".into());
    let parked = parked.spawn(|| descend(3, &mut thread::park)).unwrap();
    Read::when_waiting(1);
    let mut files = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        files.push(file);
    }
    let mut bytes = Vec::new();
    let dump = pirn::dump::Options::new().list(1).take();
    dump.write_to(&mut bytes).unwrap();
    drop(files);
    let dump = pirn_dump::Dump::read_from(&bytes[..]).unwrap();
    let stack = dump.threads[0].stack.unwrap() as usize;
    assert_eq!(dump.stacks[stack].end, pirn_dump::End::Complete);
    parked.thread().unpark();
    parked.join().unwrap();
}

//! Locks and conditions.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Broken: the lock is not held from the look at the flag to the wait.
pub fn wake_up(mended: bool) {
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let other = Arc::clone(&pair);
    let thread = thread::spawn(move || {
        *other.0.lock().unwrap() = true;
        other.1.notify_one();
    });
    let (flag, changed) = &*pair;
    if mended {
        let guard = flag.lock().unwrap();
        drop(changed.wait_while(guard, |set| !*set).unwrap());
    } else {
        let set = *flag.lock().unwrap();
        if !set {
            drop(changed.wait(flag.lock().unwrap()).unwrap());
        }
    }
    thread.join().unwrap();
}

/// Broken: one thread takes the second lock first.
pub fn two_locks(mended: bool) {
    let locks = Arc::new([Mutex::new(10), Mutex::new(10)]);
    let transfer = |from: usize, to: usize| {
        let locks = Arc::clone(&locks);
        thread::spawn(move || {
            let first = if mended { from.min(to) } else { from };
            let second = from + to - first;
            let mut sums = [&locks[first], &locks[second]].map(|it| it.lock().unwrap());
            *sums[usize::from(first != from)] -= 1;
            *sums[usize::from(first == from)] += 1;
        })
    };
    [transfer(0, 1), transfer(1, 0)]
        .into_iter()
        .for_each(|it| it.join().unwrap());
    assert_eq!(*locks[0].lock().unwrap(), 10);
}

/// Broken: a consumer that was woken takes for granted that there is an item.
pub fn queue(mended: bool) {
    let queue = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
    let consume = || {
        let queue = Arc::clone(&queue);
        thread::spawn(move || {
            let mut items = queue.0.lock().unwrap();
            while items.is_empty() {
                items = queue.1.wait(items).unwrap();
                if !mended {
                    break;
                }
            }
            items.pop().expect("an item")
        })
    };
    let consumers = [consume(), consume()];
    for item in 1..=2 {
        queue.0.lock().unwrap().push(item);
        queue.1.notify_one();
    }
    assert_eq!(
        consumers.map(|it| it.join().unwrap()).iter().sum::<u32>(),
        3
    );
}

/// Broken: producers and consumers wait for one condition, and one of them is woken, maybe of the
/// kind that has to wait on.
pub fn full_or_empty(mended: bool) {
    let place = Arc::new((Mutex::new(None), Condvar::new()));
    let wake = move |changed: &Condvar| match mended {
        true => changed.notify_all(),
        false => changed.notify_one(),
    };
    let produce = |item: u32| {
        let place = Arc::clone(&place);
        thread::spawn(move || {
            let (item_there, changed) = &*place;
            let guard = item_there.lock().unwrap();
            *changed.wait_while(guard, |it| it.is_some()).unwrap() = Some(item);
            wake(changed);
            0
        })
    };
    let consume = || {
        let place = Arc::clone(&place);
        thread::spawn(move || {
            let (item_there, changed) = &*place;
            let guard = item_there.lock().unwrap();
            let item = changed.wait_while(guard, |it| it.is_none()).unwrap().take();
            wake(changed);
            item.unwrap()
        })
    };
    let threads = [consume(), consume(), produce(1), produce(2)];
    assert_eq!(threads.map(|it| it.join().unwrap()).iter().sum::<u32>(), 3);
}

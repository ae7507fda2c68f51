use super::*;

fn waits(thread: u64, other: u64) -> Waiter {
    Waiter {
        thread,
        scope: 0,
        blocker: Blocker::Thread(other),
    }
}

fn joins_scope(thread: u64, scope: u64) -> Waiter {
    Waiter {
        thread,
        scope: 0,
        blocker: Blocker::Scope(scope),
    }
}

fn member(scope: u64, waiter: Waiter) -> Waiter {
    Waiter { scope, ..waiter }
}

#[test]
fn who_waits_for_somebody_who_does_not_wait_is_no_circle() {
    assert!(cycles(&[]).is_empty());
    assert!(cycles(&[waits(1, 2), waits(2, 3), waits(4, 3)]).is_empty());
}

#[test]
fn circles_of_one_two_and_three() {
    let waiters = [
        waits(1, 1),
        waits(3, 2),
        waits(2, 3),
        waits(10, 30),
        waits(20, 10),
        waits(30, 20),
        waits(40, 30), // waits for the circle, and is not in it
    ];
    let expected: [&[u64]; 3] = [&[1], &[2, 3], &[10, 30, 20]];
    assert_eq!(cycles(&waiters), expected);
}

#[test]
fn the_owner_of_a_scope_waits_for_each_subtask() {
    // 1 joins scope 7, of which 2 waits for nothing and 3 for a lock of 1.
    let waiters = [
        joins_scope(1, 7),
        member(7, waits(3, 1)),
        member(7, waits(4, 5)),
    ];
    assert_eq!(cycles(&waiters), [[1, 3]]);
    // The lock is another's.
    let waiters = [joins_scope(1, 7), member(7, waits(3, 9))];
    assert!(cycles(&waiters).is_empty());
    // An inner scope, whose subtask joins the outermost owner.
    let waiters = [
        joins_scope(1, 7),
        member(7, joins_scope(2, 8)),
        member(8, waits(3, 1)),
    ];
    assert_eq!(cycles(&waiters), [[1, 2, 3]]);
}

#[test]
fn a_member_of_a_scope_that_nobody_joins_is_as_others() {
    let waiters = [member(7, waits(1, 2)), member(7, waits(2, 1))];
    assert_eq!(cycles(&waiters), [[1, 2]]);
}

#[test]
fn of_entangled_circles_the_shortest_through_the_lowest_id() {
    let waiters = [
        joins_scope(1, 7),
        member(7, waits(2, 3)),
        member(7, waits(4, 1)),
        waits(3, 1),
    ];
    assert_eq!(cycles(&waiters), [[1, 4]]);
}

#[test]
fn many_waiters_in_a_row_need_no_deep_stack() {
    const COUNT: u64 = 100_000;
    let mut waiters: Vec<_> = (1..COUNT).map(|id| waits(id, id + 1)).collect();
    assert!(cycles(&waiters).is_empty());
    waiters.push(waits(COUNT, 1));
    let found = cycles(&waiters);
    assert_eq!((found.len(), found[0].len()), (1, COUNT as usize));
}

#[test]
fn the_text_names_threads_and_locks() {
    let lock = |id, name: Option<&str>, address, owner| Thread {
        id,
        name: name.map(|name| name.as_bytes().to_vec()),
        wait: Wait::Lock {
            address,
            what: LockKind::Mutex,
            owner: Some(owner),
            waiters: None,
        },
        ..Thread::default()
    };
    let finding = cycle_finding(&[lock(5, Some("a\n"), 0x1000, 6), lock(6, None, 0x2000, 5)]);
    assert_eq!(
        finding.text,
        "2 threads wait for each other: #5 \"a\\n\" waits for mutex 0x1000 of #6, \
         #6 waits for mutex 0x2000 of #5 \"a\\n\""
    );
    assert_eq!(finding.threads, [5, 6]);
    assert_eq!(finding.kind, "wait-cycle");
    let mut guessed = lock(5, None, 0x1000, 6);
    if let Wait::Lock { what, .. } = &mut guessed.wait {
        *what = LockKind::Futex;
    }
    let finding = cycle_finding(&[guessed, lock(6, None, 0x2000, 5)]);
    assert_eq!(
        finding.text,
        "2 threads probably wait for each other: #5 waits for the lock at 0x1000 of #6, \
         #6 waits for mutex 0x2000 of #5"
    );
}

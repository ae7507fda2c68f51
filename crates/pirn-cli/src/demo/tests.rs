use super::*;

const LOAD: Load = Load {
    users: 20,
    delay: Duration::from_millis(1),
    requests: 2,
};

#[test]
fn a_run_counts_its_users_and_requests() {
    let mut out = Vec::new();
    let (outcome, all_started) = run_on(Platform, LOAD, &[], &mut out).unwrap().unwrap();
    assert!(all_started);
    assert_eq!((outcome.users, outcome.latencies.len()), (20, 40));
    assert_eq!(outcome.errors.count, 0);
    assert!(outcome.latencies.min() >= 1_000, "the handler waits 1 ms");
    assert!(outcome.elapsed >= 2 * LOAD.delay);
    assert!(outcome.peak.threads >= 2 && outcome.peak.resident > 0);
    let said = String::from_utf8(out).unwrap();
    assert_eq!(
        said,
        "platform threads: 20 users, 2 requests each, 1 ms in the handler\n"
    );
}

#[test]
fn users_for_whom_there_is_no_room_are_left_out_with_the_reason() {
    let room = |users| Room {
        users,
        reason: "the room is small".into(),
    };
    let mut out = Vec::new();
    let (outcome, _) = run_on(Platform, LOAD, &[room(3)], &mut out)
        .unwrap()
        .unwrap();
    assert_eq!((outcome.users, outcome.latencies.len()), (3, 6));
    assert!(
        run_on(Platform, LOAD, &[room(0)], &mut out)
            .unwrap()
            .is_none()
    );
    let said = String::from_utf8(out).unwrap();
    assert!(
        said.contains("\n  3 instead of 20 users: the room is small\n"),
        "{said}"
    );
    assert!(
        said.ends_with("\n  0 instead of 20 users: the room is small\n"),
        "{said}"
    );
}

#[test]
fn users_are_spread_over_several_addresses() {
    let (server, addresses) = start_server(Platform, Duration::ZERO, 3).unwrap();
    let hosts: Vec<_> = addresses.iter().map(|host| host.ip().to_string()).collect();
    assert_eq!(hosts, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
    let users = Users::new(LOAD, addresses);
    let (handles, shortage) = users.gather(Platform);
    users.go();
    users.join::<Platform>(handles);
    assert_eq!(server.shutdown(), 0);
    assert_eq!((shortage, users.connected()), (None, 20));
    assert_eq!(users.tally().answered_so_far(), 40);
}

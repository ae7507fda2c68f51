use super::*;

fn room(users: usize, reason: &str) -> Room {
    Room {
        users,
        reason: reason.into(),
    }
}

#[test]
fn the_smallest_room_decides_and_gives_the_reason() {
    let rooms = [
        room(700, "files"),
        room(300, "threads"),
        room(500, "memory"),
    ];
    assert_eq!(fit(1000, &rooms), (300, Some("threads".into())));
    assert_eq!(fit(300, &rooms), (300, None));
    assert_eq!(fit(1000, &[]), (1000, None));
}

#[test]
fn threads_that_run_and_a_sixteenth_are_left_out() {
    assert_eq!(threads_room(32_768, 720, String::new()).users, 15_000);
    assert_eq!(threads_room(100, 200, String::new()).users, 0);
}

#[test]
fn the_files_of_proc_are_understood() {
    assert_eq!(parse_port_range("32768\t60999\n"), Some(28_232));
    assert_eq!(parse_port_range("2 1"), None);
    assert_eq!(parse_running("0.01 0.11 0.06 2/89 7050\n"), Some(89));
    let meminfo = "MemTotal:  100 kB\nMemAvailable:   64 kB\n";
    assert_eq!(parse_available(meminfo), Some(64 * 1024));
    assert_eq!(parse_available("MemTotal: 100 kB\n"), None);
}

#[test]
fn this_machine_has_room() {
    for room in for_virtual().into_iter().chain(for_platform()) {
        assert!(!room.reason.is_empty());
        assert!(room.users > 0, "{room:?}");
    }
    assert!(connections_per_address() > 1);
    assert!(open_files_for(500) > 500);
}

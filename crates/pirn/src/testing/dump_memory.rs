use pirn_observe::server::budget::{Budget, MOST_BYTES};
use pirn_observe::server::commands::dump_within;
use pirn_observe::server::request::Request;
use std::time::Duration;

#[test]
fn a_dump_of_all_threads_needs_room_and_one_of_groups_does_not() {
    let parked = crate::thread::spawn(crate::thread::park);
    let dump = |line: &[u8]| {
        let mut answer = Vec::new();
        let request = Request::parse(line).unwrap();
        dump_within(&request, &mut answer, Duration::ZERO).map(|()| answer)
    };
    // No other test asks for dumps here.
    let others = Budget::take(MOST_BYTES, Duration::ZERO).ok().unwrap();
    let refused = dump(b"pirn 1 dump threads=all").unwrap_err().to_string();
    assert!(
        refused.starts_with("busy: dumps that are under way have 256 MiB"),
        "{refused}"
    );
    dump(b"pirn 1 dump threads=all max=0").unwrap();
    dump(b"pirn 1 dump").unwrap();
    drop(others);
    let answer = dump(b"pirn 1 dump threads=all").unwrap();
    assert!(pirn_dump::Dump::read_from(&answer[..]).is_ok());
    parked.thread().unpark();
    parked.join().unwrap();
}

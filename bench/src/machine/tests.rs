use super::*;

#[test]
fn cores_are_split_without_overlap_where_there_are_two() {
    let all = Cpus::all();
    let (first, rest) = all.split(1);
    assert_eq!(first.count(), 1);
    let together = if all.count() == 1 { 1 } else { all.count() - 1 };
    assert_eq!(rest.count(), together);
}

#[test]
fn a_restriction_ends_with_its_closure() {
    let all = Cpus::all();
    let (one, _) = all.split(1);
    assert_eq!(one.during(Cpus::all).count(), 1);
    assert_eq!(Cpus::all().count(), all.count());
}

#[test]
fn some_setting_limits_os_threads() {
    let (room, name) = room_for_os_threads();
    assert!(room > 0 && name.contains('.'), "{room} {name}");
}

use super::*;

#[test]
fn code_is_in_an_executable_segment_of_one_object() {
    let code = code_is_in_an_executable_segment_of_one_object as *const () as usize;
    let mut found = 0;
    let none: Option<()> = find_in(|object| {
        found += object
            .segments(libc::PF_X)
            .filter(|range| range.contains(&code))
            .count();
        None
    });
    assert_eq!((found, none), (1, None));
}

#[test]
fn the_walk_ends_with_what_was_found() {
    let mut visited = 0;
    let base = find_in(|object| {
        visited += 1;
        Some(object.base())
    });
    assert!(base.is_some());
    assert_eq!(visited, 1);
}

use super::*;

#[inline(never)]
fn somewhere() -> usize {
    let here = somewhere as *const () as usize;
    core::hint::black_box(here)
}

#[test]
fn functions_of_the_program_and_of_libraries_are_found() {
    let modules = Modules::loaded();
    for start in [
        somewhere(),
        libc::strtol as *const () as usize,
        libc::qsort as *const () as usize,
    ] {
        let function = modules.function_at(start + 1).unwrap();
        assert_eq!(function.start, start);
        assert!(function.end - start < 1 << 16);
        assert_eq!(modules.function_at(start), Some(function));
    }
    assert_eq!(modules.function_at(0), None);
    assert_eq!(modules.function_at((&raw const modules).addr()), None);
}

#[test]
fn the_program_has_no_path_and_an_id() {
    let modules = Modules::loaded();
    let here = somewhere();
    let program = modules.all.iter().find(|m| m.code.contains(&here)).unwrap();
    assert!(program.path.is_empty());
    assert!(!program.build_id.is_empty());
    assert!(!modules.are_old());
}

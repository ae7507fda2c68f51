use super::*;

#[test]
fn patterns_have_stars_and_question_marks() {
    for (pattern, text, expected) in [
        ("", "", true),
        ("", "a", false),
        ("abc", "abc", true),
        ("abc", "abcd", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("*", "", true),
        ("lib*.so", "libjvm.so", true),
        ("lib*.so", "libjvm.sox", false),
        ("*a*b*", "xxaxxbxx", true),
        ("*a*b*", "xxbxxaxx", false),
        ("*ab", "aab", true),
        ("*aab", "aaab", true),
    ] {
        let found = matches(pattern.as_bytes(), text.as_bytes());
        assert_eq!(found, expected, "{pattern:?} {text:?}");
    }
}

#[test]
fn one_of_several_patterns_matches_a_library_with_or_without_its_version() {
    for (patterns, file, expected) in [
        ("libfoo.so", "libfoo.so", true),
        ("libfoo.so", "libfoo.so.1.2", true),
        ("libfoo.so.1", "libfoo.so.1.2", false),
        ("libfoo.so.1*", "libfoo.so.1.2", true),
        ("libbar.so:libfoo.so", "libfoo.so.1", true),
        ("libbar.so:", "libfoo.so.1", false),
        (":", "", false),
        ("", "libfoo.so", false),
        ("foo", "foo", true),
    ] {
        let found = matches_one(patterns.as_bytes(), file.as_bytes());
        assert_eq!(found, expected, "{patterns:?} {file:?}");
    }
}

#[test]
fn code_is_in_a_file() {
    let here = code_is_in_a_file as *const () as usize;
    // The tests of the library are in a program, which has its own name.
    let own = names::program().to_bytes();
    assert!(with_file_of(here, |file| file == own));
    let libc = libc::getpid as *const () as usize;
    assert!(with_file_of(libc, |file| matches_one(b"libc.so", file)));
    assert!(with_file_of(1, <[u8]>::is_empty));
}

use super::*;

#[test]
fn programs_are_found_among_the_messages() {
    assert_eq!(
        executable(r#"{"reason":"compiler-artifact","executable":"/t/p"}"#),
        Some("/t/p".into())
    );
    assert_eq!(
        executable(r#"{"reason":"compiler-artifact","executable":null}"#),
        None
    );
    assert_eq!(executable("warning"), None);
}

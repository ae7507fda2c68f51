//! What `README.md` shows is what `echo.rs` is.

#[test]
fn the_readme_shows_the_echo_server() {
    let readme = include_str!("../README.md");
    let shown = format!("```rust\n{}```\n", include_str!("echo.rs"));
    assert!(
        readme.contains(&shown),
        "the example in README.md and examples/echo.rs differ: copy one over the other"
    );
}

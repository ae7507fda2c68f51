//! The example in `README.md` is the same as `server.rs`.

#[test]
fn the_readme_shows_the_server() {
    let readme = include_str!("../README.md");
    let source = include_str!("server.rs");
    let code = source.split_once('\n').expect("a head and code").1;
    let shown = format!("```rust,no_run\n{code}```\n");
    assert!(
        readme.contains(&shown),
        "the example in README.md and examples/server.rs differ: copy one over the other"
    );
}

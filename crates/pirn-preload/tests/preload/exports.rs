//! The library exports what is in the tables of interposed functions, and nothing else but its own.

use crate::shared;
use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn it_exports_the_interposed_functions_and_its_own() {
    let bytes = fs::read(shared::library()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbols = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition());
    let exported = BTreeSet::from_iter(symbols.map(|symbol| symbol.name().unwrap().to_owned()));
    let own = ["PIRN_DEBUG", "pthread_atfork"];
    let simulated = [
        "__libc_start_main",
        "time",
        "gettimeofday",
        "times",
        "getitimer",
        "setitimer",
        "alarm",
        "timer_gettime",
        "timer_settime",
        "timer_getoverrun",
        "timerfd_gettime",
        "timerfd_settime",
        "getrandom",
        "getentropy",
        "arc4random",
        "arc4random_buf",
        "arc4random_uniform",
        "bind",
        "listen",
        "getsockname",
        "getpeername",
        "getsockopt",
        "gethostname",
        "uname",
        "fork",
        "mmap",
        "mmap64",
    ];
    let instrumented = ["__tsan_", "__sanitizer_cov_"];
    let is_own = |name: &&String| {
        name.starts_with("pirn_")
            || [&own[..], &simulated].concat().contains(&name.as_str())
            || instrumented.iter().any(|prefix| name.starts_with(prefix))
    };
    let others = BTreeSet::from_iter(exported.iter().filter(|name| !is_own(name)).cloned());
    assert_eq!(others, interposed());
    assert!(exported.contains("PIRN_DEBUG"));
}

/// Every program pays for each library that is loaded with this one.
#[test]
fn the_unwinder_is_not_loaded_with_it() {
    let bytes = fs::read(shared::library()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let wanted = file.dynamic_symbols().filter(|s| s.is_undefined());
    let mut names = wanted.map(|symbol| symbol.name().unwrap().to_owned());
    let wrong = names.find(|name| name.starts_with("_Unwind_"));
    assert_eq!(wrong, None, "a function that `unwinding.rs` does not have");
}

/// Returns the names on the page that a test writes from the tables.
fn interposed() -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/interposed.md");
    let text = fs::read_to_string(page).unwrap();
    let names = text.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("| `")?.split_once('`')?;
        Some(name.to_owned())
    });
    let names = BTreeSet::from_iter(names);
    assert!(names.len() > 400);
    names
}

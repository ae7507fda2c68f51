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
    let is_own = |name: &&String| name.starts_with("pirn_") || *name == "PIRN_DEBUG";
    let others = BTreeSet::from_iter(exported.iter().filter(|name| !is_own(name)).cloned());
    assert_eq!(others, interposed());
    assert!(exported.contains("PIRN_DEBUG"));
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

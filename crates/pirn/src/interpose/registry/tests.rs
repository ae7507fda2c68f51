//! What must be true of the tables, and the page made from them.

use super::{Disposition, FAMILIES, Interposed, Need};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

fn all() -> impl Iterator<Item = &'static Interposed> {
    FAMILIES
        .iter()
        .flat_map(|f| f.sections.iter().copied().flatten())
}

fn name(function: &Interposed) -> &'static str {
    function.name.to_str().unwrap()
}

#[test]
fn each_name_is_listed_once() {
    let mut seen = BTreeSet::new();
    for function in all() {
        assert!(
            seen.insert(name(function)),
            "{} is listed twice",
            name(function)
        );
    }
}

#[test]
fn each_name_is_exported_and_wins() {
    for function in all() {
        // SAFETY: a valid C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, function.name.as_ptr()) };
        assert_eq!(found.cast_const(), function.address, "{}", name(function));
    }
}

#[test]
fn each_function_that_shadows_a_library_is_listed() {
    let listed: BTreeSet<_> = all().map(name).collect();
    let missing: Vec<_> = exported()
        .into_iter()
        .filter(|symbol| !listed.contains(symbol.as_str()))
        .filter(|symbol| {
            let symbol = CString::new(symbol.as_str()).unwrap();
            // SAFETY: a valid C string. The next one is looked for behind this executable.
            !unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) }.is_null()
        })
        .collect();
    assert!(missing.is_empty(), "in no `interposed!` table: {missing:?}");
}

/// The functions that this executable defines for others, from its table of dynamic symbols.
fn exported() -> Vec<String> {
    let file = fs::read("/proc/self/exe").unwrap();
    let number = |at: usize, bytes: usize| {
        let bytes = &file[at..at + bytes];
        bytes
            .iter()
            .rev()
            .fold(0, |number, &byte| number << 8 | usize::from(byte))
    };
    const DYNSYM: usize = 11;
    const FUNCTION: usize = 2;
    let section = |index: usize| number(0x28, 8) + index * number(0x3a, 2);
    let symbols = (0..number(0x3c, 2))
        .map(section)
        .find(|&at| number(at + 4, 4) == DYNSYM)
        .expect("a table of dynamic symbols");
    let (start, size) = (number(symbols + 0x18, 8), number(symbols + 0x20, 8));
    let names = number(section(number(symbols + 0x28, 4)) + 0x18, 8);
    (start..start + size)
        .step_by(24)
        .filter(|&at| number(at + 4, 1) & 0xf == FUNCTION && number(at + 6, 2) != 0)
        .map(|at| {
            let name = &file[names + number(at, 4)..];
            let end = name.iter().position(|&byte| byte == 0).unwrap();
            String::from_utf8(name[..end].to_vec()).unwrap()
        })
        .collect()
}

#[test]
fn the_page_is_what_the_tables_say() {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../docs/interposed.md"]
        .iter()
        .collect();
    let page = page();
    if !path.parent().unwrap().exists() {
        return; // The package by itself has no pages.
    }
    if std::env::var_os("PIRN_BLESS").is_some() {
        fs::write(&path, page).unwrap();
        return;
    }
    assert!(
        fs::read_to_string(&path).is_ok_and(|text| text == page),
        "docs/interposed.md is not what the tables say; write it anew by \
         `PIRN_BLESS=1 cargo test -p pirn --lib the_page`, and look at what has changed"
    );
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for disposition in DISPOSITIONS {
        let (term, meaning) = explain(disposition);
        writeln!(page, "| {term} | {meaning} |").unwrap();
    }
    for family in FAMILIES {
        let needed = match family.need {
            Need::Correctness => " \\*",
            Need::Scaling => "",
        };
        writeln!(page, "\n## {}{needed}\n", family.title).unwrap();
        if !family.cannot.is_empty() {
            writeln!(page, "Cannot {}.\n", family.cannot).unwrap();
        }
        page += "| function | on a virtual thread |\n|---|---|\n";
        for function in family.sections.iter().copied().flatten() {
            let (term, _) = explain(function.disposition);
            let remark = match function.remark {
                "" => String::new(),
                remark => format!("; {remark}"),
            };
            writeln!(page, "| `{}` | {term}{remark} |", name(function)).unwrap();
        }
    }
    page
}

const DISPOSITIONS: [Disposition; 9] = [
    Disposition::Kernel,
    Disposition::Own,
    Disposition::Parks,
    Disposition::Glance,
    Disposition::Pool,
    Disposition::Dedicated,
    Disposition::Carrier,
    Disposition::Blocks,
    Disposition::Refuses,
];

/// The term that the page uses, and what it means.
fn explain(disposition: Disposition) -> (&'static str, &'static str) {
    match disposition {
        Disposition::Kernel => (
            "noted",
            "the same as on a platform thread: the call does not wait; Pirn notes what it does to descriptors",
        ),
        Disposition::Own => (
            "own",
            "Pirn answers from what it knows of the virtual thread; the call does not wait",
        ),
        Disposition::Parks => (
            "parks",
            "tries without blocking; if that will not do, the thread parks until it may try again",
        ),
        Disposition::Glance => (
            "glance",
            "done at once if the kernel has in memory what it takes; if not, as *pool*",
        ),
        Disposition::Pool => (
            "pool",
            "done by a bounded pool of platform threads, while the virtual thread parks",
        ),
        Disposition::Dedicated => (
            "dedicated",
            "done by a platform thread of its own, while the virtual thread parks",
        ),
        Disposition::Carrier => ("carrier", "runs as the carrier, with its thread-locals"),
        Disposition::Blocks => (
            "blocks",
            "the same as on a platform thread: blocks the carrier for as long as the kernel makes it wait",
        ),
        Disposition::Refuses => ("refuses", "fails"),
    }
}

const HEAD: &str = "\
# Interposed functions

<!-- Written by a test: `PIRN_BLESS=1 cargo test -p pirn --lib the_page`. -->

The functions of the C library that Pirn defines anew ([why, and how](interposition.md)). On a
platform thread each of them does what the C library's does. What happens on a virtual thread is
said in these terms. In families marked \\* the definition that wins must be Pirn's, or the runtime
does not start; of the others, another library may take a name, and its calls block carriers.

| term | meaning |
|---|---|
";

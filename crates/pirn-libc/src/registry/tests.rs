//! Invariants of the tables, and the page made from them.

mod elf;

use super::{Disposition, Interposed, Need};
use crate::families::FAMILIES;
use core::ffi::{CStr, c_void};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

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
fn each_name_that_programs_can_be_linked_with_is_exported_and_wins() {
    let mut functions: Vec<_> = libraries()
        .iter()
        .flat_map(|path| elf::functions(path))
        .collect();
    functions.retain(|function| function.value != 0 && !function.old);
    let current: BTreeSet<_> = functions
        .into_iter()
        .map(|function| function.name)
        .collect();
    // A linker exports only what the libraries know that it links with, and these may be older.
    const NEWER: [&str; 2] = ["sched_getattr", "sched_setattr"];
    let is_there = |name: &str| current.contains(name) && !NEWER.contains(&name);
    for function in all().filter(|function| is_there(name(function))) {
        // SAFETY: a valid C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, function.name.as_ptr()) };
        assert_eq!(found.cast_const(), function.address, "{}", name(function));
    }
}

/// Returns the address of the definition behind ours, or null if there is no other.
fn behind(name: &str) -> *mut c_void {
    let name = CString::new(name).unwrap();
    // SAFETY: a valid C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

#[test]
fn each_function_that_shadows_a_library_is_listed() {
    let listed: BTreeSet<_> = all().map(name).collect();
    let mut missing = elf::functions(Path::new("/proc/self/exe"));
    missing.retain(|symbol| symbol.value != 0 && !listed.contains(symbol.name.as_str()));
    missing.retain(|symbol| !behind(&symbol.name).is_null());
    let missing: Vec<_> = missing.iter().map(|symbol| &symbol.name).collect();
    assert!(missing.is_empty(), "in no `interposed!` table: {missing:?}");
}

/// Each alias of a listed function is listed. Otherwise a program that locks by one name and
/// unlocks by another would use two definitions.
#[test]
fn each_alias_of_a_listed_function_is_listed() {
    let listed: BTreeSet<_> = all().map(name).collect();
    let mut missing = Vec::new();
    for library in libraries() {
        let mut functions = elf::functions(&library);
        let is_private = |version: &String| version == "GLIBC_PRIVATE";
        functions.retain(|f| f.value != 0 && !f.version.as_ref().is_some_and(is_private));
        let is_listed = |f: &&elf::Symbol| listed.contains(f.name.as_str());
        let places: BTreeSet<_> = functions
            .iter()
            .filter(is_listed)
            .map(|f| f.value)
            .collect();
        functions.retain(|f| places.contains(&f.value) && !listed.contains(f.name.as_str()));
        missing.extend(functions.into_iter().map(|f| f.name));
    }
    assert!(missing.is_empty(), "in no `interposed!` table: {missing:?}");
}

/// Returns the libraries whose functions are interposed: libc, and in older versions some others.
fn libraries() -> BTreeSet<PathBuf> {
    let path = |function: &Interposed| {
        // SAFETY: all zeros is a valid `Dl_info`; dladdr takes any address.
        unsafe {
            let mut info: libc::Dl_info = core::mem::zeroed();
            let found = libc::dladdr(behind(name(function)), &mut info) != 0;
            found.then(|| CStr::from_ptr(info.dli_fname).to_str().unwrap().into())
        }
    };
    all().filter_map(path).collect()
}

#[test]
fn each_name_is_called_in_a_test() {
    let mut called = BTreeSet::new();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pirn/tests");
    collect_calls(&tests, &mut called);
    let untested: Vec<_> = all()
        .map(name)
        .filter(|name| !called.contains(*name))
        .collect();
    assert!(
        untested.is_empty(),
        "called in no test of `tests/`: {untested:?}"
    );
}

/// Collects the C functions that the files of a folder and its subfolders refer to: as
/// `libc::name`, or through their own declarations; in C, by a call.
fn collect_calls(folder: &Path, called: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_calls(&path, called);
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        if path.extension().is_some_and(|extension| extension == "c") {
            let before = text
                .split('(')
                .flat_map(|part| part.rsplit(|c| !is_part(c)).next());
            called.extend(before.map(str::to_owned));
            continue;
        }
        let declarations = text.split("extern \"C\" {").skip(1);
        let declarations = declarations.flat_map(|block| block.split("}\n").next());
        let names = text.split("libc::").skip(1);
        let names = names.chain(declarations.flat_map(|block| block.split("fn ").skip(1)));
        called.extend(
            names
                .flat_map(|rest| rest.split(|c| !is_part(c)).next())
                .map(str::to_owned),
        );
    }
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
         `PIRN_BLESS=1 cargo test -p pirn-libc the_page`, and look at what has changed"
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
    Disposition::Cached,
    Disposition::Pool,
    Disposition::Dedicated,
    Disposition::Carrier,
    Disposition::Blocks,
    Disposition::Refuses,
];

/// Returns the term that the page uses, and its meaning.
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
        Disposition::Cached => (
            "cached",
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

<!-- Written by a test: `PIRN_BLESS=1 cargo test -p pirn-libc the_page`. -->

The functions of the C library that Pirn defines anew ([why, and how](interposition.md)). On a
platform thread each of them does what the C library's does. What happens on a virtual thread is
said in these terms. In families marked \\* the definition that wins must be Pirn's, or the runtime
does not start; of the others, another library may take a name, and its calls block carriers.

| term | meaning |
|---|---|
";

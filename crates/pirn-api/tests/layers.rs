//! The layers of `docs/architecture.md` hold: each file of `pirn` refers to the layers below its
//! own, and to one above only if a list allows it.
//!
//! The test scans all paths from the crate's root (`crate::…`) outside of comments and unit tests.
//! `runtime/`, `config.rs` and the like are beside the layers: they start all of them, or all
//! layers use them. References to `crate::runtime` have no rank, because a `Runtime` has a part of
//! each layer from `stack` to `blocking`, through which these parts know each other: at any rank,
//! either its own references or those to it would go up.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers, from the bottom: folders and files of `src/`.
const LAYERS: [&str; 24] = [
    "panic",
    "local",
    "poison",
    "primitives",
    "arch",
    "time",
    "sys",
    "mark",
    "lock",
    "glibc",
    "own_vec",
    "stack",
    "continuation",
    "recorder",
    "vthread",
    "sched",
    "blocking",
    "interpose",
    "scoped_value",
    "thread",
    "bridge",
    "executor",
    "scope",
    "observe",
];

/// The allowed references that go up, and the reasons.
const UPWARD: [(&str, &str, &str); 3] = [
    ("stack", "vthread", "the overflow handler names the thread"),
    (
        "vthread",
        "sched",
        "a thread that parks asks for the next one: one layer in two folders",
    ),
    (
        "sched",
        "observe",
        "the monitor does what signal handlers leave to it",
    ),
];

#[test]
fn layers_refer_to_those_below_them_only() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pirn/src");
    let mut wrong = Vec::new();
    let mut unused = UPWARD.to_vec();
    for file in rust_files(&source) {
        let path = file.strip_prefix(&source).unwrap().display().to_string();
        let from = path.split(['/', '.']).next().unwrap();
        let Some(rank) = rank(from).filter(|_| !path.ends_with("tests.rs")) else {
            continue;
        };
        for (line, to) in references(&fs::read_to_string(&file).unwrap()) {
            if self::rank(&to).is_none_or(|to| to <= rank) {
                continue;
            }
            unused.retain(|(a, b, _)| (*a, *b) != (from, to.as_str()));
            if !UPWARD
                .iter()
                .any(|(a, b, _)| (*a, *b) == (from, to.as_str()))
            {
                wrong.push(format!(
                    "src/{path}:{line}: `{from}` refers to `{to}`, a layer above it"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        unused.is_empty(),
        "no longer needed, so to be taken off the list: {unused:?}"
    );
}

fn rank(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| *layer == name)
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let inner = folders.iter().flat_map(|folder| rust_files(folder));
    inner
        .chain(
            files
                .into_iter()
                .filter(|file| file.extension().is_some_and(|e| e == "rs")),
        )
        .collect()
}

/// Returns the names that follow `crate::` in a file, also in braces, with their lines.
fn references(text: &str) -> Vec<(usize, String)> {
    let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let code: Vec<_> = code.map(|line| line.split("//").next().unwrap()).collect();
    let mut found = Vec::new();
    for (index, line) in code.iter().enumerate() {
        for (at, _) in line.match_indices("crate::") {
            let rest = [&line[at + "crate::".len()..]]
                .into_iter()
                .chain(code[index + 1..].iter().copied());
            let rest: String = rest.take(40).collect();
            found.extend(names(&rest).into_iter().map(|name| (index + 1, name)));
        }
    }
    found
}

/// Returns the first names of a path or of a group of paths.
fn names(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else {
        return path
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()
            .map(String::from)
            .into_iter()
            .collect();
    };
    let mut depth = 0;
    let group: String = group
        .chars()
        .take_while(|c| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth >= 0
        })
        .collect();
    group
        .split(',')
        .map(|name| name.trim().split(':').next().unwrap().to_owned())
        .collect()
}

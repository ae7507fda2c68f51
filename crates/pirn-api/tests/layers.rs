//! The layers of `docs/architecture.md` hold: each file of a crate refers to the layers below its
//! own, and to one above only if a list allows it. (Between crates the compiler sees to that.)
//!
//! The test scans all paths from a crate's root (`crate::…`) outside of comments and unit tests.
//! Every module at the root has a rank.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates, and the layers of each from the bottom: folders and files of `src/`.
const CRATES: [(&str, &[&str]); 4] = [
    (
        "pirn-rt",
        &[
            "panic",
            "local",
            "poison",
            "primitives",
            "environment",
            "arch",
            "time",
            "sys",
            "notices",
            "mark",
            "lock",
            "alloc",
            "glibc",
            "own_vec",
            "sanitizer",
            "stack",
            "continuation",
            "recorder",
            "vthread",
            "sched",
            "blocking",
            "runtime",
        ],
    ),
    (
        "pirn-observe",
        &[
            "hooks",
            "findings",
            "events",
            "metrics",
            "waits",
            "dump",
            "diagnostics",
            "server",
            "debug_table",
        ],
    ),
    (
        "pirn-libc",
        &[
            "forward",
            "registry",
            "posix",
            "identity",
            "cancel",
            "signals",
            "time",
            "futex_pi",
            "sync",
            "thread",
            "process",
            "fs",
            "io",
            "net",
            "by_number",
            "futex",
            "families",
            "startup",
        ],
    ),
    (
        "pirn",
        &[
            "panic",
            "on_carrier",
            "scoped_value",
            "thread",
            "bridge",
            "executor",
            "scope",
            "config",
            "observe",
            "unobserved",
            "start",
            "__private",
        ],
    ),
];

/// The allowed references that go up, and the reasons.
const UPWARD: [(&str, &str, &str); 5] = [
    (
        "vthread",
        "sched",
        "a thread that parks asks for the next one: one layer in two folders",
    ),
    (
        "stack",
        "runtime",
        "a `Runtime` has a part of each layer from here to `blocking`, which know each other by it",
    ),
    ("vthread", "runtime", "the same"),
    ("sched", "runtime", "the same"),
    ("blocking", "runtime", "the same"),
];

#[test]
fn layers_refer_to_those_below_them_only() {
    let mut wrong = Vec::new();
    let mut unused = UPWARD.to_vec();
    for (name, layers) in CRATES {
        let rank = |name: &str| layers.iter().position(|layer| *layer == name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{name}/src"));
        for file in rust_files(&source) {
            let path = file.strip_prefix(&source).unwrap().display().to_string();
            let from = path.split(['/', '.']).next().unwrap();
            let of_tests = path.ends_with("testing.rs") || path.contains("tests");
            if ["lib", "testing"].contains(&from) || of_tests {
                continue;
            }
            let below = rank(from).unwrap_or_else(|| panic!("{name}: `{from}` has no rank"));
            for (line, to) in references(&fs::read_to_string(&file).unwrap()) {
                if rank(&to).is_none_or(|to| to <= below) {
                    continue;
                }
                let this = |(a, b, _): &(&str, &str, &str)| (*a, *b) == (from, to.as_str());
                unused.retain(|entry| !this(entry));
                if !UPWARD.iter().any(this) {
                    wrong.push(format!(
                        "{name}/src/{path}:{line}: `{from}` refers to `{to}`, a layer above it"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        unused.is_empty(),
        "no longer needed, so to be taken off the list: {unused:?}"
    );
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

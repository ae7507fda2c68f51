//! The layers of `docs/architecture.md` hold: each file of a crate refers to the layers below its
//! own only. (Between crates the compiler sees to that.) Every module at the root has a rank.
//!
//! One test scans all paths from a crate's root (`crate::…`) outside of comments and unit tests. A
//! layer may also call one above it by a method that the layer above gives to a type of the layer
//! below. So the other test demands that the module that defines a type also has its methods. Two
//! types of `pirn-http` are exempt ([`OPEN`]). Neither test sees calls by what was handed down on
//! purpose: traits, the functions that `set_hook` and the like store, and the symbol by which
//! `sched::runtime` starts a runtime.

use pirn_api::rust_files;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The crates, and the layers of each from the bottom: folders and files of `src/`.
const CRATES: [(&str, &[&str]); 7] = [
    (
        "pirn-rt",
        &[
            "panic",
            "poison",
            "primitives",
            "environment",
            "arch",
            "time",
            "sys",
            "no_suspend",
            "lock",
            "glibc",
            "own_vec",
            "sanitizer",
            "stack",
            "continuation",
            "recorder",
            "vthread",
            "reactor",
            "sched",
            "blocking",
            "carriers",
            "process",
        ],
    ),
    (
        "pirn-observe",
        &[
            "arch",
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
            "simulated",
            "forward",
            "registry",
            "posix",
            "identity",
            "cancel",
            "signals",
            "time",
            "futex",
            "sync",
            "thread",
            "process",
            "fs",
            "io",
            "net",
            "by_number",
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
            "async_io",
            "executor",
            "scope",
            "config",
            "observe",
            "unobserved",
            "start",
            "__private",
        ],
    ),
    (
        "pirn-posix",
        &[
            "leaving", "account", "chosen", "record", "cancel", "create", "header",
        ],
    ),
    (
        "pirn-http",
        &[
            "poison",
            "date",
            "media_type",
            "negotiation",
            "fields",
            "refusal",
            "admission",
            "socket",
            "tls",
            "stream",
            "limits",
            "transfer",
            "input",
            "upgrade",
            "response",
            "outgoing",
            "error",
            "problem",
            "shared",
            "h1",
            "h2",
            "exchange",
            "split",
            "request",
            "handler",
            "redirect",
            "cookies",
            "json",
            "form",
            "multipart",
            "events",
            "files",
            "websocket",
            "tower",
            "compress",
            "cors",
            "limit",
            "observe",
            "router",
            "server",
        ],
    ),
    (
        "../bench",
        &[
            "text", "memory", "protocol", "catalog", "machine", "process", "results", "peers",
            "drivers", "runner", "against", "report", "args", "main",
        ],
    ),
];

/// Types to which layers above give public methods of their own, which no layer below those calls:
/// so each feature of a request is in one file.
const OPEN: [(&str, &str); 2] = [("pirn-http", "Request"), ("pirn-http", "Response")];

#[test]
fn layers_refer_to_those_below_them_only() {
    let mut wrong = Vec::new();
    for (name, layers) in CRATES {
        let rank = |name: &str| layers.iter().position(|layer| *layer == name);
        let exported = exported(name);
        for (path, from, text) in sources(name) {
            let below = rank(&from).unwrap_or_else(|| panic!("{name}: `{from}` has no rank"));
            for (line, to) in references(&text) {
                let to = if rank(&to).is_some() {
                    &to
                } else {
                    exported.get(&to).unwrap_or(&to)
                };
                if rank(to).is_some_and(|to| to > below) {
                    wrong.push(format!(
                        "{name}/src/{path}:{line}: `{from}` refers to `{to}`, a layer above it"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn methods_stand_in_the_layer_of_their_type() {
    let mut wrong = Vec::new();
    for (name, layers) in CRATES {
        let rank = |name: &str| layers.iter().position(|layer| *layer == name);
        let sources = sources(name);
        let mut types: HashMap<String, Vec<&str>> = HashMap::new();
        for (_, layer, text) in &sources {
            for name in defined(text) {
                types.entry(name).or_default().push(layer);
            }
        }
        for (path, layer, text) in &sources {
            for (of, methods) in with_methods(text) {
                // Macros define the other types.
                let layers = types.get(&of).filter(|it| !it.contains(&layer.as_str()));
                let Some(layers) = layers else { continue };
                if OPEN.contains(&(name, &of)) {
                    let below = sources.iter().filter(|it| rank(&it.1) < rank(layer));
                    for (by, _, text) in below {
                        let call = |method| text_calls(text, method);
                        let called = methods.iter().filter(|method| call(method));
                        wrong.extend(called.map(|method| {
                            format!("{name}/src/{by}: calls `{method}`, a method of `{layer}`")
                        }));
                    }
                } else {
                    wrong.push(format!(
                        "{name}/src/{path}: methods of `{of}`, which `{}` defines",
                        layers.join("` or `")
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the path, the layer and the code of each file of a crate. Files of tests are left out.
fn sources(name: &str) -> Vec<(String, String, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{name}/src"));
    let files = rust_files(&source).into_iter().filter_map(|file| {
        let path = file.strip_prefix(&source).unwrap().display().to_string();
        let layer = path.split(['/', '.']).next().unwrap().to_owned();
        let of_tests = path.ends_with("testing.rs") || path.contains("tests");
        let text = fs::read_to_string(&file).unwrap();
        (!of_tests && !["lib", "testing"].contains(&layer.as_str())).then_some((path, layer, text))
    });
    files.collect()
}

/// Returns the modules of the names that a crate's root exports; a program exports no names.
fn exported(name: &str) -> HashMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{name}/src/lib.rs"));
    let root = fs::read_to_string(root).unwrap_or_default();
    let root = code(&root).collect::<Vec<_>>().join("\n");
    let uses = root.split("pub use ").skip(1);
    let names = uses.flat_map(|it| {
        let it = it.split(';').next().unwrap();
        let mut words = it.split(|c: char| !c.is_alphanumeric() && c != '_');
        let module = words.next().unwrap().to_owned();
        words.map(move |word| (word.to_owned(), module.clone()))
    });
    names.collect()
}

/// Returns the names of the types that a file defines.
fn defined(text: &str) -> Vec<String> {
    let names = code(text).filter_map(|line| {
        let words = line.split_whitespace();
        let mut words = words.skip_while(|word| word.starts_with("pub"));
        let is_type = ["struct", "enum", "union"].contains(&words.next()?);
        words.next().filter(|_| is_type).map(identifier)
    });
    names.collect()
}

/// Returns whether a file calls a method of this name.
fn text_calls(text: &str, method: &str) -> bool {
    code(text).any(|line| line.contains(&format!(".{method}(")))
}

/// Returns the names of the types to which a file gives public methods, and of those. Methods of
/// traits do not count.
fn with_methods(text: &str) -> Vec<(String, Vec<String>)> {
    let code = code(text).collect::<Vec<_>>().join("\n");
    let names = code.split("\nimpl").skip(1).filter_map(|block| {
        let (header, body) = block.split_once('{')?;
        let body = body.split("\n}").next()?;
        let of = header
            .split("\nwhere")
            .next()?
            .trim_end()
            .rsplit("> ")
            .next()?;
        let is_own = !header.contains(" for ") && body.contains("\n    pub");
        let name = of.split('<').next()?.rsplit("::").next()?;
        let public = body.split("\n    pub").skip(1);
        let methods = public.filter_map(|it| it.split_once("fn ").map(|(_, it)| identifier(it)));
        is_own.then(|| (identifier(name), methods.collect()))
    });
    names.collect()
}

/// Returns the identifier at the beginning of a text.
fn identifier(text: &str) -> String {
    let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
    text.trim_start().chars().take_while(is_part).collect()
}

/// Returns a file's lines up to its unit tests, without comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines().map(|line| line.split("//").next().unwrap())
}

/// Returns the names that follow `crate::` in a file, also in braces, with their lines.
fn references(text: &str) -> Vec<(usize, String)> {
    let code: Vec<_> = code(text).collect();
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

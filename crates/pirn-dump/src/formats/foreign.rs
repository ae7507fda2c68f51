//! Tools of others read what is written: Python's `jsonschema`, a JDK, Go's `pprof`. Each test says
//! what it lacks, if it cannot run.

use super::tests::written;
use crate::samples::everything;
use crate::view::Format;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder for files of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("pirn-dump-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, format: &str) -> PathBuf {
        let file = self.0.join(format);
        fs::write(&file, written(&everything(), format.parse().unwrap())).unwrap();
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a program. Returns what it printed, or None if it is not there.
fn run(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("skipped: {:?}: {error}", command.get_program());
            None
        }
    }
}

/// Runs a program that must succeed. Returns what it printed.
fn succeed(command: &mut Command) -> Option<String> {
    let output = run(command)?;
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{command:?}:\n{text}");
    Some(text)
}

fn has_jsonschema() -> bool {
    let found = run(Command::new("python3").args(["-c", "import jsonschema"]));
    let there = found.is_some_and(|output| output.status.success());
    if !there {
        eprintln!("skipped: python3 has no module `jsonschema`");
    }
    there
}

/// Returns the folder of a JDK of version 25 or later.
fn jdk() -> Option<PathBuf> {
    let home = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let installed = fs::read_dir("/usr/lib/jvm").ok();
    let installed = installed
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    let found = home.into_iter().chain(installed).find(|path| {
        let release = fs::read_to_string(path.join("release")).unwrap_or_default();
        let version = release
            .lines()
            .find_map(|line| line.strip_prefix("JAVA_VERSION=\""));
        let major =
            version.and_then(|version| version.split(['.', '"']).next()?.parse::<u32>().ok());
        major.is_some_and(|major| major >= 25) && path.join("bin/java").is_file()
    });
    if found.is_none() {
        eprintln!("skipped: there is no JDK of version 25 or later in JAVA_HOME or /usr/lib/jvm");
    }
    found
}

fn check(schema: &str, files: &[PathBuf]) {
    let schema = here("schema").join(schema);
    let mut command = Command::new("python3");
    command.arg(here("checks/check.py")).arg(schema).args(files);
    assert_eq!(succeed(&mut command).as_deref(), Some("valid\n"));
}

#[test]
fn json_is_valid_by_its_schema() {
    if !has_jsonschema() {
        return;
    }
    let folder = Folder::new("schema");
    check("dump.schema.json", &[folder.write("json")]);
    check("jdk25.schema.json", &[folder.write("jdk25")]);
    check("jdk27.schema.json", &[folder.write("jdk")]);
}

#[test]
fn a_real_dump_of_a_jdk_is_valid_by_the_same_schema() {
    let Some(jdk) = jdk().filter(|_| has_jsonschema()) else {
        return;
    };
    let folder = Folder::new("real");
    let real = folder.0.join("real.json");
    succeed(
        Command::new(jdk.join("bin/java"))
            .arg(here("checks/Sample.java"))
            .arg(&real),
    )
    .unwrap();
    let text = fs::read_to_string(&real).unwrap();
    assert!(
        text.contains("\"blockedOn\"") && text.contains("\"TIMED_WAITING\""),
        "{text}"
    );
    let schema = if text.contains("formatVersion") {
        "jdk27.schema.json"
    } else {
        "jdk25.schema.json"
    };
    check(schema, &[real]);
}

#[test]
fn a_jdk_reads_the_dump() {
    let Some(jdk) = jdk() else { return };
    let folder = Folder::new("java");
    for format in ["jdk25", "jdk"] {
        let mut java = Command::new(jdk.join("bin/java"));
        let read = succeed(java.arg(here("checks/Read.java")).arg(folder.write(format))).unwrap();
        assert_eq!(read, "3 containers, 14 threads\n");
    }
}

#[test]
fn pprof_reads_the_profile() {
    let folder = Folder::new("pprof");
    let pprof = |arguments: &[&str], file: &Path| {
        succeed(
            Command::new("go")
                .args(["tool", "pprof"])
                .args(arguments)
                .arg(file),
        )
    };
    let profile = folder.write("pprof");
    let Some(raw) = pprof(&["-raw"], &profile) else {
        return;
    };
    assert!(
        raw.contains("threads/count[dflt] waiting/nanoseconds"),
        "{raw}"
    );
    assert!(
        raw.contains("state:[waiting]") && raw.contains("wait:[mutex]"),
        "{raw}"
    );
    assert!(raw.contains("recvfrom /pirn-libc/src/socket.rs:9"), "{raw}");
    let top = pprof(&["-top", "-sample_index=threads"], &profile).unwrap();
    let sum = "Showing nodes accounting for 14, 100% of 14 total";
    assert!(top.contains(sum) && top.contains("recvfrom"), "{top}");
}

#[test]
fn every_format_is_looked_at_by_somebody() {
    // Text is for people, folded stacks have no reader here.
    let own: Vec<&str> = Format::names().collect();
    assert_eq!(
        own,
        [
            "text", "threads", "tree", "json", "jdk", "jdk25", "pprof", "folded"
        ]
    );
}

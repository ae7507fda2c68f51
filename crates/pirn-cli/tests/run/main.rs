//! `pirn run`, with a small C program, shells, and what cannot be run.

#[path = "../shared/mod.rs"]
mod shared;
mod simulated;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use shared::PIRN;

/// Returns the path of `libpirn.so`, which cargo does not build for the tests by itself.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| pirn_testing::build_library(Path::new(PIRN).parent().unwrap()))
}

/// Runs `pirn run` with these arguments.
fn run(arguments: &[&str]) -> Output {
    finish(&mut command(arguments))
}

fn command(arguments: &[&str]) -> Command {
    library();
    let mut command = Command::new(PIRN);
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("PIRN_")) {
        command.env_remove(name);
    }
    command.arg("run").args(arguments);
    command
}

fn finish(command: &mut Command) -> Output {
    let _watchdog = shared::watch(format!("{command:?}"));
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

fn out(output: &Output) -> &str {
    text(&output.stdout)
}

fn errors(output: &Output) -> &str {
    text(&output.stderr)
}

/// Programs in C, in a folder that is gone when dropped.
struct Programs(PathBuf);

impl Programs {
    fn new() -> Programs {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let name = format!("pirn-run-programs-{}-{number}", std::process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        Programs(folder)
    }

    /// Compiles a program that says whether its threads are virtual. `None`, and a printed reason,
    /// without a compiler.
    fn threads(&self, arguments: &[&str]) -> Option<String> {
        self.build("../pirn-preload/tests/c/threads.c", arguments)
    }

    /// Compiles a program, with more arguments for the compiler.
    fn build(&self, source: &str, arguments: &[&str]) -> Option<String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let program = self.0.join(source.file_stem().unwrap());
        let mut compiler = Command::new("cc");
        compiler
            .arg("-pthread")
            .arg("-o")
            .arg(&program)
            .arg(source)
            .args(arguments);
        match compiler.status() {
            Ok(status) => assert!(status.success()),
            Err(error) => {
                println!("skipped: no C compiler `cc` ({error})");
                return None;
            }
        }
        Some(program.into_os_string().into_string().unwrap())
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_program_has_virtual_threads() {
    let programs = Programs::new();
    let Some(program) = programs.threads(&[]) else {
        return;
    };
    let quiet = run(&[&program]);
    assert!(out(&quiet).starts_with("virtual"), "{quiet:?}");
    assert_eq!((errors(&quiet), quiet.status.code()), ("", Some(0)));
    let settings = [
        "--verbose",
        "--parallelism=1",
        "--stack-size=1M",
        "--",
        &program,
    ];
    let verbose = run(&settings);
    assert_eq!(out(&verbose), "virtual, stacks of 1024 KiB\n");
    let mut lines = errors(&verbose).lines();
    let first = format!("pirn: {program} runs with {}", library().display());
    assert_eq!(lines.next(), Some(first.as_str()));
    let second = lines.next().unwrap();
    assert!(
        second.contains(": 100 virtual and 0 platform threads"),
        "{second}"
    );
    assert!(second.ends_with("; 1 carrier"), "{second}");
}

#[test]
fn threads_of_a_library_stay_platform_threads() {
    let programs = Programs::new();
    let Some(program) = programs.threads(&[]) else {
        return;
    };
    let output = run(&["--platform", "libother.so", "--platform", "thr*", &program]);
    assert!(out(&output).starts_with("platform"), "{output:?}");
}

#[test]
fn children_inherit_it_unless_they_shall_not() {
    let programs = Programs::new();
    let Some(program) = programs.threads(&[]) else {
        return;
    };
    let script = format!("{program}; {program}");
    let both = run(&["sh", "-c", &script]);
    assert_eq!(out(&both).matches("virtual").count(), 2, "{both:?}");
    let own = run(&["--no-children", &program, &program]);
    let kinds = Vec::from_iter(out(&own).lines().map(|line| &line[..4]));
    assert_eq!(kinds, ["virt", "plat"], "{own:?}");
}

#[test]
fn status_and_arguments_are_the_programs() {
    let output = run(&["sh", "-c", "echo \"$0 $1\"; exit 7", "zero", "--strict"]);
    assert_eq!(out(&output), "zero --strict\n");
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn what_cannot_be_helped_runs_natively_or_not_at_all() {
    let programs = Programs::new();
    let Some(program) = programs.threads(&["-static"]) else {
        return;
    };
    let native = run(&[&program]);
    assert!(out(&native).starts_with("platform"), "{native:?}");
    let reason = "it is linked statically, so no library can be preloaded\n";
    assert_eq!(
        errors(&native),
        format!("pirn: {program} runs natively: {reason}")
    );
    let strict = run(&["--strict", &program]);
    assert_eq!((out(&strict), strict.status.code()), ("", Some(125)));
    let expected = format!("pirn: {program} cannot have virtual threads: {reason}");
    assert_eq!(errors(&strict), expected);
    let script = programs.0.join("script");
    fs::write(&script, format!("#!{program}\n")).unwrap();
    assert_eq!(
        run(&[script.to_str().unwrap()]).status.code(),
        Some(126),
        "not executable"
    );
}

#[test]
fn without_a_program_or_a_library_it_says_so() {
    let none = run(&["no-such-program-anywhere"]);
    assert_eq!(none.status.code(), Some(127));
    let expected = "pirn: there is no 'no-such-program-anywhere' in the folders of PATH\n";
    assert_eq!(errors(&none), expected);
    assert_eq!(run(&["/etc/passwd"]).status.code(), Some(126));
    let lost = finish(command(&["true"]).env("PIRN_LIBRARY", "/nowhere/libpirn.so"));
    assert_eq!(lost.status.code(), Some(125));
    let expected = "pirn: PIRN_LIBRARY is '/nowhere/libpirn.so', which is not a file\n";
    assert_eq!(errors(&lost), expected);
}

/// `pirn` itself has virtual threads without the library.
#[test]
fn a_program_that_contains_pirn_runs_by_itself() {
    let output = run(&[PIRN, "run", "--strict", PIRN, "--version"]);
    assert!(
        errors(&output).contains("a pthread_create of its own"),
        "{output:?}"
    );
    assert_eq!(output.status.code(), Some(125));
}

/// The program finds closed descriptors, and an ignored signal that `std` changes, as natively.
#[test]
fn closed_descriptors_and_an_ignored_sigpipe_stay() {
    let look = "for fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; \
        grep -e SigIgn -e SigBlk /proc/self/status";
    let under = |prepare: &str, how: &str| {
        let mut shell = Command::new("sh");
        let script = format!("{prepare} exec {how} sh -c \"$2\"");
        shell.env("PIRN_LIBRARY", library());
        finish(shell.args(["-c", &script, "sh", PIRN, look]))
    };
    for prepare in ["exec 0<&- 2>&-;", "trap '' PIPE; exec 0<&-;", ""] {
        let (native, here) = (under(prepare, ""), under(prepare, "\"$1\" run"));
        assert_eq!(out(&here), out(&native), "{prepare}");
        assert!(here.status.success());
    }
}

//! The library and C programs, built.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the path of `libpirn.so`, which cargo does not build for the tests by itself.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let own = env::current_exe().unwrap();
        pirn_testing::build_library(own.ancestors().nth(2).unwrap())
    })
}

/// A folder that is removed with this value.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let name = format!("pirn-preload-{}-{number}", std::process::id());
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Builds a program from a file in `tests/c`, with more arguments for the compiler. `None`, and a
/// printed reason, without a compiler.
pub fn build(folder: &Folder, source: &str, arguments: &[&str]) -> Option<PathBuf> {
    let name = Path::new(source).file_name().unwrap().to_str().unwrap();
    let program = folder.path().join(name.replace('.', "-"));
    let compiler = if source.ends_with(".c") { "cc" } else { "c++" };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let mut command = Command::new(compiler);
    command.args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]);
    command.arg(&program).arg(source).args(arguments);
    match command.status() {
        Ok(status) => {
            assert!(status.success());
            Some(program)
        }
        Err(error) => {
            println!("skipped: no compiler `{compiler}` ({error})");
            None
        }
    }
}

/// Returns a command for a program that is ended if it hangs.
pub fn limited(program: &Path) -> Command {
    let mut command = Command::new(program);
    let limit = || {
        pirn_testing::end_if_it_hangs();
        Ok(())
    };
    // SAFETY: it changes no memory, and takes no lock that a thread may have held at the fork: std
    // keeps all threads from changing the environment meanwhile.
    unsafe { command.pre_exec(limit) };
    command
}

/// Returns a command for a program with the library preloaded.
pub fn preloaded(program: &Path) -> Command {
    let mut command = limited(program);
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("PIRN_")) {
        command.env_remove(name);
    }
    command.env("LD_PRELOAD", library()).env("PIRN_LOG", "1");
    command
}

/// Runs a command, which must succeed. Returns what it writes: output and errors.
pub fn run(command: &mut Command) -> (String, String) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    texts(&output)
}

/// Returns what a program has written.
pub fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Runs a check of a C program natively and with virtual threads: the output is the same.
pub fn as_natively_in(source: &str, check: &str) {
    let folder = Folder::new();
    let Some(program) = build(&folder, source, &[]) else {
        return;
    };
    let (native, _) = run(limited(&program).args(["natively", check]));
    for parallelism in ["1", "2", "8"] {
        let mut command = preloaded(&program);
        let command = command.env("PIRN_PARALLELISM", parallelism);
        let (out, _) = run(command.args(["virtually", check]));
        assert_eq!(out, native);
    }
}

//! Checks in C: files of this folder, built as a library, opened and called.

use std::ffi::{CStr, CString, OsStr, OsString, c_int, c_void};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{TempDir, child, skip};

unsafe extern "C" {
    pub fn pirn_make_pthreads_virtual(on: c_int);
}

pub type Check = extern "C" fn();

/// Runs the C compiler. `None`, and a printed reason, without one.
pub fn cc(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Option<()> {
    let arguments = Vec::from_iter(arguments.into_iter().map(|it| it.as_ref().to_owned()));
    let kept = kept(&arguments);
    if let Some((kept, output)) = &kept
        && fs::copy(kept, output).is_ok()
    {
        return Some(());
    }
    // As build scripts find the compiler, which may be one for another machine than this.
    let variable = format!("CC_{}_unknown_linux_gnu", std::env::consts::ARCH);
    let compiler = std::env::var(variable).unwrap_or("cc".to_owned());
    match Command::new(&compiler).args(&arguments).status() {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            skip(&format!("no C compiler `{compiler}` ({error})"));
            return None;
        }
    }
    if let Some((kept, output)) = kept {
        let new = kept.with_extension(std::process::id().to_string());
        fs::copy(output, &new).unwrap();
        fs::rename(new, kept).unwrap();
    }
    Some(())
}

/// Returns where the output of these arguments is kept for the next run of the same test, and the
/// output, if the folder for that is set: loops do not compile the same files each time.
fn kept(arguments: &[OsString]) -> Option<(PathBuf, &OsString)> {
    let folder = std::env::var_os("PIRN_TEST_CC_CACHE")?;
    let place = arguments.iter().position(|it| it == "-o")? + 1;
    let (before, after) = (&arguments[..place], &arguments[place + 1..]);
    let mut hasher = DefaultHasher::new();
    (before, after).hash(&mut hasher);
    let kept = PathBuf::from(folder).join(format!("{:x}", hasher.finish()));
    Some((kept, &arguments[place]))
}

/// A library of checks. It stays open.
pub struct Checks(*mut c_void);

impl Checks {
    /// Builds these files, with `flags` beside the usual ones. `None`, and a printed reason,
    /// without `cc`.
    pub fn build(sources: &[&str], flags: &[&str]) -> Option<Checks> {
        let folder = TempDir::new("c-checks");
        let library = folder.join("libchecks.so");
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
        let usual = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"];
        let flags = usual.iter().chain(flags).map(Path::new);
        let output = [Path::new("-o"), &library];
        let sources = Vec::from_iter(sources.iter().map(|name| here.join(name)));
        cc(flags.chain(output).chain(sources.iter().map(|p| &**p)))?;
        let library = CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: a C string; the library has no initialisers.
        let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        Some(Checks(handle))
    }

    /// Returns what has this name.
    pub fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: a library that stays open, and a C string.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!symbol.is_null());
        symbol
    }

    /// Returns a check.
    pub fn check(&self, name: &str) -> Check {
        let function = self.symbol(&CString::new(name).unwrap());
        // SAFETY: the functions that the tests name have this type.
        unsafe { std::mem::transmute::<*mut c_void, Check>(function) }
    }
}

/// Runs a check of a file in a child process, on this thread and then on a virtual one, with 1, 2
/// and 8 carriers.
pub fn run(source: &str, name: &str) {
    child::with_carriers(&["1", "2", "8"], || {
        let Some(checks) = Checks::build(&[source], &[]) else {
            return;
        };
        let check = checks.check(name);
        // SAFETY: no requirements.
        unsafe { pirn_make_pthreads_virtual(1) };
        check();
        std::thread::spawn(move || check()).join().unwrap();
    });
}

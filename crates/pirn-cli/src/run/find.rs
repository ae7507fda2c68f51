//! Which file a program's name means, as for a shell.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::{Failure, cannot_run};

/// What the C library takes for an unset `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Returns the file that a program's name means, with the folders of `PATH`.
///
/// # Errors
/// The file does not exist, or may not be run.
pub fn program(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Failure> {
    let not_found = || io::Error::from(io::ErrorKind::NotFound);
    if name.is_empty() {
        return Err(cannot_run(Path::new(name), &not_found()));
    }
    if name.as_encoded_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match check(&path) {
            Ok(()) => Ok(path),
            Err(error) => Err(cannot_run(&path, &error)),
        };
    }
    let mut refused = None;
    for folder in env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH))) {
        // An empty one is the working directory.
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &folder
        };
        let path = folder.join(name);
        match check(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                refused.get_or_insert((path, error));
            }
            Err(_) => {}
        }
    }
    match refused {
        Some((path, error)) => Err(cannot_run(&path, &error)),
        None => Err(Failure {
            status: 127,
            text: format!("there is no '{}' in the folders of PATH", name.display()),
        }),
    }
}

/// Checks that a file is one that may be run.
pub fn check(path: &Path) -> io::Result<()> {
    if !path.metadata()?.is_file() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    rustix::fs::access(path, Access::EXEC_OK)?;
    Ok(())
}

#[cfg(test)]
mod tests;

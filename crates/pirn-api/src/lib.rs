//! Rules about the source of pirn, checked by the tests: the public API of each package is what its
//! snapshot, `public-api.txt`, says, and the layers hold.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the Rust files in a folder and in the folders in it.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(rust_files(&path)),
            false if path.extension().is_some_and(|end| end == "rs") => files.push(path),
            false => {}
        }
    }
    files
}

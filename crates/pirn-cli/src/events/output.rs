//! The file that a recording goes to. It is opened before the recording begins, so that the user
//! does not wait for an hour to hear then that the file cannot be written.
//!
//! Until there is something to write, a file that was there before keeps its content; a new file is
//! removed if nothing came.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// See the module's documentation.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    file: File,
    /// It was made by [`open`](Output::open), and nothing has been written to it.
    new: bool,
    /// What it had before is still in it.
    old: bool,
}

impl Output {
    /// Opens a file for writing, or makes it.
    ///
    /// # Errors
    /// A text that names the file, and the cause.
    pub fn open(path: &Path) -> Result<Output, String> {
        let open = |new| {
            let mut options = OpenOptions::new();
            // An existing one may be the end of a symbolic link that leads nowhere.
            options.write(true).create(true).truncate(false);
            options.create_new(new).open(path)
        };
        let (file, new) = match open(true) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (open(false), false),
            made => (made, true),
        };
        Ok(Output {
            path: path.to_owned(),
            file: file.map_err(|error| cannot_write(path, &error))?,
            new,
            old: !new,
        })
    }

    /// Returns what to say about an error of writing.
    pub fn cannot(&self) -> impl Fn(io::Error) -> String + use<> {
        let path = self.path.clone();
        move |error| cannot_write(&path, &error)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("cannot write '{}': {error}", path.display())
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.old {
            self.old = false;
            // Pipes and devices have nothing to be cut off.
            if self.file.metadata()?.is_file() {
                self.file.set_len(0)?;
            }
        }
        self.new = false;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.new {
            let _ = fs::remove_file(&self.path); // Another process may have done so.
        }
    }
}

#[cfg(test)]
mod tests;

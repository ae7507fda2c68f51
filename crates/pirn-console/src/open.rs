//! Opening the page in the user's browser.
//!
//! Command lines can be read by all users of a machine, and the address contains the token. So the
//! browser is given a file that only this user can read, and that leads to the address.

use std::env;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use crate::token::Token;

/// How long the browser has to read the file.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens an address by `xdg-open`.
pub fn open(url: &str) -> Result<(), Box<dyn Error>> {
    let folder = env::var_os("XDG_RUNTIME_DIR").map_or_else(env::temp_dir, PathBuf::from);
    // A name that no other user can guess, and so take before.
    let name = format!("pirn-console-{}.html", Token::random()?.text());
    let path = folder.join(name);
    let cannot = |error| format!("cannot write '{}': {error}", path.display());
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(cannot)?;
    let refresh = format!("<meta http-equiv=\"refresh\" content=\"0;url={url}\">");
    writeln!(file, "<!doctype html><meta charset=\"utf-8\">{refresh}").map_err(cannot)?;
    let mut command = Command::new("xdg-open");
    command
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = command
        .spawn()
        .map_err(|error| format!("cannot run xdg-open: {error}"));
    thread::spawn(move || {
        if let Ok(mut child) = started {
            thread::sleep(PATIENCE);
            let _ = child.wait();
        }
        let _ = fs::remove_file(path);
    });
    Ok(())
}

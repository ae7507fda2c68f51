//! Preloaded libraries that define the same functions.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Command;

use crate::common::{TempDir, block_then, child, most_carriers, skip, watched};

/// An executable's definitions precede a preloaded library's: threads still park.
#[watched]
fn a_preloaded_library_may_define_the_same_functions() {
    if child::is_here() {
        let (reader, mut writer) = io::pipe().unwrap();
        let count = most_carriers() + 4;
        let read = |_| (&reader).read_exact(&mut [0]).unwrap();
        return block_then(count, read, || writer.write_all(&vec![0; count]).unwrap());
    }
    let folder = TempDir::new("preloaded");
    let library = folder.join("libforwarding.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interposed/forwarding.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    match built {
        Ok(status) => assert!(status.success()),
        Err(error) => return skip(&format!("no C compiler `cc` ({error})")),
    }
    child::isolated(&[("LD_PRELOAD", library.to_str().unwrap())], || ());
}

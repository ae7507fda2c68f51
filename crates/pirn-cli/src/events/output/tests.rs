use super::*;

/// A folder of a test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("pirn-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_that_gets_nothing_is_as_before() {
    let folder = Folder::new("output-nothing");
    let (there, new) = (folder.0.join("there"), folder.0.join("new"));
    fs::write(&there, "before").unwrap();
    for path in [&there, &new] {
        let output = Output::open(path).unwrap();
        assert!(path.exists(), "it can be made");
        drop(output);
    }
    assert_eq!(fs::read(&there).unwrap(), b"before");
    assert!(!new.exists());
}

#[test]
fn what_is_written_is_all_that_a_file_has() {
    let folder = Folder::new("output-written");
    let (there, new) = (folder.0.join("there"), folder.0.join("new"));
    fs::write(&there, "longer than what is written").unwrap();
    for path in [&there, &new] {
        let mut output = Output::open(path).unwrap();
        output.write_all(b"one, ").unwrap();
        output.write_all(b"two").unwrap();
        drop(output);
        assert_eq!(fs::read(path).unwrap(), b"one, two");
    }
}

#[test]
fn a_link_to_nowhere_gets_the_file() {
    let folder = Folder::new("output-link");
    let link = folder.0.join("link");
    std::os::unix::fs::symlink("aim", &link).unwrap();
    Output::open(&link).unwrap().write_all(b"x").unwrap();
    assert_eq!(fs::read(folder.0.join("aim")).unwrap(), b"x");
    assert!(link.is_symlink());
}

#[test]
fn devices_are_written_to() {
    let null = Path::new("/dev/null");
    Output::open(null).unwrap().write_all(b"x").unwrap();
    drop(Output::open(null).unwrap());
    assert!(null.exists());
}

#[test]
fn what_cannot_be_written_is_said() {
    let folder = Folder::new("output-refused");
    let within = folder.0.join("none/within");
    for path in [&folder.0, &within] {
        let error = Output::open(path).unwrap_err();
        let start = format!("cannot write '{}': ", path.display());
        assert!(error.starts_with(&start), "{error}");
    }
}

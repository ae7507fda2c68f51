use super::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

fn found(name: &str, path: &str) -> Result<PathBuf, u8> {
    let path = Some(OsStr::new(path));
    program(OsStr::new(name), path).map_err(|failure| failure.status)
}

#[test]
fn names_mean_the_first_file_that_may_be_run() {
    let root = env::temp_dir().join(format!("pirn-run-find-{}", std::process::id()));
    let [a, b] = ["a", "b"].map(|name| root.join(name));
    fs::create_dir_all(a.join("prog")).unwrap(); // A folder is no program.
    fs::create_dir_all(&b).unwrap();
    fs::write(a.join("data"), "").unwrap();
    for (name, mode) in [("prog", 0o755), ("data", 0o644)] {
        fs::write(b.join(name), "").unwrap();
        fs::set_permissions(b.join(name), Permissions::from_mode(mode)).unwrap();
    }
    let path = format!("{}:{}", a.display(), b.display());
    assert_eq!(found("prog", &path), Ok(b.join("prog")));
    assert_eq!(found("data", &path), Err(126));
    assert_eq!(found("none", &path), Err(127));
    assert_eq!(found("", &path), Err(127));
    let by_path = |path: PathBuf| found(path.to_str().unwrap(), "");
    assert_eq!(by_path(b.join("prog")), Ok(b.join("prog")));
    assert_eq!(by_path(b.join("data")), Err(126));
    assert_eq!(by_path(b.join("none")), Err(127));
    fs::remove_dir_all(root).unwrap();
}

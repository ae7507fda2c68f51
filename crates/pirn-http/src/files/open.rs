//! Opening files beneath a folder, wherever a client's path may point.

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};
use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// To read. A named pipe would have the thread wait for a writer without `NONBLOCK`.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// How often the kernel is asked again, if folders are moved while it walks through them.
const TRIES: usize = 8;

/// Opens the folder that files are opened beneath.
pub(crate) fn folder(path: &Path) -> Result<OwnedFd> {
    rustix::fs::open(path, FOLDER, Mode::empty())
}

/// Opens a file, whatever its path.
pub(crate) fn file(path: &Path) -> Result<File> {
    rustix::fs::open(path, READ, Mode::empty()).map(File::from)
}

/// Opens a file or folder beneath a folder. Symbolic links that lead out of that are errors; where
/// the kernel cannot check this (before Linux 5.6, or in a sandbox that forbids the call), all are.
pub(crate) fn beneath(root: BorrowedFd<'_>, path: &[u8]) -> Result<File> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        return match rustix::fs::openat2(root, path, READ, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => continue,
            Err(Errno::NOSYS | Errno::PERM) => without_links(root, path),
            result => result.map(File::from),
        };
    }
    Err(Errno::AGAIN)
}

/// Opens a file by one folder after another.
fn without_links(root: BorrowedFd<'_>, path: &[u8]) -> Result<File> {
    let mut folder = rustix::fs::openat(root, ".", FOLDER, Mode::empty())?;
    let (folders, name) = match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[][..], path),
    };
    for segment in folders
        .split(|&byte| byte == b'/')
        .filter(|segment| !segment.is_empty())
    {
        if segment == b".." {
            return Err(Errno::XDEV);
        }
        folder = rustix::fs::openat(&folder, segment, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    }
    if name == b".." {
        return Err(Errno::XDEV);
    }
    rustix::fs::openat(&folder, name, READ | OFlags::NOFOLLOW, Mode::empty()).map(File::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_outside_of_the_folder_is_opened() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "secret").unwrap();
        let inside = outside.path().join("inside");
        std::fs::create_dir_all(inside.join("a/b")).unwrap();
        std::fs::write(inside.join("a/b/file"), "file").unwrap();
        symlink("../secret", inside.join("link")).unwrap();
        symlink(outside.path(), inside.join("absolute")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        symlink("a", inside.join("good")).unwrap();
        let root = folder(&inside).unwrap();
        for (name, open) in [
            (
                "openat2",
                beneath as fn(BorrowedFd<'_>, &[u8]) -> Result<File>,
            ),
            ("openat", without_links),
        ] {
            assert!(open(root.as_fd(), b"a/b/file").is_ok(), "{name}");
            for path in [
                "link",
                "absolute/secret",
                "up/secret",
                "../secret",
                "a/../../secret",
                "..",
            ] {
                assert!(
                    open(root.as_fd(), path.as_bytes()).is_err(),
                    "{name} {path}"
                );
            }
            assert!(open(root.as_fd(), b"a/b/fi\0le").is_err(), "{name}");
        }
        assert!(
            beneath(root.as_fd(), b"good/b/file").is_ok(),
            "a link that stays inside"
        );
        assert!(without_links(root.as_fd(), b"good/b/file").is_err());
    }
}

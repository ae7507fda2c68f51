//! The names in the folders of a disk that are not on it yet, and what a crash leaves of them.
//!
//! The real folders have all names. [`Names`] has the deeds since, and a crash undoes some, the
//! last first. A deed stays only if all stay that it [needs](needs). So what an undone deed has
//! left is as it was when the deed was done.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A name in a folder, which is known by its inode: it may get another name itself.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) folder: u64,
    pub(super) name: OsString,
}

/// The file or folder that an undone deed restores at a name.
pub(super) enum Old {
    /// Anything but a folder: it has another name here.
    File(PathBuf),
    /// A folder, which was empty: its inode and its mode.
    Folder(u64, u32),
}

/// A change of one or two names.
pub(super) enum Deed {
    /// A name for what had none, or a link. If it is a folder, its inode.
    Made(Name, Option<u64>),
    Removed(Name, Old),
    /// A new name, which something else may have had. Whether it is a folder's.
    Moved(Name, Name, Option<Old>, bool),
    Exchanged(Name, Name),
}

/// The deeds that are not on the disk.
#[derive(Default)]
pub(super) struct Names(Vec<Deed>);

impl Deed {
    fn names(&self) -> impl Iterator<Item = &Name> {
        let (one, other) = match self {
            Deed::Made(name, _) | Deed::Removed(name, _) => (name, None),
            Deed::Moved(one, other, ..) | Deed::Exchanged(one, other) => (one, Some(other)),
        };
        core::iter::once(one).chain(other)
    }

    fn is_in(&self, folder: u64) -> bool {
        self.names().any(|it| it.folder == folder)
    }

    /// Returns what it has removed.
    fn old(&self) -> Option<&Old> {
        match self {
            Deed::Removed(_, old) => Some(old),
            Deed::Moved(_, _, old, _) => old.as_ref(),
            _ => None,
        }
    }
}

/// Returns whether a deed needs an earlier one.
fn needs(deed: &Deed, earlier: &Deed) -> bool {
    // The folder is there, empty, or not below itself.
    let by_folder = match (deed, earlier) {
        (Deed::Moved(_, _, _, true) | Deed::Exchanged(..), _) => true,
        (_, Deed::Made(_, Some(folder))) if deed.is_in(*folder) => true,
        _ => matches!(deed.old(), Some(Old::Folder(folder, _)) if earlier.is_in(*folder)),
    };
    by_folder
        || deed
            .names()
            .any(|it| earlier.names().any(|other| it == other))
}

impl Names {
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn note(&mut self, deed: Deed) {
        self.0.push(deed);
    }

    /// Notes that the disk has the names of a folder, and all that they need; `None`: of each.
    pub(super) fn sync(&mut self, folder: Option<u64>) {
        let is_asked = |deed: &Deed| folder.is_none_or(|folder| deed.is_in(folder));
        let mut synced: Vec<_> = self.0.iter().map(is_asked).collect();
        for place in (0..self.0.len()).rev() {
            for earlier in 0..place {
                synced[earlier] |= synced[place] && needs(&self.0[place], &self.0[earlier]);
            }
        }
        let mut synced = synced.into_iter();
        for deed in self.0.extract_if(.., |_| synced.next() == Some(true)) {
            if let Some(Old::File(path)) = deed.old() {
                let _ = fs::remove_file(path); // At the end of the run, otherwise.
            }
        }
    }

    /// Makes the names below `root` what a crash leaves of them: the first deeds, as in a journal,
    /// or some of the deeds.
    pub(super) fn crash(
        &mut self,
        root: &Path,
        below: &mut dyn FnMut(u64) -> u64,
    ) -> io::Result<()> {
        let deeds = core::mem::take(&mut self.0);
        let by_journal = below(2) == 0;
        let first = below(deeds.len() as u64 + 1) as usize;
        let mut stays = Vec::with_capacity(deeds.len());
        for (place, deed) in deeds.iter().enumerate() {
            let drawn = if by_journal {
                place < first
            } else {
                below(2) == 0
            };
            let has_all = || (0..place).all(|it| stays[it] || !needs(deed, &deeds[it]));
            stays.push(drawn && has_all());
        }
        let mut undoing = Undoing {
            root,
            restored: BTreeMap::new(),
        };
        let mut undone = deeds
            .into_iter()
            .zip(stays)
            .rev()
            .filter(|(_, stays)| !stays);
        undone.try_for_each(|(deed, _)| undoing.undo(deed))
    }
}

/// Undoes deeds, the last first.
struct Undoing<'a> {
    root: &'a Path,
    /// The new inodes of folders that were removed.
    restored: BTreeMap<u64, u64>,
}

impl Undoing<'_> {
    fn path(&self, of: &Name) -> io::Result<PathBuf> {
        let inode = *self.restored.get(&of.folder).unwrap_or(&of.folder);
        let folder = find(self.root, inode)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(folder.join(&of.name))
    }

    fn restore(&mut self, at: &Name, old: Old) -> io::Result<()> {
        let path = self.path(at)?;
        match old {
            Old::File(kept) => fs::rename(kept, path),
            Old::Folder(inode, mode) => {
                fs::DirBuilder::new().mode(mode).create(&path)?;
                self.restored.insert(inode, fs::metadata(path)?.ino());
                Ok(())
            }
        }
    }

    fn undo(&mut self, deed: Deed) -> io::Result<()> {
        match deed {
            Deed::Made(at, None) => fs::remove_file(self.path(&at)?),
            // There may be names in it that were made unseen.
            Deed::Made(at, Some(_)) => fs::remove_dir_all(self.path(&at)?),
            Deed::Removed(at, old) => self.restore(&at, old),
            Deed::Moved(from, to, old, _) => {
                fs::rename(self.path(&to)?, self.path(&from)?)?;
                old.map_or(Ok(()), |old| self.restore(&to, old))
            }
            Deed::Exchanged(one, other) => {
                let (one, other) = (self.path(&one)?, self.path(&other)?);
                let beside = self.root.with_extension("exchanged");
                fs::rename(&one, &beside)?;
                fs::rename(&other, &one)?;
                fs::rename(&beside, &other)
            }
        }
    }
}

/// Returns the folder with this inode, at or below `root`.
fn find(root: &Path, inode: u64) -> io::Result<Option<PathBuf>> {
    if fs::symlink_metadata(root)?.ino() == inode {
        return Ok(Some(root.to_owned()));
    }
    // In an order that does not depend on the file system.
    let mut folders = BTreeSet::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.insert(entry.path());
        }
    }
    for folder in folders {
        if let Some(found) = find(&folder, inode)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

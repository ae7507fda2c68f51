//! The part of a resource that the control groups of this process leave free.

use std::fs;
use std::path::{Path, PathBuf};

/// A resource that control groups limit, with the files in which each version keeps the limit.
pub struct Resource {
    controller: &'static str,
    version_1: Files,
    version_2: Files,
}

/// The files of a group that describe a resource.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Files {
    limit: &'static str,
    used: &'static str,
    /// The lines of `memory.stat` that count memory in use that the kernel frees on demand.
    given_back: &'static [&'static str],
}

const PIDS_FILES: Files = Files {
    limit: "pids.max",
    used: "pids.current",
    given_back: &[],
};

/// Threads.
pub const PIDS: Resource = Resource {
    controller: "pids",
    version_1: PIDS_FILES,
    version_2: PIDS_FILES,
};

/// Memory in bytes, of which cached files take all that is free.
pub const MEMORY: Resource = Resource {
    controller: "memory",
    version_1: Files {
        limit: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        given_back: &["total_inactive_file", "total_active_file"],
    },
    version_2: Files {
        limit: "memory.max",
        used: "memory.current",
        given_back: &["inactive_file", "active_file"],
    },
};

/// Returns what the groups of this process, and all those above them, leave; `None` if none has a
/// limit.
pub fn room(resource: &Resource) -> Option<u64> {
    let memberships = fs::read_to_string("/proc/self/cgroup").ok()?;
    let root = Path::new("/sys/fs/cgroup");
    memberships
        .lines()
        .filter_map(|line| group(line, resource))
        .flat_map(|group| {
            let folders = group.folders(root);
            folders.filter_map(move |folder| group.files.room(&folder))
        })
        .min()
}

/// A group as one line of `/proc/self/cgroup` names it.
#[derive(Debug, PartialEq)]
struct Group<'a> {
    /// The folder of the controllers under the root; empty in version 2.
    hierarchy: &'a str,
    path: &'a str,
    files: Files,
}

/// Returns the group that a line names, if the group limits `resource`.
fn group<'a>(line: &'a str, resource: &Resource) -> Option<Group<'a>> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (hierarchy, path) = (fields.next()?, fields.next()?);
    let files = if hierarchy.is_empty() {
        resource.version_2
    } else if hierarchy
        .split(',')
        .any(|controller| controller == resource.controller)
    {
        resource.version_1
    } else {
        return None;
    };
    Some(Group {
        hierarchy,
        path,
        files,
    })
}

impl<'a> Group<'a> {
    /// Returns the folders of the group and of all groups above it.
    fn folders(&self, root: &Path) -> impl Iterator<Item = PathBuf> + use<'a> {
        let root = root.join(self.hierarchy);
        Path::new(self.path)
            .ancestors()
            .map(move |path| root.join(path.strip_prefix("/").unwrap_or(path)))
    }
}

impl Files {
    /// Returns what the group with this folder leaves; `None` if it has no limit.
    fn room(&self, folder: &Path) -> Option<u64> {
        let limit = number(&folder.join(self.limit))?;
        let used = number(&folder.join(self.used))?;
        let stat = match self.given_back {
            [] => String::new(),
            _ => fs::read_to_string(folder.join("memory.stat")).unwrap_or_default(),
        };
        let given_back = sum_of(&stat, self.given_back);
        Some(limit.saturating_sub(used.saturating_sub(given_back)))
    }
}

/// Returns the sum of the values of the lines with these names.
fn sum_of(stat: &str, names: &[&str]) -> u64 {
    stat.lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| names.contains(name))
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum()
}

/// Returns the number in a file; `None` if there is no such file, or no limit ("max").
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests;

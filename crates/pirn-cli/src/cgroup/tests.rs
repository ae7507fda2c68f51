use super::*;

#[test]
fn lines_of_both_versions_are_understood() {
    let named = |line| group(line, &MEMORY).map(|group| (group.hierarchy, group.path));
    assert_eq!(named("0::/a/b:c"), Some(("", "/a/b:c")));
    assert_eq!(named("4:memory:/x"), Some(("memory", "/x")));
    assert_eq!(named("4:cpu,memory:/x"), Some(("cpu,memory", "/x")));
    assert_eq!(named("5:pids:/x"), None);
    assert_eq!(named("1:name=systemd:/"), None);
    assert_eq!(named("nonsense"), None);
}

#[test]
fn a_group_is_limited_by_those_above_it_too() {
    let group = group("0::/a/b", &PIDS).unwrap();
    let folders: Vec<_> = group.folders(Path::new("/root")).collect();
    assert_eq!(folders, ["/root/a/b", "/root/a", "/root/"].map(Path::new));
}

#[test]
fn cached_files_are_no_used_memory() {
    let stat = "active_file 2\ninactive_file 5\ntotal_active_file 30\nfile 90\n";
    assert_eq!(sum_of(stat, MEMORY.version_2.given_back), 7);
    assert_eq!(sum_of(stat, MEMORY.version_1.given_back), 30);
}

#[test]
fn a_group_leaves_its_limit_less_what_is_used() {
    let folder = std::env::temp_dir().join(format!("pirn-cgroup-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("memory.max", "1000\n");
    write("memory.current", "900\n");
    write(
        "memory.stat",
        "anon 600\ninactive_file 250\nactive_file 50\n",
    );
    write("pids.max", "max\n");
    write("pids.current", "3\n");
    let rooms = (
        MEMORY.version_2.room(&folder),
        MEMORY.version_1.room(&folder),
        PIDS.version_2.room(&folder),
    );
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(rooms, (Some(400), None, None));
}

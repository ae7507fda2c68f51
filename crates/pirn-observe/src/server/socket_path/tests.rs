//! Tests of places.

use super::*;

#[test]
fn a_socket_is_named_after_its_process() {
    assert_eq!(process_of(c"12-3456.sock"), Some((12, 3456)));
    assert_eq!(process_of(c"12-3456.sock.78"), Some((12, 3456)));
    for other in [c"12.sock", c"x-1.sock", c"12-3456", c"-1-2.sock", c".."] {
        assert_eq!(process_of(other), None, "{other:?}");
    }
}

#[test]
fn a_folder_for_others_is_refused() {
    let base = std::env::temp_dir().join(format!("pirn-place-{}", std::process::id()));
    let path = |path: &std::path::Path| CString::new(path.to_str().unwrap()).unwrap();
    std::fs::create_dir_all(&base).unwrap();
    let candidate = |private| Candidate {
        base: path(&base),
        name: c"pirn".to_owned(),
        private,
    };
    let user = identity().1;
    assert!(open_folder(&candidate(true), user).is_ok());
    let folder = base.join("pirn");
    let mode = |mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&folder, mode).unwrap();
    };
    let refused = |private, user| open_folder(&candidate(private), user).err().unwrap();
    mode(0o777);
    assert_eq!(
        refused(true, user),
        "others may enter it (mode 777, not 700)"
    );
    mode(0o700);
    let outer = format!("the folder around it belongs to user {user}");
    assert_eq!(refused(true, user + 1), outer);
    assert_eq!(refused(false, user + 1), format!("belongs to user {user}"));
    std::fs::rename(&folder, base.join("other")).unwrap();
    std::os::unix::fs::symlink("other", &folder).unwrap();
    assert_eq!(refused(true, user), "not a folder");
    std::fs::remove_dir_all(&base).unwrap();
}

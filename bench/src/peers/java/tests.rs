use super::*;

/// A folder that looks like a JDK of this version.
fn fake(version: &str) -> PathBuf {
    let home =
        std::env::temp_dir().join(format!("pirn-bench-jdk-{version}-{}", std::process::id()));
    fs::create_dir_all(home.join("bin")).unwrap();
    fs::write(
        home.join("release"),
        format!("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"{version}\"\n"),
    )
    .unwrap();
    fs::write(home.join("bin/javac"), "").unwrap();
    home
}

#[test]
fn the_named_jdk_is_taken_if_it_is_new_enough() {
    let (old, new, newer) = (fake("17.0.15"), fake("25.0.3"), fake("26"));
    let version = |named: Option<&PathBuf>, installed: &[&PathBuf]| {
        let installed = installed.iter().map(|&home| home.clone()).collect();
        choose(named.cloned(), installed).map(|jdk| (jdk.version, jdk.refused))
    };
    assert_eq!(
        version(Some(&new), &[&newer]).unwrap(),
        ("25.0.3".into(), None)
    );
    assert_eq!(version(None, &[&old, &new, &newer]).unwrap().0, "26");

    let (chosen, refused) = version(Some(&old), &[&new]).unwrap();
    assert_eq!(chosen, "25.0.3");
    assert!(refused.unwrap().contains("JDK 17.0.15, which is refused"));

    let error = version(None, &[&old]).unwrap_err();
    assert!(
        error.contains("25 or newer") && error.contains("JDK 17.0.15"),
        "{error}"
    );
    [old, new, newer]
        .iter()
        .for_each(|home| fs::remove_dir_all(home).unwrap());
}

#[test]
fn versions_are_compared_as_numbers() {
    assert!(numbers("25.0.10") > numbers("25.0.9"));
    assert!(numbers("26-ea") > numbers("25.0.9"));
    assert_eq!(numbers("1.8.0_452"), [1, 8, 0, 452]);
}

use super::*;

#[test]
fn a_folder_has_one_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let read = || {
        let made = Certificate::in_folder(folder.path()).unwrap();
        let files = made.environment().into_iter();
        files
            .map(|(name, file)| (name, fs::read_to_string(file).unwrap()))
            .collect::<Vec<_>>()
    };
    let first = read();
    assert_eq!(first[0].0, "BENCH_CERTIFICATE");
    assert!(first[0].1.starts_with("-----BEGIN CERTIFICATE-----"));
    assert_eq!(first[1].0, "BENCH_KEY");
    assert!(first[1].1.starts_with("-----BEGIN PRIVATE KEY-----"));
    assert_eq!(read(), first);
}

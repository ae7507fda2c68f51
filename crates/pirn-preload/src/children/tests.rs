use super::remove;

#[test]
fn what_others_preload_stays() {
    for (list, expected) in [
        ("", ""),
        ("own", ""),
        ("own:a", "a"),
        ("a:own", "a"),
        ("a:own:b", "a:b"),
        ("a own b", "a b"),
        ("own own", ""),
        ("own:a:own:b:own", "a:b"),
        ("a:b", "a:b"),
        ("owner:my/own", "owner:my/own"),
    ] {
        let mut list = list.to_owned().into_bytes();
        let left = remove(&mut list, b"own");
        assert_eq!(str::from_utf8(&list[..left]).unwrap(), expected);
    }
}

#[test]
fn it_succeeds_here() {
    assert_eq!(super::run(), Ok(()));
}

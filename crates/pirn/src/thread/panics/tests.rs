use super::*;

#[test]
fn only_the_same_function_is_the_same_hook() {
    let (silent, loud): (Box<Hook>, Box<Hook>) =
        (Box::new(|_| ()), Box::new(|_| eprintln!("loud")));
    assert!(!same(&*silent, &*loud));
    let data = 5;
    let with_data: Box<Hook> = Box::new(move |_| assert_eq!(data, 5));
    assert!(!same(&*silent, &*with_data));
    assert!(same(&*silent, &*silent));
}

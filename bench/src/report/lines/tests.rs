use super::*;

#[test]
fn names_do_not_overlap_and_stay_in_the_picture() {
    assert_eq!(apart(&[10, 100], 15, 300), [10, 100]);
    assert_eq!(apart(&[10, 12, 13], 15, 300), [10, 25, 40]);
    assert_eq!(apart(&[290, 295, 299], 15, 300), [270, 285, 300]);
    assert_eq!(apart(&[], 15, 300), [0; 0]);
}

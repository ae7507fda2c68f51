use super::*;

#[test]
fn every_note_is_of_the_form_that_is_looked_for() {
    for key in NOTES.keys() {
        assert_eq!(key.split('/').count(), 3, "{key}");
    }
    assert_eq!(find("no such workload", "c", "m"), None);
}

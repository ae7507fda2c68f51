use super::*;

/// Returns a note.
fn note(name: &[u8], contents: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    for number in [name.len(), contents.len(), 4] {
        all.extend((number as u32).to_le_bytes());
    }
    for text in [name, contents] {
        all.extend(text);
        all.resize(all.len().next_multiple_of(4), 0);
    }
    all
}

#[test]
fn gos_note_is_found_among_others() {
    let (go, gnu) = (note(b"Go\0\0", b"id"), note(b"GNU\0", b"12345"));
    assert!(has_note(&go));
    assert!(has_note(&[gnu.clone(), go.clone()].concat()));
    assert!(!has_note(&gnu));
    assert!(!has_note(&gnu[..13]));
    assert!(!has_note(&[gnu, go[..11].to_vec()].concat()));
    assert!(!has_note(b""));
    assert!(!made_this());
}

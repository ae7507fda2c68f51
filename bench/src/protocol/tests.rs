use super::*;

#[test]
fn every_kind_of_line_is_understood() {
    let hello = Line::parse(r#"{"peer":"go","version":"go1.26"}"#).unwrap();
    assert!(matches!(hello, Line::Hello { peer, .. } if peer == "go"));
    let number =
        Line::parse(r#"{"metric":"m","value":1.5,"unit":"s","done":18446744073709551615,"due":1}"#);
    assert!(matches!(
        number.unwrap(),
        Line::Number {
            done: u64::MAX,
            due: 1,
            ..
        }
    ));
    let skip = Line::parse(r#"{"metric":"park","skip":"no park"}"#).unwrap();
    assert!(matches!(skip, Line::Skip { skip, .. } if skip == "no park"));
    let at = Line::parse(r#"{"at":"parked","count":7}"#).unwrap();
    assert_eq!(
        at,
        Line::At {
            at: "parked".into(),
            count: 7
        }
    );
    assert_eq!(
        Line::parse(r#"{"listening":80}"#).unwrap(),
        Line::Listening { listening: 80 }
    );
    assert_eq!(
        Line::parse(r#"{"end":true}"#).unwrap(),
        Line::End { end: true }
    );
    assert_eq!(
        Line::parse(r#"{"error":"e"}"#).unwrap(),
        Line::Error { error: "e".into() }
    );
}

#[test]
fn other_objects_are_refused_with_their_text() {
    let error = Line::parse(r#"{"metric":"m"}"#).unwrap_err().to_string();
    assert!(error.contains("metric"), "{error}");
}

#[test]
fn output_tells_missing_doubled_and_odd_lines() {
    let printed = |lines: &[&str]| {
        let mut output = Output::default();
        lines.iter().for_each(|line| output.add(line));
        output
    };
    let expected = Output::of_numbers_below(4);
    assert_eq!(printed(&["3", "1", "0", "2"]), expected);
    assert_ne!(printed(&["3", "1", "0"]), expected);
    assert_ne!(printed(&["3", "3", "0", "0"]), expected);
    assert_ne!(printed(&["3", "1", "0", "2", "x"]), expected);
}

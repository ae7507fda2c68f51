use super::*;

fn findings() -> [Finding; 2] {
    [
        Finding::ok("kernel", "Linux 6.18"),
        Finding::warn("mappings", "65530", "raise \"it\""),
    ]
}

#[test]
fn text_has_a_line_per_matter_and_one_for_advice() {
    let mut out = Vec::new();
    write_text(&findings(), &mut out).unwrap();
    let expected = "ok    kernel    Linux 6.18\n\
                        warn  mappings  65530\n                \
                        -> raise \"it\"\n\n\
                        Virtual threads run here, within the limits above.\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn json_is_an_object() {
    let mut out = Vec::new();
    write_json(&findings(), &mut out).unwrap();
    let expected = r#"{
  "verdict": "warn",
  "findings": [
    {
      "verdict": "ok",
      "subject": "kernel",
      "found": "Linux 6.18",
      "advice": ""
    },
    {
      "verdict": "warn",
      "subject": "mappings",
      "found": "65530",
      "advice": "raise \"it\""
    }
  ]
}
"#;
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn the_worst_decides() {
    let [ok, warn] = findings();
    let bad = Finding::bad("processor", "", "");
    assert_eq!(worst(&[]), Verdict::Ok);
    assert_eq!(worst(std::slice::from_ref(&ok)), Verdict::Ok);
    assert_eq!(worst(&[ok.clone(), warn.clone()]), Verdict::Warn);
    assert_eq!(worst(&[bad, warn, ok]), Verdict::Bad);
}

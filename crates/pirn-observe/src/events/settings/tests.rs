use super::*;

fn parsed(text: &str) -> Option<Keep> {
    let size = |text: &str| match text.split_at(text.len().saturating_sub(1)) {
        (digits, "K") => Some(digits.parse::<usize>().ok()? << 10),
        (digits, "M") => Some(digits.parse::<usize>().ok()? << 20),
        (digits, "G") => Some(digits.parse::<usize>().ok()? << 30),
        _ => text.parse().ok(),
    };
    parse(OsStr::new(text), size)
}

#[test]
fn a_size_is_enough() {
    let keep = parsed("1M").unwrap();
    assert_eq!(keep.bytes, 1 << 20);
    assert!(keep.rules == Rules::default() && keep.folder.is_none());
    assert_eq!(parsed("0").unwrap().bytes, 0);
}

#[test]
fn rules_and_a_folder_follow() {
    let keep = parsed("16K,stuck=100ms,latency=250us,panic,folder=/var/tmp/a=b").unwrap();
    let rules = Rules {
        stuck: Some(Duration::from_millis(100)),
        latency: Some(Duration::from_micros(250)),
        panic: true,
    };
    assert_eq!(keep.rules, rules);
    assert_eq!(keep.folder.unwrap(), PathBuf::from("/var/tmp/a=b"));
}

#[test]
fn anything_else_is_an_error() {
    let bad = [
        "",
        "on",
        "1K",
        "2G",
        "1M,",
        "1M,stuck",
        "1M,stuck=",
        "1M,stuck=0ms",
        "1M,stuck=5",
        "1M,panic=1",
        "1M,other=1",
        "stuck=1ms",
        "-1",
        "1M,latency=1m",
    ];
    for text in bad {
        assert_eq!(parsed(text), None, "{text}");
    }
}

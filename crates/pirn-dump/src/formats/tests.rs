//! The formats as they are written; `foreign` has the tools that read them.

use crate::model::*;
use crate::samples::{everything, hostile_names, names, show_everywhere};
use crate::view::{Format, View};
use serde_json::Value;
use std::io::Read;

pub(super) fn written(dump: &Dump, format: Format) -> Vec<u8> {
    let mut text = Vec::new();
    format
        .write(dump, &names(dump), &View::default(), &mut text)
        .unwrap();
    text
}

fn text(dump: &Dump, format: Format) -> String {
    String::from_utf8(written(dump, format)).unwrap()
}

fn json(dump: &Dump, format: Format) -> Value {
    serde_json::from_slice(&written(dump, format)).unwrap()
}

#[test]
fn every_format_has_a_name_and_takes_everything() {
    let shown = show_everywhere(&everything());
    assert_eq!(shown.len(), 2 * Format::names().count());
    assert!(shown.iter().all(|(_, text)| !text.is_empty()));
    show_everywhere(&Dump::default());
    let error = "xml".parse::<Format>().unwrap_err();
    assert!(
        error.contains("\"xml\"") && error.contains("jdk25"),
        "{error}"
    );
}

#[test]
fn json_has_everything_and_stacks_once() {
    let dump = everything();
    let json = json(&dump, Format::Json);
    assert_eq!(json["stacks"].as_array().unwrap().len(), dump.stacks.len());
    let threads = json["threads"].as_array().unwrap();
    assert_eq!(threads.len(), dump.threads.len());
    assert_eq!(threads[1]["wait"]["kind"], "mutex");
    assert_eq!(threads[1]["wait"]["owner"], 2);
    assert_eq!(threads[3]["wait"]["peer"], "[::1]:4000");
    assert_eq!(threads[6]["until"], "1970-01-01T00:00:02.000000000Z");
    let frames = &json["stacks"][0]["frames"];
    assert_eq!(frames[0]["function"], "recvfrom");
    assert_eq!(frames[2]["function"], "server::<script>\"\u{1b}[2J");
    assert_eq!(frames[2]["file"], "/home/\"me\"/src/main\n.rs");
    assert_eq!(json["totals"]["states"]["waiting"], 13);
}

#[test]
fn names_in_json_are_whole() {
    let dump = everything();
    let json = json(&dump, Format::Json);
    for (name, thread) in hostile_names()
        .iter()
        .zip(json["threads"].as_array().unwrap())
    {
        match std::str::from_utf8(name) {
            Ok(name) => assert_eq!(thread["name"], name),
            Err(_) => {
                let hex: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(thread["nameBytes"], hex);
            }
        }
    }
    let raw = text(&dump, Format::Json);
    // In a page nothing of it is a tag's end, in a terminal nothing has an effect.
    assert!(!raw.contains("</script>"));
    assert!(!raw.chars().any(|c| c.is_control() && c != '\n'));
}

const JDK25: &str = r#"{
  "threadDump": {
    "processId": "4711",
    "time": "1970-01-01T00:00:01.500000000Z",
    "runtimeVersion": "pirn 0.1.0",
    "threadContainers": [
      {
        "container": "<root>",
        "parent": null,
        "owner": null,
        "threads": [
        ],
        "threadCount": "0"
      },
      {
        "container": "orders\/\"x\"\n\/pirn.scope@7",
        "parent": "<root>",
        "owner": null,
        "threads": [
          {
            "tid": "2",
            "time": "1970-01-01T00:00:01.500000000Z",
            "virtual": true,
            "name": "a \"quoted\" \\ name \/ with, commas; and = signs",
            "state": "BLOCKED",
            "blockedOn": "mutex@7f0000001000",
            "stack": [
              "recvfrom(socket.rs:9)",
              "<std::net::TcpStream as std::io::Read>::read(tcp.rs:10)",
              "server::<script>\"\u001b[2J(main\n.rs:11)",
              "0x10(Unknown Source)"
            ],
            "carrier": "4711"
          }
        ],
        "threadCount": "5"
      },
      {
        "container": "pirn.scope@8",
        "parent": "orders\/\"x\"\n\/pirn.scope@7",
        "owner": "2",
        "threads": [
        ],
        "threadCount": "0"
      }
    ]
  }
}"#;

#[test]
fn jdk25_is_the_jdks_to_the_letter() {
    let mut dump = everything();
    dump.threads = vec![Thread {
        stack: Some(0),
        carrier: Some(0),
        ..dump.threads[1].clone()
    }];
    let text = text(&dump, Format::Jdk25);
    // The text above has the names' escapes as they are in JSON.
    assert_eq!(text, JDK25);
}

#[test]
fn jdk27_has_numbers_a_version_and_owners() {
    let dump = everything();
    let json = json(&dump, Format::Jdk);
    let dump_object = json["threadDump"].as_object().unwrap();
    assert_eq!(dump_object["formatVersion"], 2);
    assert_eq!(dump_object["processId"], 4711);
    let raw = text(&dump, Format::Jdk);
    assert!(raw.starts_with(
        "{\n  \"threadDump\": {\n    \"formatVersion\": 2,\n    \"processId\": 4711,"
    ));
    let locked = raw.find("\"tid\": 2,").unwrap();
    let expected = "\"parkBlocker\": {\n              \"object\": \"mutex@7f0000001000\",\n              \
                    \"owner\": 2\n            },\n            \"blockedOn\": \"mutex@7f0000001000\",";
    assert!(raw[locked..].contains(expected), "{}", &raw[locked..]);
}

#[test]
fn jdk_states_are_javas() {
    let json = json(&everything(), Format::Jdk25);
    let containers = json["threadDump"]["threadContainers"].as_array().unwrap();
    let threads: Vec<&Value> = containers
        .iter()
        .flat_map(|it| it["threads"].as_array().unwrap())
        .collect();
    let of = |id: &str| *threads.iter().find(|thread| thread["tid"] == id).unwrap();
    for (id, state, object) in [
        ("1", "NEW", None),
        ("2", "BLOCKED", None),
        ("3", "WAITING", Some("futex@7f0000002000")),
        ("4", "WAITING", Some("fd@12")),
        ("7", "TIMED_WAITING", None),
        ("9", "WAITING", Some("join@4")),
        ("10", "WAITING", Some("pirn.scope@7")),
    ] {
        assert_eq!(of(id)["state"], state, "{id}");
        assert_eq!(of(id)["parkBlocker"]["object"].as_str(), object, "{id}");
    }
    assert_eq!(of("6").get("virtual"), None);
}

#[test]
fn folded_stacks_are_lines_of_names_and_a_number() {
    let mut dump = everything();
    dump.threads.truncate(3);
    dump.regroup();
    let folded = text(&dump, Format::Folded);
    let expected = "(no stack) 1\n0x10;server::<script>\"\\x1b[2J;\
                    <std::net::TcpStream as std::io::Read>::read;recvfrom 2\n";
    assert!(folded.starts_with(expected), "{folded}");
    let sum: u64 = folded
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
        .sum();
    assert_eq!(sum, 3);
    assert!(folded.lines().all(|line| {
        line.rsplit_once(' ')
            .unwrap()
            .0
            .split(';')
            .all(|name| !name.is_empty())
    }));
}

#[test]
fn a_profile_is_compressed_and_has_all_texts() {
    let profile = written(&everything(), Format::Pprof);
    let mut raw = Vec::new();
    flate2::read::GzDecoder::new(&profile[..])
        .read_to_end(&mut raw)
        .unwrap();
    for text in [
        "threads",
        "count",
        "waiting",
        "nanoseconds",
        "recvfrom",
        "state",
        "mutex",
        "(no stack)",
    ] {
        assert!(
            raw.windows(text.len())
                .any(|window| window == text.as_bytes()),
            "{text} is missing"
        );
    }
}

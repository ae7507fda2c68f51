use super::super::finding::Verdict::{self, Bad, Ok, Warn};
use super::*;

/// A program that lacks nothing.
fn good() -> Elf {
    Elf {
        interpreter: Some(format!("/lib/{}.1", THIS.linker())),
        needed: vec!["libc.so.6".into()],
        has_pirn: true,
        ..Elf::default()
    }
}

/// Checks what is said about `subject` after a change of that program.
#[track_caller]
fn check(subject: &str, change: impl FnOnce(&mut Elf), verdict: Verdict, word: &str) {
    let mut elf = good();
    change(&mut elf);
    let findings = examine(&Program::Elf(elf), None);
    let finding = findings
        .iter()
        .find(|f| f.subject == subject)
        .expect(subject);
    assert_eq!(finding.verdict, verdict, "{finding:?}");
    assert_eq!(finding.advice.is_empty(), verdict == Ok, "{finding:?}");
    let text = format!("{} {}", finding.found, finding.advice);
    assert!(text.contains(word), "no {word:?} in {text:?}");
}

#[test]
fn a_good_program_is_good() {
    let findings = examine(&Program::Elf(good()), None);
    assert!(findings.iter().all(|f| f.verdict == Ok), "{findings:?}");
}

#[test]
fn other_files_are_named() {
    for (obstacle, verdict) in [(None, Ok), (Some(&Obstacle::Static), Bad)] {
        let findings = examine(&Program::Other("a script"), obstacle);
        assert_eq!((findings.len(), findings[0].verdict), (1, verdict));
    }
}

#[test]
fn linking() {
    let check = |change: fn(&mut Elf), verdict, word| check("linking", change, verdict, word);
    check(|_| (), Ok, "glibc");
    check(|elf| elf.interpreter = None, Bad, "crt-static");
    let library = |elf: &mut Elf| (elf.interpreter, elf.is_library) = (None, true);
    check(library, Bad, "shared library");
    let musl = |elf: &mut Elf| elf.interpreter = Some("/lib/ld-musl-x86_64.so.1".into());
    check(musl, Bad, "musl");
    check(
        |elf| elf.interpreter = Some("/my/ld.so".into()),
        Warn,
        "/my/ld.so",
    );
}

#[test]
fn interposition() {
    let check = |change: fn(&mut Elf), verdict, word| {
        check("interposition", change, verdict, word);
    };
    let without = |elf: &mut Elf| (elf.has_pirn, elf.missing) = (false, ESSENTIAL.to_vec());
    check(without, Ok, "`pirn run`");
    check(|elf| elf.has_pirn = false, Ok, "`pirn run`");
    let mut elf = good();
    elf.has_pirn = false;
    let findings = examine(&Program::Elf(elf), Some(&Obstacle::OwnThreads));
    assert!(
        findings
            .iter()
            .any(|f| f.verdict == Bad && f.found.contains("of its own"))
    );
    check(|elf| elf.missing = vec!["read", "poll"], Bad, "read, poll");
    let static_one = Elf {
        interpreter: None,
        ..good()
    };
    let findings = examine(&Program::Elf(static_one), None);
    assert!(findings.iter().all(|f| f.subject != "interposition"));
}

#[test]
fn allocators_and_rights() {
    check(
        "allocator",
        |elf| elf.allocators = vec!["jemalloc"],
        Warn,
        "OnCarrier",
    );
    let stripped = |elf: &mut Elf| (elf.allocators, elf.is_stripped) = (vec!["jemalloc"], true);
    check("allocator", stripped, Warn, "cannot tell");
    let wrapped = |elf: &mut Elf| {
        (elf.allocators, elf.has_wrapper) = (vec!["mimalloc"], true);
    };
    check("allocator", wrapped, Ok, "mimalloc, in pirn::OnCarrier");
    check("allocator", |elf| elf.is_stripped = true, Ok, "stripped");
    check("rights", |elf| elf.is_setuid = true, Warn, "PIRN_");
}

//! Conclusions from the facts about a program.

use super::finding::Finding;
use super::program::{ESSENTIAL, Elf, Program};
use crate::arch::THIS;
use crate::run::obstacle::Obstacle;

/// Returns all findings about a program; `obstacle`: why `pirn run` cannot help it.
pub fn examine(program: &Program, obstacle: Option<&Obstacle>) -> Vec<Finding> {
    let elf = match program {
        Program::Elf(elf) => elf,
        Program::Other(what) => return vec![other(what, obstacle)],
    };
    let linking = linking(elf);
    let mut findings = vec![linking];
    if elf.interpreter.is_some() {
        findings.push(interposition(elf, obstacle));
    }
    findings.extend(allocator(elf));
    findings.extend(rights(elf));
    findings
}

/// Returns the finding about a file that is no program for this system.
fn other(what: &str, obstacle: Option<&Obstacle>) -> Finding {
    const SUBJECT: &str = "program";
    match obstacle {
        None => Finding::ok(
            SUBJECT,
            format!("{what}: `pirn run` gives virtual threads to the programs that it runs"),
        ),
        Some(obstacle) => Finding::bad(
            SUBJECT,
            format!("{what}: {obstacle}"),
            &format!(
                "name the executable, a program for Linux on {}",
                THIS.name()
            ),
        ),
    }
}

/// Returns the finding about how the program is linked, and with which C library.
fn linking(elf: &Elf) -> Finding {
    const SUBJECT: &str = "linking";
    match elf.interpreter.as_deref() {
        None if elf.is_library => Finding::bad(
            SUBJECT,
            "a shared library",
            "pirn must be in the executable: what a library that is loaded later defines does not \
             win over the C library's functions",
        ),
        None => Finding::bad(
            SUBJECT,
            "static: the C library's functions are bound already, and none can be interposed",
            &format!(
                "link dynamically: build for {}, without `-C target-feature=+crt-static`",
                THIS.target()
            ),
        ),
        Some(path) if path.contains("ld-musl") => Finding::bad(
            SUBJECT,
            format!("for musl ({path})"),
            &format!("build for {}: virtual threads need glibc", THIS.target()),
        ),
        Some(path) if path.contains(THIS.linker()) => Finding::ok(SUBJECT, "dynamic, with glibc"),
        Some(path) => Finding::warn(
            SUBJECT,
            format!("dynamic, by the unknown dynamic linker {path}"),
            "it must be glibc's",
        ),
    }
}

/// Returns the finding about whether its definitions of libc's functions are visible to all
/// callers.
fn interposition(elf: &Elf, obstacle: Option<&Obstacle>) -> Finding {
    const SUBJECT: &str = "interposition";
    const WITHOUT: &str = "was built without pirn";
    match (elf.has_pirn, &*elf.missing) {
        (true, []) => {
            let count = ESSENTIAL.len();
            Finding::ok(
                SUBJECT,
                format!("defines all {count} of the functions looked for"),
            )
        }
        (false, _) => match obstacle {
            None => Finding::ok(
                SUBJECT,
                format!("{WITHOUT}: `pirn run` gives it virtual threads"),
            ),
            Some(obstacle) => Finding::bad(
                SUBJECT,
                format!("{WITHOUT}, and `pirn run` cannot help: {obstacle}"),
                "add pirn to its dependencies, and use it",
            ),
        },
        (true, missing) => Finding::bad(
            SUBJECT,
            format!("does not define for others: {}", missing.join(", ")),
            "its linker hides symbols: leave out version scripts and \
             -Wl,--exclude-libs, or export these names",
        ),
    }
}

fn allocator(elf: &Elf) -> Option<Finding> {
    const SUBJECT: &str = "allocator";
    let names = elf.allocators.join(", ");
    if names.is_empty() {
        let doubt = if elf.is_stripped {
            " seen (the program is stripped)"
        } else {
            ""
        };
        return Some(Finding::ok(SUBJECT, format!("none but glibc's{doubt}")));
    }
    if elf.has_wrapper {
        return Some(Finding::ok(SUBJECT, format!("{names}, in pirn::OnCarrier")));
    }
    let doubt = if elf.is_stripped {
        "; the program is stripped, so this cannot tell whether it is in pirn::OnCarrier"
    } else {
        ", and no sign of pirn::OnCarrier"
    };
    Some(Finding::warn(
        SUBJECT,
        names + doubt,
        "wrap the #[global_allocator] in pirn::OnCarrier, or each virtual thread grows a cache of its \
         own; as the C malloc it works too, with such caches",
    ))
}

fn rights(elf: &Elf) -> Option<Finding> {
    elf.is_setuid.then(|| {
        Finding::warn(
            "rights",
            "setuid or setgid: for callers with fewer rights no PIRN_ variable counts, tools cannot \
             look inside, and preloaded libraries are ignored",
            "set its options in the program, with pirn::Config",
        )
    })
}

#[cfg(test)]
mod tests;

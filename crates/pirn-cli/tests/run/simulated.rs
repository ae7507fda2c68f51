//! `pirn run --seed`: programs in C and Python that are simulated.

use crate::{Programs, errors, out, run};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs a program by a seed.
fn by(seed: u32, program: &[&str]) -> Output {
    let seed = seed.to_string();
    run(&[&["--seed", &seed], program].concat())
}

/// Returns which of the first seeds end with this status.
fn ending_with(status: i32, seeds: u32, program: &[&str]) -> Vec<u32> {
    let ends = |seed: &u32| by(*seed, program).status.code() == Some(status);
    (0..seeds).filter(ends).collect()
}

/// A folder's file in the tests.
fn own(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run");
    folder.join(name).to_str().unwrap().to_owned()
}

/// Returns whether there is a Python of the system's or the user's; if not, says so.
fn has_python() -> bool {
    let found = Command::new("python3").arg("-V").output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: no `python3`");
    }
    found
}

#[test]
fn a_wait_without_a_loop_fails_and_one_with_a_loop_does_not() {
    const SEEDS: u32 = 30;
    let programs = Programs::new();
    let Some(wrong) = programs.build("tests/run/waits.c", &["-DWAIT=if"]) else {
        return;
    };
    let failing = ending_with(1, SEEDS, &[&wrong]);
    assert!(failing.len() as u32 > SEEDS / 3, "{failing:?}");
    let programs = Programs::new();
    let right = programs.build("tests/run/waits.c", &["-DWAIT=while"]);
    let right = right.unwrap();
    assert_eq!(ending_with(0, SEEDS, &[&right]).len() as u32, SEEDS);
}

#[test]
fn a_seed_is_one_run_and_an_hour_takes_no_time() {
    let programs = Programs::new();
    let Some(program) = programs.build("tests/run/waits.c", &["-DWAIT=while"]) else {
        return;
    };
    let first = by(7, &[&program]);
    assert_eq!(out(&first), "10 items in 3600 s\n");
    assert!(
        errors(&first).starts_with("pirn: seed 7: ") && errors(&first).contains(" points, 3600."),
        "{first:?}"
    );
    for _ in 0..10 {
        assert_eq!(by(7, &[&program]), first);
    }
    assert_ne!(errors(&by(8, &[&program])), errors(&first));
    let pauses = run(&["--seed", "7", "--pauses", "1:30s", &program]);
    assert_eq!(pauses.status.code(), Some(0));
    assert_ne!(errors(&pauses), errors(&first));
}

#[test]
fn a_deadlock_ends_the_program_with_a_report() {
    let programs = Programs::new();
    let Some(program) = programs.build("tests/run/locks.c", &[]) else {
        return;
    };
    let output = by(4, &[&program]);
    let text = errors(&output);
    assert!(
        text.starts_with("pirn: a deadlock, all threads wait: seed 4: "),
        "{text}"
    );
    assert!(
        text.contains("wait-cycle: 2 threads wait for each other"),
        "{text}"
    );
    assert!(
        text.contains("(one) held by #") && text.contains("(other) held by #"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(123));
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let programs = Programs::new();
    let Some(program) = programs.threads(&["-static"]) else {
        return;
    };
    let fixed = by(1, &[&program]);
    assert_eq!((out(&fixed), fixed.status.code()), ("", Some(125)));
    let unclear = run(&["--seed", "1", "--pauses", "often", "true"]);
    let expected = "pirn: no simulation: PIRN_PAUSES=often: one in how many points, and how long: \
                    200:30s\n";
    assert_eq!(errors(&unclear), expected);
    assert_eq!(unclear.status.code(), Some(125));
}

#[test]
fn children_run_natively_and_what_a_program_becomes_is_simulated() {
    let programs = Programs::new();
    let Some(program) = programs.threads(&[]) else {
        return;
    };
    let script = "x=$(echo child); sleep 0.01; echo $x; \"$0\"; exec \"$0\"";
    let output = by(3, &["sh", "-c", script, &program]);
    let words = Vec::from_iter(out(&output).split([',', '\n']).map(|it| it.get(..5)));
    assert_eq!(words[0], Some("child"), "{output:?}");
    assert!(
        out(&output).contains("platform") && out(&output).contains("virtual"),
        "{output:?}"
    );
    assert_eq!(
        errors(&output).matches("pirn: seed 3: ").count(),
        1,
        "{output:?}"
    );
}

/// `timeout` waits for a signal, which comes from outside while all its threads wait.
#[test]
fn the_end_of_a_child_is_a_signal() {
    let script = "sleep 0.01; echo slept";
    let output = by(1, &["timeout", "100", "sh", "-c", script]);
    assert_eq!((out(&output), output.status.code()), ("slept\n", Some(0)));
}

/// With GCC's calls at atomic operations and accesses, which the library defines.
#[test]
fn instrumented_code_has_points() {
    let programs = Programs::new();
    let library = crate::library().parent().unwrap().to_str().unwrap();
    let source = own("counts.c");
    let object = programs.0.join("counts.o");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-fsanitize=thread", "-c", &source, "-o"])
        .arg(&object);
    if !compiler.status().is_ok_and(|status| status.success()) {
        return println!("skipped: no C compiler `cc` with -fsanitize=thread");
    }
    let program = programs.0.join("instrumented");
    let mut linker = Command::new("cc");
    linker.arg("-o").arg(&program).arg(&object);
    assert!(
        linker
            .args(["-pthread", "-L", library, "-lpirn"])
            .status()
            .unwrap()
            .success()
    );
    let plain = programs.build("tests/run/counts.c", &["-O1"]).unwrap();
    let outputs =
        |program: &str| Vec::from_iter((0..20).map(|seed| out(&by(seed, &[program])).to_owned()));
    assert!(outputs(&plain).iter().all(|text| text == "6 2\n"));
    let found = outputs(program.to_str().unwrap());
    assert!(found.iter().all(|text| text.ends_with(" 2\n")), "{found:?}");
    assert!(found.iter().any(|text| text != "6 2\n"), "{found:?}");
}

#[test]
fn python_sleeps_a_day_at_once_and_draws_the_same() {
    if !has_python() {
        return;
    }
    let script = "import os, random, threading, time, uuid\n\
        threads = [threading.Thread(target=time.sleep, args=(86400,)) for _ in range(10)]\n\
        for it in threads: it.start()\n\
        for it in threads: it.join()\n\
        print(random.random(), uuid.uuid4(), hash('x'), id(threads), id(object()), time.time())\n\
        print(os.urandom(4), open('/dev/urandom', 'rb', 0).read(4))";
    let first = by(3, &["python3", "-c", script]);
    assert!(out(&first).contains(" 18935424"), "{first:?}"); // A day after the beginning of 2030.
    for _ in 0..5 {
        assert_eq!(by(3, &["python3", "-c", script]), first);
    }
    assert_ne!(out(&by(4, &["python3", "-c", script])), out(&first));
}

#[test]
fn python_with_points_at_its_lines_fails() {
    if !has_python() {
        return;
    }
    let programs = Programs::new();
    let write = |name: &str, text: &str| {
        let path = programs.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let bank = "import threading\n\
        balance = 100\n\
        def withdraw():\n\
        \x20   global balance\n\
        \x20   if balance >= 100:\n\
        \x20       balance -= 100\n\
        threads = [threading.Thread(target=withdraw) for _ in range(2)]\n\
        for it in threads: it.start()\n\
        for it in threads: it.join()\n\
        assert balance == 0";
    let waits = "import threading\n\
        ready, changed = False, threading.Condition()\n\
        def wait():\n\
        \x20   if not ready:\n\
        \x20       with changed: changed.wait()\n\
        thread = threading.Thread(target=wait)\n\
        thread.start()\n\
        ready = True\n\
        with changed: changed.notify()\n\
        thread.join()";
    let lines = own("lines.py");
    for (name, text, status) in [("bank.py", bank, 1), ("waits.py", waits, 123)] {
        let program = ["python3", &lines, &write(name, text)];
        let failing = (0..60).find(|&seed| by(seed, &program).status.code() == Some(status));
        let seed = failing.unwrap_or_else(|| panic!("no seed of {name} ends with {status}"));
        assert_eq!(by(seed, &program).status.code(), Some(status));
    }
}

#[test]
#[ignore = "needs a JDK: `ci/nightly` runs it"]
fn java_sleeps_an_hour_at_once_and_is_the_same_each_time() {
    let programs = Programs::new();
    let folder = programs.0.to_str().unwrap();
    let mut compiler = Command::new("javac");
    let compiled = compiler.args(["-d", folder, &own("Sleeps.java")]).status();
    assert!(compiled.unwrap().success());
    let program = ["java", "-Xint", "-XX:+UseSerialGC", "-cp", folder, "Sleeps"];
    let first = by(2, &program);
    assert!(out(&first).contains("\n3600 s\n"), "{first:?}");
    for _ in 0..15 {
        assert_eq!(by(2, &program), first);
    }
    assert_ne!(out(&by(3, &program)), out(&first));
}

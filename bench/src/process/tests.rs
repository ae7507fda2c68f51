use super::*;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!(r#"echo '{{"peer":"p","version":"1"}}'; {script}"#),
    ]);
    command
}

fn start(script: &str) -> Process {
    Process::start(&mut shell(script), Duration::from_secs(20)).unwrap()
}

#[test]
fn lines_and_other_output_are_told_apart() {
    let mut process = start(r#"read word; echo 1; echo 0; echo '{"end":true}'"#);
    assert_eq!(process.version, "1");
    process.tell("round").unwrap();
    let mut output = Output::default();
    assert_eq!(
        process.next_with_output(&mut output).unwrap(),
        Line::End { end: true }
    );
    assert_eq!(output, Output::of_numbers_below(2));
    process.end().unwrap();
}

#[test]
fn a_crash_is_told_with_its_last_words() {
    let mut process = start("read word; echo no room >&2; kill -SEGV $$");
    process.tell("round").unwrap();
    let error = process.next().unwrap_err().to_string();
    assert!(
        error.contains("SIGSEGV") && error.contains("no room"),
        "{error}"
    );
}

#[test]
fn an_error_it_tells_itself_is_passed_on_even_if_it_does_not_listen() {
    let mut process = start(r#"exec <&-; echo '{"error":"cannot bind"}'; exit 1"#);
    let error = loop {
        if let Err(error) = process.tell("round") {
            break error.to_string();
        }
        if let Ok(Line::Error { error }) = process.next() {
            break error;
        }
    };
    assert_eq!(error, "cannot bind");
}

#[test]
fn why_it_ended_is_told_to_those_who_ask_for_its_memory() {
    let mut process = start(r#"echo '{"error":"no threads"}'; exit 1"#);
    // No call has waited for it yet, so it stays a zombie.
    let status = format!("/proc/{}/status", process.id());
    while !std::fs::read_to_string(&status)
        .unwrap()
        .contains("(zombie)")
    {
        std::thread::yield_now();
    }
    let error = process.footprint().unwrap_err();
    assert_eq!(error.to_string(), "no threads");
    assert!(error.is::<Refusal>());
}

#[test]
fn what_takes_too_long_is_given_up() {
    let mut process =
        Process::start(&mut shell("exec sleep 60"), Duration::from_millis(300)).unwrap();
    process.tell("round").unwrap();
    let error = process.next().unwrap_err().to_string();
    assert!(error.contains("not done after 300ms"), "{error}");
}

#[test]
fn what_does_not_begin_with_the_greeting_is_refused() {
    let mut command = Command::new("sh");
    command.args(["-c", r#"echo '{"end":true}'"#]);
    assert!(Process::start(&mut command, Duration::from_secs(20)).is_err());
}

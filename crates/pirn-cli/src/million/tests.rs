use super::*;

#[test]
fn each_step_has_its_line() {
    let mut out = Vec::new();
    assert!(run(50, &mut out).unwrap());
    let said = String::from_utf8(out).unwrap();
    let steps: Vec<_> = said
        .lines()
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    let expected = [
        "50", "step", "spawn", "park", "wake", "join", // then the memory
        "while", "stacks", "records", "page",
    ];
    assert_eq!(steps, expected);
}

#[test]
fn a_rollcall_waits_for_the_last_one() {
    let roll = Arc::new(Rollcall::new(thread::current()));
    let others: Vec<_> = (0..100)
        .map(|_| {
            let roll = Arc::clone(&roll);
            std::thread::spawn(move || roll.arrive())
        })
        .collect();
    roll.wait_for(100);
    assert_eq!(roll.arrived.load(Ordering::SeqCst), 100);
    for other in others {
        other.join().unwrap();
    }
}

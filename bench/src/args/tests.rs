use super::*;
use clap::CommandFactory;

#[test]
fn the_command_line_is_consistent() {
    Args::command().debug_assert();
}

#[test]
fn values_are_understood_or_refused() {
    let args = Args::try_parse_from([
        "bench",
        "spawn",
        "--peers",
        "go,may",
        "--set",
        "burst=7",
        "--timeout",
        "0.5",
    ]);
    let args = args.unwrap();
    assert_eq!(args.peers, ["go", "may"]);
    assert_eq!(args.set, [("burst".into(), 7)]);
    assert_eq!(args.timeout, Duration::from_millis(500));
    assert_eq!(args.loss, 10.0);
    let args = Args::try_parse_from(["bench", "--against", "f", "--loss", "2.5%"]);
    assert_eq!(args.unwrap().loss, 2.5);
    assert!(Args::try_parse_from(["bench", "--against", "f", "--loss=-1"]).is_err());
    for bad in [
        ["--set", "burst"],
        ["--set", "burst=x"],
        ["--timeout", "0"],
        ["--rounds", "0"],
        ["--memory", "0"],
        ["--loss", "5"], // than what?
    ] {
        assert!(
            Args::try_parse_from(["bench", bad[0], bad[1]]).is_err(),
            "{bad:?}"
        );
    }
}

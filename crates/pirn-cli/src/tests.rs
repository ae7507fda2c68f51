use super::*;
use clap::CommandFactory;
use clap::error::ErrorKind;

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

/// Returns the load of the plain demo that a command line requests.
fn load(line: &[&str]) -> (u32, u64, u32) {
    let line = ["pirn"].iter().chain(line);
    match Cli::try_parse_from(line).unwrap().command {
        Command::Demo { load, other: None } => (load.users, load.delay_ms, load.requests),
        _ => panic!("not the plain demo"),
    }
}

#[test]
fn no_command_is_a_call_for_help() {
    let error = Cli::try_parse_from(["pirn"]).err().unwrap();
    let help = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    assert_eq!(error.kind(), help);
}

#[test]
fn the_demo_has_a_load() {
    assert_eq!(load(&["demo"]), (20_000, 1_000, 3));
    let line = ["demo", "--users", "2000", "--requests", "5"];
    assert_eq!(load(&line), (2_000, 1_000, 5));
}

#[test]
fn options_of_the_demo_are_not_for_other_commands() {
    let line = ["pirn", "--users", "5", "serve", "127.0.0.1:0"];
    assert!(Cli::try_parse_from(line).is_err());
}

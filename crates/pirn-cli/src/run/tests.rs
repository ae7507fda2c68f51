use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    run: RunArgs,
}

fn parse(words: &[&str]) -> Result<RunArgs, clap::Error> {
    let words = ["run"].iter().chain(words);
    Line::try_parse_from(words).map(|line| line.run)
}

#[test]
fn all_after_the_program_is_the_programs() {
    for words in [
        &["--verbose", "prog", "--strict", "-x", "--", "y"][..],
        &["--verbose", "--", "prog", "--strict", "-x", "--", "y"],
    ] {
        let args = parse(words).unwrap();
        assert!(args.verbose && !args.strict);
        assert_eq!(args.command, ["prog", "--strict", "-x", "--", "y"]);
    }
    assert!(parse(&["--unknown", "prog"]).is_err());
    assert!(parse(&[]).is_err());
}

#[test]
fn settings_become_variables() {
    let args = parse(&[
        "--verbose",
        "--parallelism=3",
        "--stack-size=256K",
        "--platform=liba.so",
        "--platform=b*",
        "--no-children",
        "prog",
    ]);
    let mut command = Command::new("prog");
    prepare(&mut command, &args.unwrap(), Path::new("/lib/libpirn.so"));
    let set = |name: &str, value: &str| {
        let mut all = command.get_envs();
        assert!(
            all.any(|pair| pair == (OsStr::new(name), Some(OsStr::new(value)))),
            "{name}"
        );
    };
    set("PIRN_LOG", "1");
    set("PIRN_PARALLELISM", "3");
    set("PIRN_STACK_SIZE", "262144");
    set("PIRN_PLATFORM", "liba.so:b*");
    set("PIRN_CHILDREN", "0");
}

#[test]
fn wrong_settings_are_refused() {
    for word in [
        "--parallelism=0",
        "--parallelism=1025",
        "--stack-size=1K",
        "--stack-size=2G",
        "--stack-size=x",
        "--stack-size=",
        "--platform=",
        "--platform=a:b",
        "--platform=/usr/lib/liba.so",
    ] {
        assert!(parse(&[word, "prog"]).is_err(), "{word}");
    }
}

#[test]
fn what_is_preloaded_already_stays() {
    let own = Path::new("/x/libpirn.so");
    for (list, expected) in [
        (None, "/x/libpirn.so"),
        (Some(""), "/x/libpirn.so"),
        (Some("a.so"), "/x/libpirn.so:a.so"),
        (Some("a.so b.so"), "/x/libpirn.so:a.so:b.so"),
        (Some("a.so:/x/libpirn.so"), "/x/libpirn.so:a.so"),
    ] {
        assert_eq!(preload(own, list.map(OsStr::new)), expected);
    }
}

//! Benchmark peers `native` and `pirn-run`: programs that do not speak the protocol themselves,
//! such as `true`, started and measured as whole processes. This program itself has no virtual
//! threads.
//!
//! `peer-run native|PIRN PYTHON WORKLOAD [key=value]...`, where `PIRN` is the path of `pirn`.

mod children;
mod redis;

use anyhow::{Result, ensure};
use peer_protocol::{Params, Round, Workload, sum_below};
use std::process::{Command, ExitCode};

use children::Cost;

/// How programs are started.
struct Starter {
    /// What comes before a program and its arguments.
    prefix: Vec<String>,
    python: String,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (how, python) = (arguments.next(), arguments.next());
    let starter = Starter::new(how.as_deref(), python.unwrap_or_default());
    let name = if starter.prefix.is_empty() {
        "native"
    } else {
        "pirn-run"
    };
    peer_protocol::run_with(name, &starter.version(), arguments, |name, params| {
        starter.find(name, params)
    })
}

impl Starter {
    fn new(how: Option<&str>, python: String) -> Starter {
        let prefix = match how {
            None | Some("native") => Vec::new(),
            Some(pirn) => [pirn, "run", "--strict", "--"].map(String::from).into(),
        };
        Starter { prefix, python }
    }

    /// A command, natively or not.
    fn command(&self, words: &[&str]) -> Command {
        let prefix = self.prefix.iter().map(String::as_str);
        let mut words = prefix.chain(words.iter().copied());
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command
    }

    /// What threads are: the C library's, or Pirn's.
    fn version(&self) -> String {
        let first_line = |words: &[&str]| {
            let output = Command::new(words[0]).args(&words[1..]).output().ok();
            let text = String::from_utf8_lossy(&output?.stdout).into_owned();
            text.lines().next().map(str::to_owned)
        };
        let version = match self.prefix.first() {
            Some(pirn) => first_line(&[pirn, "--version"]),
            None => first_line(&["getconf", "GNU_LIBC_VERSION"]),
        };
        version.unwrap_or_else(|| "of unknown version".into())
    }

    fn find(self, name: &str, params: &Params) -> Option<Result<Workload>> {
        match name {
            "run-true" => Some(self.starts(params)),
            "run-children" => Some(self.children(params)),
            "run-compute" => Some(self.compute(params)),
            "run-redis" => Some(Err(redis::become_server(&self))),
            _ => None,
        }
    }

    /// Starts `true` again and again.
    fn starts(self, params: &Params) -> Result<Workload> {
        let times = params.get("times")?;
        Ok(Box::new(move |round| {
            let cost = children::cost(|| {
                for _ in 0..times {
                    children::output(&mut self.command(&["/bin/true"]))?;
                }
                Ok(times)
            })?;
            report(round, "start", "ms/start", 1e3 / times as f64, &cost, times);
            Ok(())
        }))
    }

    /// A shell that starts `true` again and again: what it inherits is all that there is of Pirn.
    fn children(self, params: &Params) -> Result<Workload> {
        let times = params.get("times")?;
        let script = format!(
            "i=0; while [ $i -lt {times} ]; do /bin/true || exit; i=$((i + 1)); done; echo $i"
        );
        Ok(Box::new(move |round| {
            let cost =
                children::cost(|| children::number(&mut self.command(&["sh", "-c", &script])))?;
            report(round, "start", "ms/start", 1e3 / times as f64, &cost, times);
            Ok(())
        }))
    }

    /// Python that computes on its only thread.
    fn compute(self, params: &Params) -> Result<Workload> {
        let numbers = params.get("numbers")?;
        ensure!(!self.python.is_empty(), "there is no Python");
        let script = format!("print(sum(i for i in range({numbers})))");
        Ok(Box::new(move |round| {
            let words = [&*self.python, "-c", &script];
            let cost = children::cost(|| children::number(&mut self.command(&words)))?;
            report(round, "wall", "s", 1.0, &cost, sum_below(numbers));
            Ok(())
        }))
    }
}

/// Reports the time that passed, and the processors' time.
fn report(round: &mut Round, metric: &str, unit: &str, scale: f64, cost: &Cost, due: u64) {
    let of = |seconds: f64| seconds * scale;
    round.metric(metric, of(cost.wall), unit, cost.done, due);
    let processor = format!("{metric}, processor");
    round.metric(&processor, of(cost.processor), unit, cost.done, due);
}

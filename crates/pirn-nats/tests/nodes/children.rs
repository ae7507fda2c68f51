//! Nodes that are processes of their own: this program again, with a role.

use crate::common::until;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

const ROLE: &str = "NATS_TEST_ROLE";
const URL: &str = "NATS_TEST_URL";

/// A process. It is killed when this is dropped.
pub struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts this program again. It does what the role says.
    pub fn start(role: &str, url: &str) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "children::a_process_with_a_role",
                "--nocapture",
                "--quiet",
            ])
            .env(ROLE, role)
            .env(URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Process { child, output }
    }

    /// Waits for a line, and returns what follows the marker in it.
    pub fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).unwrap();
            assert_ne!(count, 0, "the process has ended");
            if let Some((_, said)) = line.split_once("says: ") {
                return said.trim().to_string();
            }
        }
    }

    pub fn signal(&self, signal: libc::c_int) {
        let pid = self.child.id().try_into().unwrap();
        // SAFETY: it only sends a signal, and the child is not reaped before `drop`.
        unsafe { libc::kill(pid, signal) };
    }

    /// Has the process stand still, and waits until all its threads do.
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.child.id());
        let stands = |task: fs::DirEntry| {
            let status = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            status.is_empty() || status.contains(") T ")
        };
        until(|| fs::read_dir(&tasks).unwrap().flatten().all(stands));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Tells the test.
pub fn say(what: impl std::fmt::Display) {
    println!("says: {what}");
}

/// In a process with a role, plays it. Otherwise does nothing.
#[test]
fn a_process_with_a_role() {
    let (Ok(role), Ok(url)) = (std::env::var(ROLE), std::env::var(URL)) else {
        return;
    };
    // Ends with its parent, however that ends.
    std::thread::spawn(|| {
        drop(std::io::stdin().read(&mut [0]));
        std::process::exit(0);
    });
    match &*role {
        "account" => account(&url),
        "log" => log(&url),
        "worker" => worker(&url),
        "asker" => asker(&url),
        other => panic!("{other} is no role"),
    }
}

use crate::bank::{Account, Deposit, Sleep, Wait};
use crate::server::LEASE;
use pirn_nats::{Call, DurableOptions, Node};
use std::time::Duration;

fn node(url: &str) -> Node {
    let builder = Node::builder().name("child").lease(LEASE);
    builder.connect(url, "test").unwrap()
}

/// Has the name `account`, until it loses it.
fn account(url: &str) {
    let node = node(url);
    let account = pirn_actor::spawn(Account::with(100));
    let serving = node
        .register("account", &account)
        .unwrap()
        .accepts::<Deposit>()
        .accepts::<Sleep>()
        .accepts::<Wait>()
        .serve();
    say(format!("ready {}", serving.fence().unwrap()));
    let exit = account.join();
    say(exit);
    drop(std::io::stdin().read(&mut [0]));
}

/// Has the name `account`, until it loses it. Tells each deposit.
fn log(url: &str) {
    let node = node(url);
    let log = pirn_actor::consumer(|Deposit(amount)| say(format!("got {amount}")));
    node.register("account", &log).unwrap().accepts::<Deposit>();
    say("ready");
    say(log.join());
    drop(std::io::stdin().read(&mut [0]));
}

/// Works on the queue `work`, and never ends with a message.
fn worker(url: &str) {
    let node = node(url);
    let options = DurableOptions::new().patience(Duration::from_secs(1));
    let work = node.durable_with::<Deposit>("work", options).unwrap();
    let worker = pirn_actor::function(|Deposit(amount)| {
        say(format!("got {amount}"));
        pirn::thread::sleep(Duration::from_secs(3600));
    });
    let _workers = work.serve(&worker).unwrap();
    say("ready");
    worker.join();
}

/// Asks the actor `asked` again and again.
fn asker(url: &str) {
    let node = node(url);
    let asked = node.find::<Call<Deposit, i64>>("asked");
    say("ready");
    for n in 0.. {
        drop(asked.ask_timeout(Deposit(n), Duration::from_secs(1)));
    }
}

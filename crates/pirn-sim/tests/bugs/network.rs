//! Programs of several machines, and time.

use pirn_sim::chance;
use pirn_sim::net::{self, node};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Error, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// Who may write, and until when.
struct Lease {
    token: u64,
    until: Instant,
}

/// Broken: the storage takes what a worker writes whose lease is over, while another has it.
pub fn lease(mended: bool) {
    let lease = Arc::new(Mutex::new(Lease {
        token: 0,
        until: Instant::now(),
    }));
    let written = Arc::new(Mutex::new(Vec::<u64>::new()));
    let threads = [(); 3].map(|()| {
        let (lease, written) = (Arc::clone(&lease), Arc::clone(&written));
        thread::spawn(move || {
            for _ in 0..10 {
                let own = {
                    let mut lease = lease.lock().unwrap();
                    let now = Instant::now();
                    (lease.until <= now).then(|| {
                        lease.token += 1;
                        lease.until = now + 10 * SECOND;
                        (lease.token, lease.until)
                    })
                };
                if let Some((token, until)) = own
                    && Instant::now() < until
                {
                    thread::sleep(SECOND); // The work.
                    let mut written = written.lock().unwrap();
                    let newest = written.last().is_none_or(|last| *last <= token);
                    if newest || !mended {
                        written.push(token);
                    }
                }
                thread::sleep(4 * SECOND);
            }
        })
    });
    threads.into_iter().for_each(|it| it.join().unwrap());
    let written = written.lock().unwrap();
    assert!(written.is_sorted(), "written: {written:?}");
}

/// Sends a line to a server, and returns its answer.
fn ask(server: &str, question: &str) -> Result<String> {
    let address = server.to_socket_addrs()?.next();
    let address: SocketAddr = address.ok_or_else(|| Error::other("no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, SECOND / 2)?;
    stream.set_read_timeout(Some(SECOND / 2))?;
    writeln!(stream, "{question}")?;
    let mut answer = String::new();
    match BufReader::new(stream).read_line(&mut answer)? {
        0 => Err(Error::other("no answer")),
        _ => Ok(answer.trim().to_owned()),
    }
}

/// Answers each client's line.
fn serve(port: u16, answer: impl Fn(&str) -> String) {
    for stream in TcpListener::bind(("0.0.0.0", port)).unwrap().incoming() {
        let stream = stream.unwrap();
        let mut question = String::new();
        if let Ok(1..) = BufReader::new(&stream).read_line(&mut question) {
            let _ = writeln!(&stream, "{}", answer(question.trim()));
        }
    }
}

/// Broken: a request whose answer did not come is sent again, and done again.
pub fn retry(mended: bool) {
    net::loss(0.1);
    let account = Arc::new(Mutex::new((0, BTreeSet::new())));
    let servers = Arc::clone(&account);
    node("bank", move || {
        serve(1, |request| {
            let (sum, seen) = &mut *servers.lock().unwrap();
            if seen.insert(request.to_owned()) || !mended {
                *sum += 1;
            }
            sum.to_string()
        });
    });
    let deposits = 5;
    for n in 0..deposits {
        while ask("bank:1", &format!("deposit {n}")).is_err() {}
    }
    assert_eq!(account.lock().unwrap().0, deposits);
}

/// Broken: a candidate counts the votes of those that it reaches, not of all.
pub fn election(mended: bool) {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let leaders = Arc::new(Mutex::new(Vec::<(u32, &str)>::new()));
    let nodes = NAMES.map(|own| {
        let leaders = Arc::clone(&leaders);
        node(own, move || {
            let votes = Arc::new(Mutex::new(BTreeMap::<u32, String>::new()));
            let vote = |votes: &Mutex<BTreeMap<u32, String>>, term, candidate: &str| {
                let mut votes = votes.lock().unwrap();
                votes.entry(term).or_insert_with(|| candidate.to_owned()) == candidate
            };
            let others = Arc::clone(&votes);
            thread::spawn(move || {
                serve(1, |request| {
                    let (term, candidate) = request.split_once(' ').unwrap();
                    vote(&others, term.parse().unwrap(), candidate).to_string()
                });
            });
            for term in 1..=3 {
                thread::sleep(SECOND);
                if !vote(&votes, term, own) {
                    continue; // It has voted for another.
                }
                let question = format!("{term} {own}");
                let others = NAMES.iter().filter(|it| **it != own);
                let answers: Vec<_> = others
                    .filter_map(|it| ask(&format!("{it}:1"), &question).ok())
                    .collect();
                let yes = 1 + answers.iter().filter(|it| *it == "true").count();
                let of = if mended {
                    NAMES.len()
                } else {
                    1 + answers.len()
                };
                if 2 * yes > of {
                    leaders.lock().unwrap().push((term, own));
                }
            }
        })
    });
    for _ in 0..3 {
        let pair = [(0, 1), (0, 2), (1, 2)];
        let cut: Vec<_> = pair.into_iter().filter(|_| chance(0.4)).collect();
        cut.iter()
            .for_each(|it| net::partition(&nodes[it.0], &nodes[it.1]));
        thread::sleep(2 * SECOND);
        cut.iter()
            .for_each(|it| net::heal(&nodes[it.0], &nodes[it.1]));
    }
    thread::sleep(60 * SECOND);
    let leaders = leaders.lock().unwrap();
    let terms: BTreeSet<_> = leaders.iter().map(|it| it.0).collect();
    assert_eq!(terms.len(), leaders.len(), "leaders: {leaders:?}");
}

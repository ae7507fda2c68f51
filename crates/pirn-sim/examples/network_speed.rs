//! How many runs per second there are of a network: a server with a thread per connection, nine
//! clients that ask every few seconds, 20 threads in all, and a virtual minute.

use pirn_sim::{Outcome, Sim, net};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

fn serve() {
    let listener = TcpListener::bind("0.0.0.0:7").unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        thread::spawn(move || {
            let mut question = [0; 64];
            while stream.read_exact(&mut question).is_ok() {
                stream.write_all(&question).unwrap();
            }
        });
    }
}

fn ask() {
    let mut stream = loop {
        match TcpStream::connect("server:7") {
            Ok(stream) => break stream,
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    };
    for round in 0..12 {
        thread::sleep(Duration::from_secs(5));
        stream.write_all(&[round; 64]).unwrap();
        let mut answer = [0; 64];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [round; 64]);
    }
}

fn main() {
    let runs = std::env::args()
        .nth(1)
        .map_or(500, |it| it.parse().unwrap());
    let begin = Instant::now();
    let mut points = 0;
    for seed in 0..runs {
        let report = Sim::new().run(seed, || {
            net::node("server", serve);
            let clients: Vec<_> = (0..9).map(|_| thread::spawn(ask)).collect();
            clients.into_iter().for_each(|it| it.join().unwrap());
        });
        assert_eq!(report.outcome, Outcome::Passed, "{report:?}");
        assert!(report.time >= Duration::from_secs(60));
        points += report.points;
    }
    let taken = begin.elapsed().as_secs_f64();
    println!(
        "{runs} runs, {:.0} per second, {} points each",
        runs as f64 / taken,
        points / runs
    );
}

//! A server for devices that seldom say something: an actor for each, a million if not told
//! otherwise. An actor without work has no thread, and takes some hundred bytes.
//!
//! `cargo run --release -p pirn-actor --example devices [DEVICES]`
//!
//! Gateways connect to it by TCP. Each line is a device's number and a temperature; the answer is
//! how many the device has sent, and their mean. A device that is too hot is told to all at once.

use pirn::thread;
use pirn_actor::{self as actor, Address, Context, Handler, Ref};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// The number of gateways that this program has connect, and of lines that each sends.
const GATEWAYS: usize = 8;
const LINES: usize = 1000;

const TOO_HOT: f64 = 99.0;

/// A device, as the server sees it.
struct Device {
    number: usize,
    readings: u64,
    sum: f64,
    alarms: Address<(usize, f64)>,
}

struct Reading(f64);

impl Handler<Reading> for Device {
    /// The number of readings, and their mean.
    type Reply = (u64, f64);

    fn handle(&mut self, Reading(celsius): Reading, _: &Context<Self>) -> (u64, f64) {
        self.readings += 1;
        self.sum += celsius;
        if celsius > TOO_HOT {
            // If the alarms do not keep up, this device waits, and no other does.
            let _ = self.alarms.send((self.number, celsius));
        }
        (self.readings, self.sum / self.readings as f64)
    }
}

/// Answers a gateway, on a virtual thread of its own, until it hangs up.
fn serve(gateway: &TcpStream, devices: &[Ref<Device>]) -> io::Result<()> {
    let mut answers = gateway;
    for line in BufReader::new(gateway).lines() {
        let answer = match answer(&line?, devices) {
            Some((readings, mean)) => format!("{readings} {mean:.1}\n"),
            None => "? DEVICE CELSIUS\n".to_string(),
        };
        answers.write_all(answer.as_bytes())?; // one packet
    }
    Ok(())
}

fn answer(line: &str, devices: &[Ref<Device>]) -> Option<(u64, f64)> {
    let (device, celsius) = line.split_once(' ')?;
    let device = devices.get(device.parse::<usize>().ok()?)?;
    device.ask(Reading(celsius.parse().ok()?)).ok()
}

/// Sends lines of devices all over the place, and returns the number of answers.
fn gateway(server: SocketAddr, first: usize, devices: usize) -> io::Result<usize> {
    let stream = TcpStream::connect(server)?;
    let mut answers = BufReader::new(&stream).lines();
    for n in 0..LINES {
        let device = (first + n * 7919) % devices;
        let line = format!("{device} {}\n", n % 100 + 1);
        (&stream).write_all(line.as_bytes())?;
        let answer = answers.next().ok_or(io::ErrorKind::UnexpectedEof)??;
        assert!(!answer.starts_with('?'), "{answer}");
    }
    Ok(LINES)
}

/// Returns the bytes that this process has in memory.
fn memory() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    resident.unwrap_or(0) * 4096
}

#[pirn::main]
fn main() -> io::Result<()> {
    let count = std::env::args()
        .nth(1)
        .map(|text| text.parse().expect("a number"));
    let count: usize = count.unwrap_or(1_000_000);
    let before = memory();
    let mut hottest = 0.0_f64;
    let alarms = actor::function(move |(device, celsius): (usize, f64)| {
        if celsius > hottest {
            println!("device {device} is at {celsius} degrees");
            hottest = celsius;
        }
    });
    let device = |number| Device {
        number,
        readings: 0,
        sum: 0.0,
        alarms: alarms.clone(),
    };
    let devices: Arc<[_]> = (0..count)
        .map(|number| actor::spawn(device(number)))
        .collect();
    let each = (memory() - before) / count.max(1);
    println!("{count} devices, {each} bytes each");

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let server = listener.local_addr()?;
    let served = Arc::clone(&devices);
    thread::spawn(move || {
        for gateway in listener.incoming().flatten() {
            let devices = Arc::clone(&served);
            thread::spawn(move || serve(&gateway, &devices));
        }
    });
    let gateways: Vec<_> = (0..GATEWAYS)
        .map(|n| thread::spawn(move || gateway(server, n * count / GATEWAYS, count)))
        .collect();
    let mut answers = 0;
    for gateway in gateways {
        answers += gateway.join().expect("it does not panic")?;
    }
    let readings = devices
        .iter()
        .map(|device| device.run(|device| device.readings));
    let readings = readings.sum::<Result<u64, _>>().map_err(io::Error::other)?;
    alarms.close();
    alarms.join(); // so that all are printed
    println!("{answers} answers, {readings} readings");
    Ok(())
}

//! `ureq` against `tiny_http`.

use pirn_sim::net::{self, node};
use std::thread;
use std::time::{Duration, Instant};
use tiny_http::{Response, Server};
use ureq::Agent;

const SECOND: Duration = Duration::from_secs(1);

fn serve() {
    let server = Server::http("0.0.0.0:80").unwrap();
    for request in server.incoming_requests() {
        if request.url() == "/slow" {
            thread::spawn(move || {
                thread::sleep(100 * SECOND);
                let _ = request.respond(Response::from_string("late"));
            });
        } else {
            let text = request.url().to_owned();
            let _ = request.respond(Response::from_string(text));
        }
    }
}

#[test]
fn three_clients_ask_and_a_request_times_out_after_30_seconds() {
    pirn_sim_unmodified::check("ureq, tiny_http", 100, || {
        net::latency(Duration::from_millis(1)..Duration::from_millis(20));
        node("server", serve);
        thread::sleep(SECOND);
        let clients: Vec<_> = (0..3)
            .map(|client| {
                thread::spawn(move || {
                    let agent: Agent = Agent::config_builder()
                        .timeout_global(Some(30 * SECOND))
                        .build()
                        .into();
                    for number in 0..5 {
                        let to = format!("http://server/{client}/{number}");
                        let mut answer = agent.get(&to).call().unwrap();
                        let text = answer.body_mut().read_to_string().unwrap();
                        assert_eq!(text, format!("/{client}/{number}"));
                    }
                    let begin = Instant::now();
                    let error = agent.get("http://server/slow").call().unwrap_err();
                    assert!(matches!(error, ureq::Error::Timeout(_)), "{error}");
                    assert_eq!(begin.elapsed().as_secs(), 30);
                })
            })
            .collect();
        clients.into_iter().for_each(|it| it.join().unwrap());
    });
}

use super::*;
use std::net::TcpListener;

const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";

#[test]
fn a_response_is_complete_at_its_last_byte() {
    for length in 0..GOOD.len() {
        assert!(!is_complete(&GOOD.as_bytes()[..length]).unwrap());
    }
    assert!(is_complete(GOOD.as_bytes()).unwrap());
}

#[test]
fn other_responses_are_failures_that_say_what_came() {
    let said = |response: &str| is_complete(response.as_bytes()).unwrap_err().to_string();
    assert!(said("SSH-2.0-x\r\n\r\n").starts_with("bad response:"));
    assert_eq!(
        said("HTTP/1.1 404 Not Found\r\n\r\n"),
        "bad response: status 404"
    );
    assert_eq!(
        said("HTTP/1.1 200 OK\r\n\r\n"),
        "bad response: no Content-Length"
    );
    assert_eq!(
        said("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nNo"),
        "bad response: the body is \"No\""
    );
    assert_eq!(
        said("HTTP/1.1 503 Service Unavailable\r\n\r\n"),
        "bad response: status 503"
    );
}

#[test]
fn a_refused_connection_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let failure = Client::connect(address, Duration::from_secs(10))
        .err()
        .expect("no one listens there");
    assert_eq!(
        failure.to_string(),
        "connect: Connection refused (os error 111)"
    );
}

#[test]
fn a_server_that_hangs_up_or_says_nothing_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();

    let mut client = Client::connect(address, Duration::from_secs(10)).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    let hang_up = std::thread::spawn(move || {
        let mut request = [0; 256];
        // The whole request, so that the close is no reset.
        assert!(peer.read(&mut request).unwrap() > 0);
    });
    assert!(matches!(client.get("/"), Err(Failure::Closed)));
    hang_up.join().unwrap();

    let mut client = Client::connect(address, Duration::from_millis(1)).unwrap();
    assert_eq!(client.get("/").unwrap_err().to_string(), "read: timed out");
}

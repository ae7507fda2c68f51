//! The examples, as programs: what their first lines promise.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An example that serves, ended with the test.
struct Example {
    process: Child,
    address: String,
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Held while an example is started. A process that another test starts meanwhile would have this
/// one's listener, too, until it runs its program: what connects in that moment is reset.
static STARTING: Mutex<()> = Mutex::new(());

/// Starts an example. Cargo builds them before it runs tests.
fn start(name: &str, more: &[&str]) -> Example {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    let program = folder.join("examples").join(name);
    let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    // Free a moment ago; the example says so if it is not any more.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let process = Command::new(program)
        .arg(&address)
        .args(more)
        .env("JWT_SECRET", "secret")
        .spawn()
        .unwrap();
    drop(starting);
    let mut example = Example { process, address };
    let end = Instant::now() + pirn_testing::patient(Duration::from_secs(60));
    while TcpStream::connect(&example.address).is_err() {
        assert!(
            example.process.try_wait().unwrap().is_none(),
            "{name} has ended"
        );
        assert!(Instant::now() < end, "{name} does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    example
}

impl Example {
    fn ask(&self, request: &str, body: &str) -> String {
        self.ask_with(request, "", body)
    }

    /// Asks with more header fields, each with its line end.
    fn ask_with(&self, request: &str, fields: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head = format!("{request} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}");
        write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

#[test]
fn a_bank_has_an_actor_for_each_request_and_account() {
    let bank = start("bank", &[]);
    let answered = |request, body, status: &str, end: &str| {
        let answer = bank.ask(request, body);
        let is_right = answer.starts_with(status) && answer.ends_with(end);
        assert!(is_right, "{request} {body}: {answer}");
    };
    answered("POST /accounts/7", "100", "HTTP/1.1 200", "\r\n\r\n100\n");
    answered("POST /accounts/7", "-30", "HTTP/1.1 200", "\r\n\r\n70\n");
    answered("POST /accounts/7", "-100", "HTTP/1.1 409", "");
    answered("GET /accounts/7", "", "HTTP/1.1 200", "\r\n\r\n70\n");
    answered("GET /accounts/8", "", "HTTP/1.1 200", "\r\n\r\n0\n");
    answered("POST /accounts/7", "much", "HTTP/1.1 400", "");
    answered("GET /accounts/mine", "", "HTTP/1.1 400", "");
}

/// Reads a line that must be this.
fn expect(from: &mut impl BufRead, expected: &str) {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    assert_eq!(line, format!("{expected}\n"));
}

#[test]
fn each_connection_of_a_chat_of_lines_has_an_actor() {
    let room = start("lines", &[]);
    let enter = |name: &str| {
        let mut stream = TcpStream::connect(&room.address).unwrap();
        writeln!(stream, "{name}").unwrap();
        let mut hears = BufReader::new(stream.try_clone().unwrap());
        expect(&mut hears, &format!("{name} has come"));
        (stream, hears)
    };
    let (mut alice, mut alice_hears) = enter("alice");
    let (bob, mut bob_hears) = enter("bob");
    expect(&mut alice_hears, "bob has come");
    alice.write_all(b"hello\n").unwrap();
    expect(&mut alice_hears, "alice: hello");
    expect(&mut bob_hears, "alice: hello");
    bob.shutdown(Shutdown::Write).unwrap();
    expect(&mut alice_hears, "bob has gone");
    let mut rest = String::new();
    bob_hears.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn notes_are_kept_in_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.db");
    let notes = start("notes", &[file.to_str().unwrap()]);
    let added = notes.ask("POST /notes", r#"{"text": "buy \"milk\""}"#);
    assert!(added.starts_with("HTTP/1.1 201"), "{added}");
    assert!(
        added.ends_with(r#"{"id":1,"text":"buy \"milk\""}"#),
        "{added}"
    );
    assert!(
        notes
            .ask("POST /notes", "nonsense")
            .starts_with("HTTP/1.1 400")
    );
    assert!(
        notes
            .ask("GET /notes/1", "")
            .ends_with(&added[added.find('{').unwrap()..])
    );
    assert!(notes.ask("GET /notes/x", "").starts_with("HTTP/1.1 400"));
    assert!(notes.ask("DELETE /notes/1", "").starts_with("HTTP/1.1 204"));
    assert!(notes.ask("DELETE /notes/1", "").starts_with("HTTP/1.1 404"));
    assert!(notes.ask("GET /notes", "").ends_with("\r\n\r\n[]"));
}

#[test]
fn things_to_do_are_made_listed_changed_and_removed() {
    let todos = start("todos", &[]);
    let answered = |request: &str, body: &str, status: &str, end: &str| {
        let answer = todos.ask(request, body);
        let is_right = answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.ends_with(end);
        assert!(is_right, "{request} {body}: {answer}");
    };
    let milk = r#"{"id":1,"text":"buy milk","completed":false}"#;
    let read = r#"{"id":2,"text":"read","completed":false}"#;
    answered("POST /todos", r#"{"text": "buy milk"}"#, "201", milk);
    answered("POST /todos", r#"{"text": "read"}"#, "201", read);
    answered(
        "GET /todos?offset=1&limit=5",
        "",
        "200",
        &format!("[{read}]"),
    );
    let done = milk.replace("false", "true");
    answered("PATCH /todos/1", r#"{"completed": true}"#, "200", &done);
    answered("PATCH /todos/3", "{}", "404", "");
    answered("DELETE /todos/2", "", "204", "");
    answered("GET /todos", "", "200", &format!("[{done}]"));
}

#[test]
fn a_token_opens_what_is_protected() {
    let server = start("jwt", &[]);
    let wrong = r#"{"client_id": "foo", "client_secret": "foo"}"#;
    assert!(
        server
            .ask("POST /authorize", wrong)
            .starts_with("HTTP/1.1 401")
    );
    let right = r#"{"client_id": "foo", "client_secret": "bar"}"#;
    let answer = server.ask("POST /authorize", right);
    let token = answer.split('"').nth(3).unwrap();
    let ask = |token: &str| {
        let field = format!("Authorization: Bearer {token}\r\n");
        server.ask_with("GET /protected", &field, "")
    };
    assert!(ask(token).ends_with("Welcome, ada@example.org of ACME!\n"));
    assert!(ask(&token[..token.len() - 1]).starts_with("HTTP/1.1 401"));
}

#[test]
fn events_come_while_the_connection_is_open() {
    let server = start("sse", &[]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream
        .write_all(b"GET /sse HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    let events = lines.filter(|line| line == "data: hi!");
    assert_eq!(events.take(2).count(), 2);
}

#[test]
fn files_are_served_beneath_a_path_to_members_and_as_the_fallback() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "a file").unwrap();
    std::fs::write(folder.path().join("index.html"), "the application").unwrap();
    let server = start("static_file_server", &[folder.path().to_str().unwrap()]);
    let end = |path: &str, fields: &str| {
        let answer = server.ask_with(&format!("GET {path}"), fields, "");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    assert_eq!(end("/assets/a.txt", ""), "a file");
    assert_eq!(end("/members/a.txt", ""), "");
    assert_eq!(
        end("/members/a.txt", "Authorization: Bearer secret\r\n"),
        "a file"
    );
    assert_eq!(end("/foo", ""), "Hi from /foo");
    assert_eq!(end("/a.txt", ""), "a file");
    assert_eq!(end("/some/page", ""), "the application");
}

#[test]
fn a_server_that_is_told_to_end_answers_what_it_has_begun() {
    let mut server = start("graceful_shutdown", &[]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream
        .write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    // Once this one has been answered, that one is in the server's hands.
    assert!(server.ask("GET /", "").starts_with("HTTP/1.1 404"));
    kill_process(Pid::from_child(&server.process), Signal::TERM).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.to_lowercase().contains("connection: close"),
        "{answer}"
    );
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn errors_are_answered_by_their_kinds() {
    let server = start("error_handling", &[]);
    let answered = |fields: &str, body: &str, status: &str, end: &str| {
        let answer = server.ask_with("POST /users", fields, body);
        let is_right = answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.ends_with(end);
        assert!(is_right, "{body}: {answer}");
    };
    answered("", r#"{"name": "Ada"}"#, "200", r#"{"id":1,"name":"Ada"}"#);
    answered("", r#"{"name": ""}"#, "422", "a name has letters");
    answered("", r#"{"name": "root"}"#, "409", "root is taken");
    let json = "Accept: application/json\r\n";
    answered(json, "{}", "400", r#""status":400,"title":"Bad Request"}"#);
    answered("", r#"{"name": "Bob"}"#, "200", r#"{"id":2,"name":"Bob"}"#);
    let away = r#"{"status":500,"title":"Internal Server Error"}"#;
    answered(json, r#"{"name": "Eve"}"#, "500", away);
    let nothing = server.ask("GET /nowhere", "");
    assert!(
        nothing.ends_with("there is nothing at /nowhere"),
        "{nothing}"
    );
}

#[test]
fn the_files_of_a_form_are_counted() {
    let server = start("multipart_form", &[]);
    assert!(server.ask("GET /", "").contains("multipart/form-data"));
    let part = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"";
    let body = format!("{part}\r\n\r\nhello\r\n--x--\r\n");
    let fields = "Content-Type: multipart/form-data; boundary=x\r\n";
    let answer = server.ask_with("POST /", fields, &body);
    assert!(answer.ends_with("file: a.txt, 5 bytes\n"), "{answer}");
}

#[test]
fn the_gateway_asks_three_services_within_its_time() {
    let gateway = start("gateway", &[]);
    let page = gateway.ask("GET /", "");
    assert!(
        page.ends_with("\r\n\r\nuser: Ada\norders: three\noffers: none\n"),
        "{page}"
    );
    let late = gateway.ask("GET /?slow=1", "");
    assert!(late.starts_with("HTTP/1.1 504"), "{late}");
}

/// Returns the next message.
fn hear(socket: &mut tungstenite::WebSocket<TcpStream>) -> String {
    socket.read().unwrap().into_text().unwrap().as_str().into()
}

#[test]
fn guests_hear_each_other() {
    let chat = start("chat", &[]);
    assert!(chat.ask("GET /", "").contains("new WebSocket"));
    let connect = || {
        let stream = TcpStream::connect(&chat.address).unwrap();
        let url = format!("ws://{}/chat", chat.address);
        tungstenite::client(url, stream).unwrap().0
    };
    let mut first = connect();
    assert_eq!(hear(&mut first), "guest 1 has come");
    let mut second = connect();
    assert_eq!(hear(&mut first), "guest 2 has come");
    assert_eq!(hear(&mut second), "guest 2 has come");
    second.send("hello".into()).unwrap();
    assert_eq!(hear(&mut first), "2: hello");
    second.close(None).unwrap();
    while second.read().is_ok() {}
    assert_eq!(hear(&mut first), "guest 2 has gone");
}

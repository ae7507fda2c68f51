use super::*;

/// Returns what another server is told of a request with these fields.
fn told(fields: &[(&str, &str)], peer: Option<&str>, is_trusted: bool) -> Vec<String> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::try_from(*name).unwrap();
        headers.append(name, HeaderValue::try_from(*value).unwrap());
    }
    let peer = peer.map(|peer| address(SocketAddr::new(peer.parse().unwrap(), 1234)));
    tell_of(&mut headers, peer, false, is_trusted);
    let lines = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
    let mut lines = Vec::from_iter(lines);
    lines.sort();
    lines
}

#[test]
fn the_client_is_named_in_all_fields() {
    assert_eq!(
        told(&[("host", "site.example:81")], Some("192.0.2.1"), false),
        [
            "forwarded: for=192.0.2.1;host=\"site.example:81\";proto=http",
            "host: site.example:81",
            "x-forwarded-for: 192.0.2.1",
            "x-forwarded-host: site.example:81",
            "x-forwarded-proto: http",
        ]
    );
    assert_eq!(
        told(&[], Some("2001:db8::1"), false),
        [
            "forwarded: for=\"[2001:db8::1]\";proto=http",
            "x-forwarded-for: 2001:db8::1",
            "x-forwarded-proto: http",
        ]
    );
    assert_eq!(
        told(&[], Some("::ffff:192.0.2.1"), false)[0],
        "forwarded: for=192.0.2.1;proto=http"
    );
    assert_eq!(
        told(&[], None, false),
        [
            "forwarded: for=unknown;proto=http",
            "x-forwarded-proto: http"
        ]
    );
}

#[test]
fn what_a_client_says_of_itself_is_not_passed_on() {
    let claims = [
        ("forwarded", "for=198.51.100.7;proto=https"),
        ("forwarded", "for=198.51.100.8"),
        ("x-forwarded-for", "198.51.100.7"),
        ("x-forwarded-host", "admin.example"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-port", "443"),
        ("x_forwarded_for", "198.51.100.7"),
        ("x-forwarded_host", "admin.example"),
        ("x-real-ip", "198.51.100.7"),
        ("accept", "*/*"),
    ];
    assert_eq!(
        told(&claims, Some("192.0.2.1"), false),
        [
            "accept: */*",
            "forwarded: for=192.0.2.1;proto=http",
            "x-forwarded-for: 192.0.2.1",
            "x-forwarded-proto: http",
        ]
    );
}

#[test]
fn what_a_trusted_proxy_says_is_passed_on_and_added_to() {
    let fields = [
        ("host", "inside"),
        ("x-forwarded-for", "198.51.100.7, 2001:db8::1"),
        ("x-forwarded-for", "who knows"),
        ("x-forwarded-host", "site.example"),
        ("x-forwarded-proto", "https"),
        // Nearly all proxies pass this one on as it comes from their clients.
        ("forwarded", "for=203.0.113.9"),
        ("x-real-ip", "203.0.113.9"),
    ];
    assert_eq!(
        told(&fields, Some("10.0.0.1"), true),
        [
            "forwarded: for=198.51.100.7;host=site.example;proto=https, for=\"[2001:db8::1]\", \
             for=unknown, for=10.0.0.1;host=inside;proto=http",
            "host: inside",
            "x-forwarded-for: 198.51.100.7, 2001:db8::1, who knows, 10.0.0.1",
            "x-forwarded-host: site.example",
            "x-forwarded-proto: https",
        ]
    );
}

#[test]
fn no_text_breaks_out_of_an_element() {
    let fields = [("host", "a\";for=203.0.113.9;x=\"\\")];
    let told = told(&fields, Some("192.0.2.1"), false);
    let expected = r#"forwarded: for=192.0.2.1;host="a\";for=203.0.113.9;x=\"\\";proto=http"#;
    assert_eq!(told[0], expected);
    assert_eq!(element("_a.b-1", None, None), "for=_a.b-1");
    assert_eq!(element("_", None, None), "for=unknown");
    assert_eq!(element("192.0.2.1:80", None, None), "for=\"192.0.2.1:80\"");
}

#[test]
fn only_those_that_are_named_are_trusted() {
    let peer = |text: &str| Some(text.parse::<IpAddr>().unwrap());
    for (trusted, one, other) in [
        ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
        ("10.0.0.0/8", "10.1.2.3", "11.0.0.1"),
        ("2001:db8::/32", "2001:db8:1::1", "2001:db9::1"),
    ] {
        let trusted = Trusted::parse(trusted).unwrap();
        assert!(trusted.includes(peer(one)), "{one}");
        assert!(!trusted.includes(peer(other)) && !trusted.includes(None));
    }
    let unix = Trusted::parse("unix").unwrap();
    assert!(unix.includes(None) && !unix.includes(peer("10.0.0.1")));
    for wrong in ["", "10.0.0", "10.0.0.0/33", "example.com", "*"] {
        assert!(Trusted::parse(wrong).is_err(), "{wrong}");
    }
}

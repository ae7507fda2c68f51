"""Where pirn-http sees a request that another server does not see, or another one, and why that is right.

REASONS[server][case]. Nothing else differs: the garden says so, also where a reason is needed no
more. The versions are Debian 12's, Go 1.26, Node 20, h11 0.16.
"""

STAR = "does not serve OPTIONS *, which RFC 9110, section 9.3.7, has"
METHODS = "knows a list of methods; any token is one (RFC 9110, section 9.1)"
CONNECT = "is no proxy for CONNECT; the probe answers it as any other method"
PERCENT = "decodes the path before it is routed, and refuses what cannot be; here handlers decode"
NORMAL = "forwards the path in a normal form; here the handler gets it as it is, and Files has its own check"
UTF_8 = "takes ASCII only; curl sends what its user types, and these bytes end nothing in a head"
EQUAL = "refuses equal lengths, which RFC 9110, section 8.6, allows to take for one"
OWS = "takes no tab there, which RFC 9110, section 5.6.3, has for optional white space"
LINES = "does not ignore empty lines before a request, as RFC 9112, section 2.2, says"
BWS = "takes no space in extensions, which RFC 9112, section 7.1.1, says to parse"
TRAILERS = "refuses fields of framing after a body; here they are dropped, and so have no effect"
BODY = "refuses a body with this method, which RFC 9110, section 9.3, allows"
NO_BODY = "forwards no body with GET; it has read it, and sees the next request"
LENGTH = "wants a length with each POST; without one there is no body (RFC 9112, section 6.3)"
UPGRADE = "takes a request for an upgrade for the last of its connection"
HOST = "refuses an empty Host, which RFC 9112, section 3.2, has"

REASONS = {
    "go": {
        "crlf-before": LINES,
        "target-percent": PERCENT,
        "options-star": "answers it itself, without a handler",
        "chunk-extension-space": BWS,
    },
    "node": {
        "method-unknown": METHODS,
        "method-lower-case": METHODS,
        "target-utf-8": UTF_8,
        "upgrade-unknown": UPGRADE,
        "upgrade-h2c": UPGRADE,
        "upgrade-websocket-bad-version": UPGRADE,
        "length-spaces-around": OWS,
        "length-equal-twice": EQUAL,
        "chunked-white-space": OWS,
        "chunk-extension-space": BWS,
        "trailer-framing": TRAILERS,
    },
    "h11": {
        "http-1.0-keep-alive": "keeps no connection in HTTP/1.0",
        "crlf-before": LINES,
        "crlf-between": LINES,
        "target-utf-8": UTF_8,
        "chunk-extension-space": BWS,
        "trailer-framing": TRAILERS,
    },
    "nginx": {
        "method-unknown": METHODS,
        "method-lower-case": METHODS,
        "target-percent": PERCENT,
        "options-star": STAR,
        "connect": CONNECT,
        "host-empty": HOST,
        "length-spaces-around": OWS,
        "length-equal-twice": EQUAL,
        "chunked-white-space": OWS,
    },
    "haproxy": {
        "target-utf-8": UTF_8,
        "upgrade-websocket-bad-version": "checks WebSockets' handshakes itself",
        "trailer-framing": TRAILERS,
    },
    "apache": {
        "target-percent": PERCENT,
        "target-two-slashes": NORMAL,
        "options-star": STAR,
        "connect": CONNECT,
        "host-empty": HOST,
        "length-equal-twice": EQUAL,
    },
    "lighttpd": {
        "crlf-before": LINES,
        "method-unknown": METHODS,
        "method-lower-case": METHODS,
        "target-percent": PERCENT,
        "target-two-slashes": NORMAL,
        "target-dots": NORMAL,
        "target-utf-8": NORMAL,
        "options-star": STAR,
        "connect": CONNECT,
        "host-empty": HOST,
        "absolute-no-path": "wants a path in an absolute target, which RFC 9110, section 4.2.3, does not",
        "upgrade-h2c": "goes over to HTTP/2",
        "head-with-body": BODY,
        "length-equal-twice": EQUAL,
        "length-with-get": BODY,
        "length-like-header": LENGTH,
        "length-underscore-name": LENGTH,
        "chunked-with-get": BODY,
        "te-underscore-name": LENGTH,
    },
    "varnish": {
        "fields-100": "takes 64 fields by default",
        "connection-host": "drops Host, as Connection says, and forwards nothing without one",
        "head-with-body": BODY,
        "length-equal-twice": EQUAL,
        "length-with-get": NO_BODY,
        "chunked-with-get": NO_BODY,
        "cl-hop-by-hop": "drops the length, as Connection says, so that its request is never whole",
        "chunk-extension": "takes no extensions, and ends its request without a body",
        "chunk-extension-space": "takes no extensions, and ends its request without a body",
        "trailer": "takes no trailers, and closes the connection",
        "trailer-framing": "takes no trailers, and closes the connection",
    },
    "pirn-proxy": {
        "options-star": STAR,
        "connect": CONNECT,
    },
}


def reason(server, case):
    """Returns why the server differs, if there is a reason."""
    return REASONS.get(server, {}).get(case)

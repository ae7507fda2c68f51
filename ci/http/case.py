"""What a case of the garden is, and what its bytes are made of."""

from dataclasses import dataclass, field

CL = b"Content-Length: "


@dataclass
class Case:
    """Bytes that a client sends, and what the probe makes of them."""

    name: str
    why: str
    sends: bytes
    # The requests that the probe sees whole: method, target, body.
    sees: list = field(default_factory=list)
    # The statuses that it answers with; by default 200 for each request, and 400 without one.
    status: list = None

    def __post_init__(self):
        if self.status is None:
            self.status = [200] * len(self.sees) or [400]


def head(method, target, fields=b"Host: a\r\n", version=b"1.1"):
    return method + b" " + target + b" HTTP/" + version + b"\r\n" + fields


def req(method, target, fields=b"", body=b"", version=b"1.1"):
    return head(method, target, b"Host: a\r\n" + fields, version) + b"\r\n" + body


def post(fields=b"", body=b"", te=None, version=b"1.1"):
    if te is not None:
        fields += b"Transfer-Encoding: " + te + b"\r\n"
    return req(b"POST", b"/p", fields, body, version)


def get(fields, target=b"/g", version=b"1.1"):
    return head(b"GET", target, fields, version) + b"\r\n"


def chunked(body):
    return b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"


NEXT = req(b"GET", b"/next")
SMUGGLED = req(b"GET", b"/smuggled")

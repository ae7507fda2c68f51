"""Writes what the fuzzers of pirn-http begin with: seeds.py FOLDER

The garden's cases for http1, and a few frames and bodies for the others.
"""

import pathlib
import sys

from cases_bodies import CASES as BODIES
from cases_heads import CASES as HEADS


def frame(kind, flags, stream, payload=b""):
    """A frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def message(opcode, payload, final=True, mask=b"mask"):
    """A frame of a WebSocket, by a client."""
    assert len(payload) < 126
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    return bytes([opcode | (0x80 if final else 0), 0x80 | len(payload)]) + mask + masked


# HPACK: GET or POST, https, `/`, and `:authority` as a literal.
GET = b"\x82\x87\x84\x01\x01a"
POST = b"\x83\x87\x84\x01\x01a"

HTTP2 = {
    "get": frame(1, 5, 1, GET),
    "two": frame(1, 5, 1, GET) + frame(1, 5, 3, GET),
    "post": frame(1, 4, 1, POST) + frame(0, 0, 1, b"hello") + frame(0, 1, 1, b" world"),
    "trailers": frame(1, 4, 1, POST) + frame(0, 0, 1, b"x") + frame(1, 5, 1, b"\0\x01t\x01v"),
    "continuation": frame(1, 1, 1, GET[:3]) + frame(9, 4, 1, GET[3:]),
    "reset": frame(1, 4, 1, POST) + frame(3, 0, 1, b"\0\0\0\x08"),
    "window": frame(8, 0, 0, b"\0\1\0\0") + frame(1, 5, 1, GET) + frame(8, 0, 1, b"\0\1\0\0"),
    "ping": frame(6, 0, 0, b"12345678") + frame(7, 0, 0, b"\0\0\0\0\0\0\0\0"),
    "settings": frame(4, 0, 0, b"\0\x04\0\0\0\x01") + frame(4, 1, 0) + frame(1, 5, 1, GET),
    "padding": frame(1, 0x2d, 1, b"\x02\0\0\0\0\x10" + GET + b"\0\0"),
}

WEBSOCKET = {
    "text": message(1, b"hello"),
    "binary": message(2, bytes(range(100))),
    "pieces": message(1, b"hel", final=False) + message(0, b"lo"),
    "ping-between": message(1, b"hel", final=False) + message(9, b"?") + message(0, b"lo"),
    "close": message(8, b"\x03\xe8bye"),
    "not-masked": b"\x81\x02hi",
    "long": b"\x82\xfe\x01\x00mask" + b"x" * 256,
    "longer": b"\x82\xff\0\0\0\0\0\x01\0\0mask" + b"x" * 65536,
    "no-text": message(1, b"\xff\xfe"),
}

PART = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nhello\r\n'
FILE = b'--b\r\nContent-Disposition: form-data; name="f"; filename="x.txt"\r\nContent-Type: text/plain\r\n\r\nx\r\n'

MULTIPART = {
    "one": PART + b"--b--\r\n",
    "two": PART + FILE + b"--b--\r\n",
    "preamble": b"before\r\n" + PART + b"--b--\r\nafter",
    "no-end": PART,
    "star": PART.replace(b'name="a"', b"name=a; filename*=UTF-8''%e2%82%ac") + b"--b--",
    "nearly": PART.replace(b"hello", b"\r\n--\r\n--a\r\n--bb\r\n-") + b"--b--",
}


def main():
    folder = pathlib.Path(sys.argv[1])
    seeds = {
        "http1": {case.name: case.sends for case in HEADS + BODIES},
        "http2": HTTP2,
        "websocket": WEBSOCKET,
        "multipart": MULTIPART,
    }
    for target, cases in seeds.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in cases.items():
            (folder / target / name).write_bytes(data)


main()

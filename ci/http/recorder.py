"""An origin that records the requests which a proxy sends: `recorder.py PORT LOG`.

It takes the bytes as they are: lines end with CR LF, a body is as long as Content-Length says or in
chunks. Anything else that comes is recorded as if it were a request.
"""

import origin


def read_chunks(source):
    body = b""
    while True:
        line = source.readline()
        size = int(line.split(b";")[0], 16)
        if size == 0:
            while source.readline().strip():
                pass
            return body, True
        piece = source.read(size + 2)
        body += piece[:-2]
        if len(piece) < size + 2:
            return body, False


def read_body(source, fields):
    if fields.get("transfer-encoding"):
        return read_chunks(source)
    length = int(fields.get("content-length", 0))
    body = source.read(length)
    return body, len(body) == length


def serve(client, log):
    source = client.makefile("rb")
    while line := source.readline():
        fields, more = {}, source.readline()
        while more not in (b"\r\n", b""):
            name, _, value = more.decode("latin1").partition(":")
            fields[name.strip().lower()] = value.strip()
            more = source.readline()
        if fields.get("expect"):
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        words = line.decode("utf-8", "replace").rstrip("\r\n").split(" ", 1)
        target, _, version = words[-1].rpartition(" ")
        try:
            body, whole = read_body(source, fields)
        except ValueError:
            body, whole = b"", False
        origin.record(log, method=words[0], target=target, start=body[:64].decode("latin1"),
                      whole=whole, meant=fields.get("x-meant"))
        if not whole or not version.startswith("HTTP/1"):
            return
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


origin.serve_forever(serve)

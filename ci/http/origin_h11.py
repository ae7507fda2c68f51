"""An origin that understands requests as h11 does, and logs them: `origin_h11.py PORT LOG`."""

import h11

import origin


def next_request(client, connection):
    """Returns the next request, its body, and whether that is whole; nothing at the end."""
    request, body = None, b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(client.recv(65536))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return request, body
        else:
            return None


def serve_all(client, log):
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=200_000)
    while found := next_request(client, connection):
        request, body = found
        origin.record(log, method=request.method.decode(), target=request.target.decode("latin1"),
                      start=body[:64].decode("latin1"), whole=True)
        for event in [h11.Response(status_code=200, headers=[("Content-Length", "0")]), h11.EndOfMessage()]:
            client.sendall(connection.send(event))
        if connection.our_state is not h11.DONE:
            return
        try:
            connection.start_next_cycle()
        except h11.LocalProtocolError:
            return


def serve(client, log):
    try:
        serve_all(client, log)
    except h11.RemoteProtocolError as error:
        status = error.error_status_hint
        client.sendall(b"HTTP/1.1 %d Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % status)


origin.serve_forever(serve)

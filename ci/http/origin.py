"""What the origins of the garden share: a thread for each connection, and a log."""

import json
import socket
import sys
import threading


def record(log, **what):
    log.write((json.dumps(what) + "\n").encode())


def run(serve, client, log):
    try:
        serve(client, log)
    except OSError:
        pass
    finally:
        client.close()


def serve_forever(serve):
    """Calls `serve` with each connection to the port of the first argument, and the log."""
    log = open(sys.argv[2], "ab", buffering=0)
    with socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=100) as listener:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=run, args=(serve, client, log), daemon=True).start()

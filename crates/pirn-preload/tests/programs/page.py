"""Serves the files of a folder: `page.py PORT FOLDER`. Its queue of connections is long enough for
twenty clients at once: with the five of `python -m http.server` some would be reset."""

import functools
import http.server
import sys

http.server.ThreadingHTTPServer.request_queue_size = 200
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[2])
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), handler).serve_forever()

"""The servers and proxies that the garden is about: how each is started.

A proxy is in front of an origin, whose log says what the proxy has understood. Each adds the field
X-Meant to what it forwards, so that a request without it is smuggled.
"""

import os
import socket
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MEANT = "yes"

NGINX = """
daemon off; pid {work}/pid; error_log {work}/error.log; worker_processes 1;
events {{ worker_connections 100; }}
http {{
  access_log off; client_body_temp_path {work}/b; proxy_temp_path {work}/p; fastcgi_temp_path {work}/f;
  uwsgi_temp_path {work}/u; scgi_temp_path {work}/s; client_body_timeout 3s; client_header_timeout 3s;
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 4; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_read_timeout 3s;
      proxy_set_header X-Meant yes; proxy_ignore_client_abort on; proxy_next_upstream off;
    }}
  }}
}}
"""

HAPROXY = """
global
  maxconn 100
defaults
  mode http
  timeout connect 3s
  timeout client 3s
  timeout server 3s
  timeout http-request 3s
  retries 0
frontend f
  bind 127.0.0.1:{port}
  default_backend b
backend b
  http-request set-header X-Meant yes
  http-reuse always
  server s 127.0.0.1:{origin}
"""

APACHE = """
ServerName a
ServerRoot {work}
PidFile {work}/pid
ErrorLog {work}/error.log
Listen 127.0.0.1:{port}
User {user}
Group {group}
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule headers_module /usr/lib/apache2/modules/mod_headers.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
ServerLimit 1
ThreadsPerChild 25
MaxRequestWorkers 25
Timeout 3
KeepAliveTimeout 3
AllowEncodedSlashes NoDecode
ProxyPass / http://127.0.0.1:{origin}/ nocanon
RequestHeader set X-Meant yes
"""

LIGHTTPD = """
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{work}"
server.errorlog = "{work}/error.log"
server.max-read-idle = 3
server.max-keep-alive-idle = 3
server.modules = ("mod_proxy", "mod_setenv")
setenv.set-request-header = ("X-Meant" => "yes")
proxy.server = ("" => (("host" => "127.0.0.1", "port" => {origin})))
"""

VARNISH = """
vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{origin}"; }}
sub vcl_recv {{ set req.http.X-Meant = "yes"; return (pass); }}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port, process, name, seconds=60):
    """Waits until the port is listened on."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
            return
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    raise RuntimeError(f"{name} does not listen on its port; see its log in the garden's folder")


class Peer:
    """A process that listens on a port of its own."""

    def __init__(self, name, work, log, upstream=None):
        self.name, self.work, self.log, self.upstream = name, work, log, upstream
        self.port, self.process = free_port(), None
        os.makedirs(work, exist_ok=True)
        os.chmod(work, 0o777)  # A server that changes its user writes there.
        open(log, "w").close()
        self.read = 0

    def start(self, command, **more):
        output = open(os.path.join(self.work, "output"), "ab")
        self.process = subprocess.Popen(command, cwd=self.work, stdin=subprocess.DEVNULL, stdout=output,
                                        stderr=output, start_new_session=True, **more)
        wait_for(self.port, self.process, self.name)
        return self

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.upstream:
            self.upstream.stop()

    def new_lines(self):
        """Returns the lines that the origin has logged since the last call."""
        with open(self.log, "rb") as log:
            log.seek(self.read)
            text = log.read()
        self.read += len(text)
        return text.decode("utf-8", "replace").splitlines()


def configured(name, text, command):
    """Returns a function that starts this proxy in front of an origin."""

    def start(work, origin):
        peer = Peer(name, work, os.path.join(work, "own.log"), origin)
        user = "www-data" if os.getuid() == 0 else str(os.getuid())
        path = os.path.join(work, "configuration")
        with open(path, "w") as out:
            out.write(text.format(work=work, port=peer.port, origin=origin.port, user=user, group=user))
        peer.log = origin.log
        values = {"path": path, "work": work, "port": peer.port, "origin": origin.port}
        return peer.start([part.format(**values) for part in command])

    return start


PROXIES = {
    "nginx": configured("nginx", NGINX, ["/usr/sbin/nginx", "-p", "{work}", "-c", "{path}", "-e", "{work}/error.log"]),
    "haproxy": configured("haproxy", HAPROXY, ["/usr/sbin/haproxy", "-db", "-f", "{path}"]),
    "apache": configured("apache", APACHE, ["/usr/sbin/apache2", "-D", "FOREGROUND", "-f", "{path}"]),
    "lighttpd": configured("lighttpd", LIGHTTPD, ["/usr/sbin/lighttpd", "-D", "-f", "{path}"]),
    "varnish": configured("varnish", VARNISH, [
        "/usr/sbin/varnishd", "-F", "-n", "{work}/n", "-a", "127.0.0.1:{port}", "-f", "{path}", "-j", "none",
        "-s", "default,20m", "-p", "timeout_idle=3", "-p", "thread_pool_min=5", "-p", "thread_pools=1"]),
}


def pirn(binary):
    """Returns a function that starts `pirn-serve --proxy`, this binary, in front of an origin."""
    return configured("pirn-proxy", "", [
        binary, "--proxy", "http://127.0.0.1:{origin}", "--listen", "127.0.0.1:{port}",
        "--header", "X-Meant: yes", "--timeout", "3"])


if "PIRN" in os.environ:
    PROXIES["pirn-proxy"] = pirn(os.environ["PIRN"])


def origin(name, command):
    """Returns a function that starts a server which logs what it understands."""

    def start(work):
        peer = Peer(name, work, os.path.join(work, "log"))
        parts = [part.format(port=peer.port, log=peer.log, here=HERE, work=work) for part in command]
        return peer.start(parts)

    return start


def probe(binary):
    return origin("pirn", [binary, "tcp=127.0.0.1:{port}", "log={log}", "folder={work}"])


RECORDER = origin("recorder", ["python3", "{here}/recorder.py", "{port}", "{log}"])


def origins(python):
    """Returns the other servers, by their names."""
    return {
        "go": origin("go", ["{work}/../go-origin", "127.0.0.1:{port}", "{log}"]),
        "node": origin("node", ["node", "{here}/origin.mjs", "{port}", "{log}"]),
        "h11": origin("h11", [python, "{here}/origin_h11.py", "{port}", "{log}"]),
    }

"""A store with S3's interface (moto), for tests: python s3_server.py [[HOST:]PORT [CERTIFICATE KEY]]

Prints its port, then serves until its standard input ends. Requests arrive and are received at the same time, each on its own
thread. A condition and the write under it are one step, as in S3 itself.
"""

import io
import os
import sys
import threading

from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    def log(self, *_: object) -> None:
        pass


class OneStep:
    """Receives whole requests at the same time, and applies them one after the other."""

    def __init__(self, application):
        self.application = application
        self.lock = threading.Lock()

    def __call__(self, environ, start_response):
        body = environ["wsgi.input"]
        is_chunked = environ.get("wsgi.input_terminated", False)
        environ["wsgi.input"] = io.BytesIO(body.read() if is_chunked else body.read(int(environ.get("CONTENT_LENGTH") or 0)))
        with self.lock:
            return list(self.application(environ, start_response))


def end_with_the_test() -> None:
    sys.stdin.read()
    os._exit(0)


host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "0").rpartition(":")
tls = (sys.argv[2], sys.argv[3]) if len(sys.argv) > 3 else None
s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket("checkpoints", "us-east-1")
application = OneStep(DomainDispatcherApplication(create_backend_app))
server = make_server(host or "127.0.0.1", int(port), application, threaded=True, request_handler=Quiet, ssl_context=tls)
threading.Thread(target=end_with_the_test, daemon=True).start()
print(server.port, flush=True)
server.serve_forever()

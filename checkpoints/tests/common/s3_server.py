"""A store with S3's interface (moto), for tests: python s3_server.py [PORT [CERTIFICATE KEY]]

Prints its port, then serves until its standard input ends. It answers one request after the other, so that a condition
and the write under it are one step, as in S3 itself.
"""

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


def end_with_the_test() -> None:
    sys.stdin.read()
    os._exit(0)


port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
tls = (sys.argv[2], sys.argv[3]) if len(sys.argv) > 3 else None
s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket("checkpoints", "us-east-1")
application = DomainDispatcherApplication(create_backend_app)
server = make_server("127.0.0.1", port, application, threaded=False, request_handler=Quiet, ssl_context=tls)
threading.Thread(target=end_with_the_test, daemon=True).start()
print(server.port, flush=True)
server.serve_forever()

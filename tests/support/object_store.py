"""A small object store over HTTP with the conditional writes that S3's documentation describes: the condition is judged
when the write is about to complete, If-None-Match: * answers 412 when there is an object, If-Match answers 412 for
another version and 404 for none, and of two writes that overlap the later may be told 409. Faults can be asked for."""
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ObjectStore:
    def __init__(self):
        self.objects = {}  # path -> (body, etag, metadata)
        self.lock = threading.Lock()
        self.writes = []  # every accepted body, in order
        self.faults = []  # "drop reply", "conflict", "error": for the next writes, in order
        self.authorizations = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def write(self, path, body, metadata, if_match, if_none_match):
        """The status and the ETag. One step."""
        with self.lock:
            there = self.objects.get(path)
            if if_none_match == "*" and there is not None:
                return 412, None
            if if_match is not None and there is None:
                return 404, None
            if if_match is not None and if_match != there[1]:
                return 412, None
            etag = '"%s"' % hashlib.md5(body + repr(sorted(metadata.items())).encode()).hexdigest()
            self.objects[path] = (body, etag, metadata)
            self.writes.append(body)
            return 200, etag

    def next_fault(self):
        with self.lock:
            return self.faults.pop(0) if self.faults else None

    def handler(store):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def answer(self, status, headers=()):
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_HEAD(self):
                with store.lock:
                    there = store.objects.get(self.path)
                if there is None:
                    return self.answer(404)
                self.answer(200, [("ETag", there[1]), *there[2].items()])

            def do_PUT(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                metadata = {k.lower(): v for k, v in self.headers.items() if k.lower().startswith("x-amz-meta-")}
                store.authorizations.append(self.headers.get("Authorization"))
                fault = store.next_fault()
                if fault in ("conflict", "error"):
                    return self.answer(409 if fault == "conflict" else 503)
                status, etag = store.write(self.path, body, metadata, self.headers.get("If-Match"),
                                           self.headers.get("If-None-Match"))
                if fault == "drop reply":
                    self.close_connection = True
                    return self.connection.shutdown(2)
                self.answer(status, [("ETag", etag)] if etag else [])

        return Handler

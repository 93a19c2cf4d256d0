"""The run records of one submitter on the message server, and its objects (stored inputs and results)."""

import base64
import contextlib
import json
import socket
import threading

from .checks import must, poll_until
from .nats import Client


class Streams:
    """Reads and writes records and objects of a submitter over a connection of any account."""

    def __init__(self, client, submitter="team"):
        self.client, self.submitter, self.lock = client, submitter, threading.Lock()

    def call(self, operation, body=""):
        """Returns the answer of the server's interface for streams."""
        with self.lock:
            return self.client.request(f"$JS.API.{operation}", body and json.dumps(body))

    def last(self, stream, subject):
        """Returns the last message of a subject as bytes, or None."""
        answer = self.call(f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject})
        return base64.b64decode(answer["message"].get("data", "")) if "message" in answer else None

    def get(self, run):
        """Returns the record of a run, or None."""
        found = self.last(f"CODEBOX_R_{self.submitter}", f"records.{self.submitter}.{run}")
        return found and json.loads(found)

    def state(self, run):
        record = self.get(run)
        return record and record["state"]["state"]

    def ended(self, run, seconds=120):
        """Waits until the record of a run is terminal and returns it."""
        return poll_until(lambda: self.get(run), lambda record: record and record["state"]["state"] == "terminal", seconds, f"{run} has no end")

    def runs(self):
        """Returns the ids of all runs that have a record."""
        answer = self.call(f"STREAM.INFO.CODEBOX_R_{self.submitter}", {"subjects_filter": f"records.{self.submitter}.*"})
        return {subject.split(".")[2] for subject in answer["state"].get("subjects") or {}}

    def messages(self):
        """Returns how many messages of the queues are not answered yet."""
        return self.call(f"STREAM.INFO.CODEBOX_T_{self.submitter}")["state"]["messages"]

    def size(self, name):
        """Returns the number of bytes and the number of parts of a complete object."""
        end = json.loads(self.last(f"CODEBOX_O_{self.submitter}", f"objects.{self.submitter}.{name}.end"))
        return end["bytes"], end["parts"]

    def parts(self, name):
        """Returns the content of a complete object."""
        stream, subject = f"CODEBOX_O_{self.submitter}", f"objects.{self.submitter}.{name}"
        return b"".join(self.last(stream, f"{subject}.part.{number}") for number in range(self.size(name)[1]))

    def put(self, name, content):
        """Stores an object like the product does."""
        subject, size = f"objects.{self.submitter}.{name}", 128 * 1024
        parts = [content[at:at + size] for at in range(0, len(content), size)]
        for number, part in enumerate(parts):
            assert "seq" in self.store(f"{subject}.part.{number}", part)
        assert "seq" in self.store(f"{subject}.end", json.dumps({"bytes": len(content), "parts": len(parts)}))

    def objects(self, prefix=""):
        """Returns the names of the complete objects."""
        answer = self.call(f"STREAM.INFO.CODEBOX_O_{self.submitter}", {"subjects_filter": f"objects.{self.submitter}.>"})
        names = [subject.split(".", 2)[2] for subject in answer["state"].get("subjects") or {}]
        return {name[:-4] for name in names if name.startswith(prefix) and name.endswith(".end")}

    def store(self, subject, body):
        """Stores a message under a subject of a stream and returns the server's answer."""
        with self.lock:
            return self.client.request(self.client.entry(subject), body)

    def answer_wait(self, seconds):
        """Changes the time after which the server delivers an unanswered message again. A setup uses 60 seconds."""
        stream = f"CODEBOX_T_{self.submitter}"
        for name in self.call(f"CONSUMER.NAMES.{stream}")["consumers"]:
            config = {**self.call(f"CONSUMER.INFO.{stream}.{name}")["config"], "ack_wait": seconds * 1000**3}
            changed = self.call(f"CONSUMER.CREATE.{stream}.{name}.{config['filter_subject']}", {"stream_name": stream, "config": config})
            assert changed["config"]["ack_wait"] == config["ack_wait"], changed

    def close(self):
        self.client.__exit__()


class Records(Streams):
    """Counts how often the server has stored a new value of each record."""

    def __init__(self, server, submitter="team"):
        super().__init__(Client(server), submitter)
        self.stored, self.watcher = {}, Client(server)
        # The server announces each value that it stores, and no other one.
        self.watcher.subscribe(f"changes.{submitter}.*")
        # No timeout: the read blocks until a message arrives or the connection is closed.
        self.watcher.socket.settimeout(None)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        try:
            while True:
                run = self.watcher.message()[0].rsplit(".", 1)[1]
                self.stored[run] = self.stored.get(run, 0) + 1
        except Exception:  # The connection is closed at the end of the test; a missing count fails it before.
            return

    def must_have_stored(self, run, expected):
        """Fails unless the record has had exactly this many values. A value can be read before its announcement arrives."""
        poll_until(lambda: self.stored.get(run, 0), lambda count: count >= expected, what=f"{expected} values of the record of {run}")
        must(self.stored[run] == expected, f"{self.stored[run]} values of the record of {run} were stored, not {expected}")

    def close(self):
        # The watching thread holds the lock of the file object until its read ends.
        with contextlib.suppress(OSError):
            self.watcher.socket.shutdown(socket.SHUT_RDWR)
        self.watcher.__exit__()
        super().close()

"""What a client got, whichever way it asked."""


class Answer:
    """One answer.  `complete` is what a client can tell: False is a transfer seen as broken."""

    def __init__(self, status, headers, body, complete=True, elapsed=0.0, note=""):
        self.status = status
        self.headers = list(headers)
        self.body = body
        self.complete = complete
        self.elapsed = elapsed
        self.note = note

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def all(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        return values[0] if values else None

    def __repr__(self):
        return (f"<Answer {self.status} {self.headers} {self.body[:300]!r}{'…' if len(self.body) > 300 else ''} "
                f"{'complete' if self.complete else 'BROKEN'} {self.elapsed:.2f}s {self.note}>")

"""A node that takes part in Byzantine agreement by oral messages, OM(m).

Run it, with any m:

    parley run om -n 4 -m 1 --faulty 3=twofaced --node "python3 examples/foreign/python/om.py"

The source sends its value in round 0. In each later round, every lieutenant relays to the others what it has
received in the round before, with the path by which it came. After round m it folds all that it has received into one
value: at each path the majority of its own value and of the values that the others relayed.
"""

import json
import sys

ROUND = 1000  # the length of a round, in ticks


class Node:
    def __init__(self):
        self.node_id = None
        self.received = {}  # a path, such as ("n1", "n3"), to the value that came along it

    def send(self, dest, **body):
        print(json.dumps({"src": self.node_id, "dest": dest, "body": body}), flush=False)

    def relay(self, path, value):
        """Send a value to all processes that are not on its path."""
        for dest in self.node_ids:
            if dest not in path:
                self.send(dest, type="value", path=path, value=value)

    def handle(self, src, body):
        kind = body["type"]
        if kind == "init":
            self.node_id, self.node_ids = body["node_id"], body["node_ids"]
            self.m, self.source = body["m"], body["proposers"][0]
            self.default = body["settings"]["default"]
            self.round = 0
            self.send(src, type="init_ok", in_reply_to=body["msg_id"])
            self.send("parley", type="set_timer", timer=0, after=ROUND)
        elif kind == "propose" and self.node_id == self.source:
            self.received[(self.source,)] = body["value"]
            self.relay([self.source], body["value"])
        elif kind == "value":
            self.receive(src, body.get("path"), body.get("value"))
        elif kind == "timeout":
            self.end_round()

    def receive(self, src, path, value):
        """Take a value if its path can be right. A faulty process may have sent anything."""
        if not isinstance(path, list) or not isinstance(value, str) or not all(p in self.node_ids for p in path):
            return
        fits = len(path) == self.round + 1 and path[0] == self.source and path[-1] == src
        if fits and len(set(path)) == len(path) and self.node_id not in path:
            self.received.setdefault(tuple(path), value)

    def end_round(self):
        if self.round == self.m:
            source_knows = self.node_id == self.source
            value = self.received[(self.source,)] if source_knows else self.fold((self.source,))
            self.send("parley", type="decide", value=value)
            return
        self.round += 1
        if self.node_id != self.source:
            for path in self.paths(self.round):
                self.relay(list(path) + [self.node_id], self.received.get(path, self.default))
        self.send("parley", type="set_timer", timer=0, after=ROUND)

    def paths(self, length):
        """All paths of this length that begin at the source and do not contain this node."""
        paths = [(self.source,)]
        for _ in range(length - 1):
            paths = [p + (n,) for p in paths for n in self.node_ids if n not in p and n != self.node_id]
        return paths

    def fold(self, path):
        """The majority of the value that came along a path, and of the values that others relayed of it."""
        own = self.received.get(path, self.default)
        if len(path) == self.m + 1:
            return own
        votes = [own] + [self.fold(path + (n,)) for n in self.node_ids if n not in path and n != self.node_id]
        best = max(sorted(set(votes)), key=votes.count)
        return best if 2 * votes.count(best) > len(votes) else self.default


def main():
    node = Node()
    for line in sys.stdin:
        message = json.loads(line)
        node.handle(message["src"], message["body"])
        node.send("parley", type="parley_done")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""Names of services in the cluster: a small DNS server in place of CoreDNS, which Debian does not have."""

from __future__ import annotations

import socket
import struct
import threading

from .api import Api, Follower

DOMAIN = "cluster.local"
# Seconds that a resolver may keep an answer, as in CoreDNS' default for Kubernetes.
LIFETIME_S = 5
ADDRESS, NO_ERROR, NO_NAME = 1, 0, 3


def question(query: bytes) -> tuple[str, int, int]:
    """Return the name and the kind of a query's first question, and where the question ends."""
    labels, at = [], 12
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode())
        at += 1 + length
    (kind,) = struct.unpack_from("!H", query, at + 1)
    return ".".join(labels).lower(), kind, at + 5


def answer(query: bytes, addresses: list[str] | None) -> bytes:
    """Return the reply to a query: the addresses of a name, none for other kinds of records, an error without the name."""
    _, kind, end = question(query)
    found = addresses if addresses and kind == ADDRESS else []
    # A reply with authority, recursion wanted by the query and available.
    flags = 0x8580 | (NO_NAME if addresses is None else NO_ERROR)
    header = query[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0)
    records = b"".join(struct.pack("!HHHIH", 0xC00C, ADDRESS, 1, LIFETIME_S, 4) + socket.inet_aton(address) for address in found)
    return header + query[12:end] + records


class Names(threading.Thread):
    """Answers `SERVICE.NAMESPACE.svc.cluster.local`: a service's own address, or those of its ready pods if it is headless."""

    def __init__(self, api: Api, address: str):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        self.services: dict[str, list[str]] = {}
        self.pods: dict[str, list[str]] = {}
        self.followers = [Follower(api, "/api/v1/services", self.service), Follower(api, "/api/v1/endpoints", self.endpoints)]
        self.start()

    def service(self, change: str, service: dict) -> None:
        address = service["spec"].get("clusterIP", "None")
        self.keep(self.services, change, service, [] if address == "None" else [address])

    def endpoints(self, change: str, endpoints: dict) -> None:
        ready = [address["ip"] for subset in endpoints.get("subsets") or [] for address in subset.get("addresses") or []]
        self.keep(self.pods, change, endpoints, ready)

    def keep(self, table: dict[str, list[str]], change: str, resource: dict, addresses: list[str]) -> None:
        name = f"{resource['metadata']['name']}.{resource['metadata']['namespace']}.svc.{DOMAIN}"
        if change == "DELETED":
            table.pop(name, None)
        else:
            table[name] = addresses

    def addresses(self, name: str) -> list[str] | None:
        """Return the addresses of a name; `None` if no service has it."""
        own = self.services.get(name)
        return None if own is None else own or self.pods.get(name, [])

    def run(self) -> None:
        while True:
            try:
                query, client = self.socket.recvfrom(4096)
            except OSError:
                return  # closed
            try:
                self.socket.sendto(answer(query, self.addresses(question(query)[0])), client)
            except (IndexError, UnicodeDecodeError, struct.error):
                pass  # no query

    def end(self) -> None:
        for follower in self.followers:
            follower.end()
        self.socket.close()

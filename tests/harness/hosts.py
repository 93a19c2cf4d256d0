"""Hosts of a test: network namespaces on this machine, joined by a bridge in one of them."""

import ctypes
import itertools
import os
import subprocess

NUMBERS = itertools.count()


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Host:
    """A network namespace with one address that the other hosts of its network can reach."""

    def __init__(self, network, name, number):
        self.network, self.name = network, name
        self.namespace = f"{network.tag}-{name}"
        self.port = f"p{number}"
        self.address = f"10.77.0.{number}"
        ip("netns", "add", self.namespace)
        ip("-n", network.switch, "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", self.namespace)
        ip("-n", network.switch, "link", "set", self.port, "master", "bridge0")
        ip("-n", network.switch, "link", "set", self.port, "up")
        ip("-n", self.namespace, "addr", "add", f"{self.address}/24", "dev", "eth0")
        ip("-n", self.namespace, "link", "set", "lo", "up")
        ip("-n", self.namespace, "link", "set", "eth0", "up")

    def argv(self, *words):
        """The command line that runs a program on this host."""
        return ["ip", "netns", "exec", self.namespace, *map(str, words)]

    def start(self, *words, **options):
        return subprocess.Popen(self.argv(*words), start_new_session=True, **options)

    def cut(self):
        """Disconnects the host from the network: its port of the bridge goes down."""
        ip("-n", self.network.switch, "link", "set", self.port, "down")

    def join(self):
        """Connects the host to the network again."""
        ip("-n", self.network.switch, "link", "set", self.port, "up")


class Network:
    """A bridge with hosts, which can reach only each other. Needs root."""

    def __init__(self):
        self.tag = f"codebox{os.getpid()}x{next(NUMBERS)}"
        self.switch = f"{self.tag}-switch"
        self.hosts = []
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "bridge0", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge0", "up")

    def host(self, name):
        host = Host(self, name, len(self.hosts) + 1)
        self.hosts.append(host)
        return host

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for namespace in [host.namespace for host in self.hosts] + [self.switch]:
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)


def enter(host):
    """Moves this process into the network namespace of a host. Processes that it starts later are there, too."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{host.namespace}", "rb") as namespace:
        if libc.setns(namespace.fileno(), 0x40000000) != 0:
            raise OSError(ctypes.get_errno(), f"this process cannot enter {host.namespace}")

"""A message server with TLS and accounts: one for each party of a cluster, with the permissions that the product prints."""

import os
import shutil

from .nats import Client, Nats, User, certificates

PARTIES = {"operator": ("operator",), "node": ("node", "node"), "shop": ("submitter", "shop"), "blog": ("submitter", "blog")}


class Accounts:
    """A server with TLS and one user for each party; the permissions are those that `wp-codebox cluster permissions` prints.

    `variants` maps a party to a function from its permissions to pairs of name and changed permissions. Each pair gets a user, and a directory in
    which this user stands for the party: `self.others` and `self.variants` have users and directories by party and name.
    """

    def __init__(self, bench, program, name="accounts", variants=None):
        self.bench = bench
        self.directory = f"{bench.directory}/{name}"
        os.makedirs(self.directory)
        certificates(self.directory, "ca", "other-ca")
        self.users = {}
        for party, words in PARTIES.items():
            self.users[party] = self.user(party, bench.call("cluster", "permissions", *words).expect(0).json)
            self.write(self.directory, party, self.users[party])
        self.write(self.directory, "wrong", User("wrong", {}))
        others = self.others = {(party, row): self.user(party, permissions) for party, change in (variants or {}).items()
                  for row, permissions in change(self.users[party].permissions)}
        users = [{"nkey": user.public, "permissions": user.permissions} for user in [*self.users.values(), *others.values()]]
        tls = {"cert_file": f"{self.directory}/server.pem", "key_file": f"{self.directory}/server.key"}
        self.server = Nats(program, name, {"authorization": {"users": users}, "tls": tls}, scheme="tls").start()
        with open(f"{self.directory}/url", "w", encoding="utf-8") as file:
            file.write(self.server.url)
        self.variants = {}
        for number, ((party, row), user) in enumerate(others.items()):
            directory = self.variants[party, row] = f"{bench.directory}/{name}-{number}"
            shutil.copytree(self.directory, directory)
            os.unlink(f"{directory}/{party}.seed")
            self.write(directory, party, user)

    @staticmethod
    def user(party, permissions):
        user = User(party, permissions)
        user.inbox = "_".join(PARTIES[party])
        return user

    @staticmethod
    def write(directory, party, user):
        with open(os.open(f"{directory}/{party}.seed", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{user.seed}\n")

    def own(self, party):
        """Gives the credentials to the owner of the state directory, with whose rights a supervisor reads them."""
        if os.geteuid() == 0:
            shutil.chown(f"{self.directory}/{party}.seed", self.bench.owner)
        return self

    def options(self, name):
        return "--nats", self.server.url, "--nats-ca", f"{self.directory}/ca.pem", "--nats-credentials", f"{self.directory}/{name}.seed"

    def client(self, name):
        return Client(self.server, self.users[name], f"{self.directory}/ca.pem")

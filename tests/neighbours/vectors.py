"""Data of the suite: which neighbours (other programs and sandboxes) must work during which attack, per way to start runs (mode)."""

# Neighbours, whose calls are measured during an attack. TIMES: calls per round, for neighbours that get more than one.
WEB = "web"        # a web server under the uid of the state directory's owner
EXEC = "exec"      # a program in a held sandbox of another site
RUN = "run"        # a new run of a third site
FOLLOW = "follow"  # `runs events --follow` of the held sandbox
HOST = "host"      # a host program that reads and locks a live plugin file which the attacker has mounted
SYNC = "sync"      # fsync of a file that a host program has just written
END = "end"        # the attacker's own sandbox can be ended
TIMES = {WEB: 5, SYNC: 5}

# Seconds by which a neighbour's median during an attack may exceed twice its median without attack. FOLLOW is large: a
# follower that gets no inotify instance polls the journal.
ALLOWANCE = {WEB: 0.02, EXEC: 0.15, RUN: 0.4, FOLLOW: 2.5, HOST: 0.05, SYNC: 0.5, END: 8.0}

# Attacks, by class. `takes`: exhausted resource; `beside`: additional neighbours; `seconds`: maximum duration; `outside`: what
# the attack prints when it runs outside a sandbox and succeeds; `then`: error that other processes of the same user get after that.
CLASSES = {row["id"].removeprefix("neighbours-"): row for row in (
    {"id": "neighbours-epoll", "takes": "epoll watches, until ENOSPC", "beside": (), "seconds": 14,
     "outside": "full ENOSPC", "then": "ENOSPC"},
    {"id": "neighbours-inflight", "takes": "descriptors in flight over unix sockets, until ETOOMANYREFS", "beside": (), "seconds": 8,
     "outside": "full ETOOMANYREFS", "then": "ETOOMANYREFS"},
    {"id": "neighbours-inotify", "takes": "inotify instances, until EMFILE", "beside": (FOLLOW,), "seconds": 8,
     "outside": "full EMFILE", "then": "EMFILE"},
    {"id": "neighbours-watches", "takes": "inotify watches, until ENOSPC", "beside": (FOLLOW,), "seconds": 10,
     "outside": "full ENOSPC", "then": "ENOSPC"},
    {"id": "neighbours-pipes", "takes": "pages of pipes, until they are made smaller", "beside": (), "seconds": 8,
     "outside": "full EPERM", "then": "EPERM"},
    {"id": "neighbours-timers", "takes": "POSIX timers, until EAGAIN", "beside": (), "seconds": 8,
     "outside": "full EAGAIN", "then": "EAGAIN"},
    {"id": "neighbours-signals", "takes": "pending signals, until EAGAIN", "beside": (), "seconds": 8,
     "outside": "full EAGAIN", "then": "EAGAIN"},
    {"id": "neighbours-queues", "takes": "POSIX message queues, until EMFILE", "beside": (), "seconds": 5,
     "outside": "full EMFILE", "then": "EMFILE"},
    {"id": "neighbours-keys", "takes": "keys, until EDQUOT", "beside": (), "seconds": 5,
     "outside": "full EDQUOT", "then": "EDQUOT"},
    {"id": "neighbours-tcp", "takes": "400 MiB behind connections of the own loopback", "beside": (), "seconds": 8,
     "outside": "reached 400", "then": None},
    {"id": "neighbours-locks", "takes": "leases and locks on every file in sight", "beside": (HOST,), "seconds": 14,
     "outside": r"held [1-9]\d* leases [1-9]\d* whole", "then": "EAGAIN"},
    {"id": "neighbours-fsync", "takes": "fsync of every file in sight, all the time", "beside": (SYNC,), "seconds": 6,
     "outside": "storm", "then": None},
    {"id": "neighbours-stops", "takes": "SIGSTOP to programs between fork and execve", "beside": (END,), "seconds": 8,
     "outside": "storm", "then": None},
)}

# Value of the report's axis `identity` in each mode.
MODES = {
    "own": "enforced",
    "socket": "enforced",
    "subuid": "enforced",
    "shared": "best-effort",
    "alone": "best-effort",
    "reduced": "best-effort",
}
IDENTITY_OF_ITS_OWN = ("own", "socket", "subuid")
# Modes in which the runs have a memory cgroup: only root can create one here.
GROUPED = ("own", "socket", "shared", "reduced")

# If guests share the kernel uid of the state directory's owner, an attack may stop the neighbours listed for it here, which
# have the same uid. All other neighbours must continue in each mode.
PIPES = "pipe pages are counted per kernel uid and have no limit per namespace or process"
UNPROTECTED = {
    ("epoll", "alone"): ((WEB, EXEC, RUN), "watches are counted per kernel uid, without a memory group nothing sees what they cost, "
                        "and the runner waits by epoll, too"),
    ("pipes", "shared"): ((WEB,), PIPES),
    ("pipes", "alone"): ((WEB,), PIPES),
    ("pipes", "reduced"): ((WEB,), PIPES),
    ("inotify", "reduced"): ((WEB,), "instances are limited per user namespace, and at this level there is none"),
}

# A storm of fsync must not reach the disk. Other programs flush the disk, too, so this many flushes, or one per
# ten calls, are tolerated.
FLUSHES_OF_OTHERS = 500
CALLS_FOR_A_FLUSH = 10
# Rounds before and during an attack at level reduced, where a run copies a WordPress and takes long.
ROUNDS = {"reduced": (1, 2)}
USUAL_ROUNDS = (2, 3)

# Patterns that the attacker's output lines must or must not match.
REFUSED = r"refused (EPERM|ENOSYS|EMFILE|EACCES)"
ATTACKER = {
    "queues": {"all": ("must", REFUSED)},
    "keys": {"all": ("must", REFUSED)},
    "watches": {"reduced": ("must", REFUSED)},
    "tcp": {**{mode: ("never", r"reached 400") for mode in GROUPED}, "reduced": ("must", REFUSED)},
    "locks": {"all": ("must", r"held 0 leases")},
}


def neighbours(attack, mode):
    """Returns the neighbours that must continue during the attack in this mode, those that may stop, and the reason why
    these may stop."""
    stopped, reason = UNPROTECTED.get((attack, mode), ((), None))
    return [who for who in (WEB, EXEC, RUN, *CLASSES[attack]["beside"]) if who not in stopped], stopped, reason


def demand(attack, mode):
    """Returns the patterns that the attacker's output must and must not match."""
    rules = ATTACKER.get(attack, {})
    return rules.get(mode) or rules.get("all")

"""Simulates a host without user namespaces for one `wp-codebox` call and its children.

A seccomp filter returns EPERM to `unshare(CLONE_NEWUSER)`; child processes inherit it.
"""

import ctypes
import json
import os
import platform
import struct
import subprocess

POLICY = {"network": "deny", "filesystem": "readwrite-mounts", "secrets": "none", "approvals": "never",
          "commands": ["command-agent-run", "wordpress.run-php", "wordpress.wp-cli", "inspect-mounted-inputs"],
          "minimum_isolation": "reduced"}

UNSHARE = {"x86_64": 272, "aarch64": 97}

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2

CLONE_NEWUSER, EPERM = 0x10000000, 1


class Program(ctypes.Structure):
    """C type `struct sock_fprog`, a classic BPF program for seccomp."""
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def forbid_user_namespaces():
    """Installs the seccomp filter; runs in the child between fork and exec."""
    code = b"".join(struct.pack("=HBBI", *row) for row in (
        (0x20, 0, 0, 0),                                    # system call number
        (0x15, 0, 3, UNSHARE[platform.machine()]),
        (0x20, 0, 0, 16),                                   # first argument
        (0x45, 0, 1, CLONE_NEWUSER),
        (0x06, 0, 0, 0x00050000 | EPERM),
        (0x06, 0, 0, 0x7FFF0000),
    ))
    memory = ctypes.create_string_buffer(code, len(code))
    program = Program(len(code) // 8, ctypes.addressof(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)):
        os._exit(99)


def run_without_userns(bench, *arguments):
    arguments = bench.run_arguments(*arguments)
    process = subprocess.Popen([bench.environment["CODEBOX"], *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env={"PATH": "/usr/bin:/bin"}, preexec_fn=forbid_user_namespaces)
    return bench.finish(arguments, process, 300)


def agent(script):
    return ["--agent-command", "sh -c '" + script.replace("'", "'\\''") + "'"]


def policy(**changes):
    return ["--policy", json.dumps({**POLICY, **changes})]

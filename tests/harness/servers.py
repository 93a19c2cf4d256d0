"""Starts nginx and php-fpm with their own configuration on loopback ports, and stops them by pid."""

import contextlib
import os
import signal
import socket
import subprocess
import time

from .checks import poll_until
from .processes import children

FPM = "/usr/sbin/php-fpm8.2"
NGINX = "/usr/sbin/nginx"


#: Sockets that are bound and do not listen. The kernel gives their ports to no other process that asks for any port, and a server that
#: sets SO_REUSEADDR, as servers do, can listen there.
RESERVED = []


def free_ports(count):
    """Returns distinct loopback ports, which are reserved until this process ends."""
    for _ in range(count):
        probe = socket.socket()
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        RESERVED.append(probe)
    return [probe.getsockname()[1] for probe in RESERVED[-count:]]


def can_listen(port):
    """Whether this process can listen on the port. False while another process holds a listening socket."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def answers(port):
    """Whether a process accepts connections on the port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def accept_queue(port):
    """Returns the number of connections to a loopback port that its listening process has not accepted yet."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table]
    # In state 0A (LISTEN), rx_queue is the length of the accept queue.
    return sum(int(row[4].split(":")[1], 16) for row in rows if row[1] == f"0100007F:{port:04X}" and row[3] == "0A")


class Server:
    """A server program in a process group of its own, which writes its output to a log file and does not daemonize."""

    def __init__(self, name, arguments, directory, ports):
        self.name, self.arguments, self.directory, self.ports = name, arguments, directory, ports
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    @property
    def log(self):
        return os.path.join(self.directory, f"{self.name}.out")

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, start_new_session=True)
        for port in self.ports:
            poll_until(lambda at=port: self.process.poll() is not None or answers(at), seconds=60, what=f"{self.name} did not listen on {port}")
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}: {log.read()[-2000:]}")

    def send(self, number):
        os.kill(self.pid, number)

    def stop(self, number=signal.SIGTERM, seconds=60):
        """Sends the signal, waits for the exit and returns the elapsed seconds. Kills the server after `seconds`."""
        if self.process is None or self.process.poll() is not None:
            return 0.0
        began = time.monotonic()
        self.send(number)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            for pid in [*children(self.pid), self.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()
            raise
        return time.monotonic() - began


def php_fpm(directory, pools, settings, owner):
    """Configures php-fpm with pools {name: {port, max_children, settings, user}}; `settings` apply to all pools, `owner` is the user of those without one."""
    path = os.path.join(directory, "php-fpm.conf")
    lines = ["[global]", f"error_log = {directory}/php-fpm.log", "daemonize = no", f"pid = {directory}/php-fpm.pid"]
    for name, pool in pools.items():
        user = pool.get("user", owner)
        lines += [f"[{name}]", f"user = {user}", f"group = {user}", f"listen = 127.0.0.1:{pool['port']}", "pm = static",
                  f"pm.max_children = {pool['max_children']}", "catch_workers_output = yes", "clear_env = yes",
                  "php_admin_flag[log_errors] = on", f"php_admin_value[error_log] = {directory}/php-errors.log"]
        lines += [f"{key} = {value}" for key, value in pool.get("directives", {}).items()]
        lines += [f"php_admin_value[{key}] = {value}" for key, value in pool.get("settings", {}).items()]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    arguments = [FPM, "--nodaemonize", "--force-stderr", "--fpm-config", path]
    for key, value in settings.items():
        arguments += ["-d", f"{key}={value}"]
    return Server("php-fpm", arguments, directory, [pool["port"] for pool in pools.values()])


def nginx(directory, root, sites):
    """Configures nginx with sites {port: port of a pool} that serve the WordPress in `root`."""
    path = os.path.join(directory, "nginx.conf")
    paths = "".join(f"\t{kind}_temp_path {directory}/nginx-{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    servers = "".join(f"""
	server {{
		listen 127.0.0.1:{port};
		server_name 127.0.0.1;
		root {root};
		index index.php;
		client_max_body_size 8m;
		location / {{ try_files $uri $uri/ /index.php?$args; }}
		location ~ \\.php$ {{
			include /etc/nginx/fastcgi_params;
			# Debian's fastcgi_params omits the port in HTTP_HOST.
			fastcgi_param HTTP_HOST $host:$server_port;
			fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
			fastcgi_pass 127.0.0.1:{pool};
			fastcgi_read_timeout 120s;
		}}
	}}
""" for port, pool in sites.items())
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"user www-data;\nworker_processes 1;\nerror_log {directory}/nginx.log;\npid {directory}/nginx.pid;\ndaemon off;\n"
                   "events { worker_connections 64; }\nhttp {\n" + paths + "\taccess_log off;\n" + servers + "}\n")
    return Server("nginx", [NGINX, "-c", path, "-e", f"{directory}/nginx.log"], directory, list(sites))

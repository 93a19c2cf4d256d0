<?php
/**
 * Tries what a sandbox must prevent and prints one line for each attempt: its name and `done` or
 * `denied`. Outside of a sandbox, as root, every attempt succeeds: that is the control.
 *
 * php attacks.php HOST_PORT HOST_PID
 *
 * The secret file of the host is no argument, because files of a command line are put into the
 * sandbox. HOST_PORT: a TCP port on the host's 127.0.0.1. HOST_PID: a
 * process of the host that may be signalled.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

[, $host_port, $host_pid] = $argv;

/**
 * Runs a command line and returns whether it ended with 0.
 */
function succeeds( string $line ): bool {
	exec( $line . ' >/dev/null 2>&1', $output, $status );
	return 0 === $status;
}

/**
 * Overwrites a file with its own content, so that success changes nothing.
 */
function rewrite( string $path ): bool {
	$content = @file_get_contents( $path );
	return false !== $content && false !== @file_put_contents( $path, $content );
}

/**
 * Truncates a file to its own length, so that success changes nothing.
 */
function truncate( string $path ): bool {
	return succeeds( 'truncate -s ' . (int) @filesize( $path ) . ' ' . escapeshellarg( $path ) );
}

$attempts = array(
	'read a secret file of the host'       => fn(): bool => false !== @file_get_contents( '/srv/secret' ),
	'read the password hashes'             => fn(): bool => str_contains( (string) @file_get_contents( '/etc/shadow' ), ':' ),
	'write a system file'                  => fn(): bool => rewrite( '/usr/bin/env' ),
	'truncate a system file'               => fn(): bool => truncate( '/usr/bin/env' ),
	'truncate the accounts'                => fn(): bool => truncate( '/etc/passwd' ),
	'create a file in /usr'                => fn(): bool => succeeds( 'touch /usr/attack && rm /usr/attack' ),
	'connect to a port of the host'        => fn(): bool => false !== @stream_socket_client( "tcp://127.0.0.1:$host_port", $errno, $error, 2.0 ),
	'signal a process of the host'         => fn(): bool => succeeds( "kill -0 $host_pid && test -r /proc/$host_pid/stat" ) && str_contains( (string) @file_get_contents( "/proc/$host_pid/cmdline" ), 'sleep' ),
	'read the environment of pid 1'        => fn(): bool => str_contains( (string) @file_get_contents( '/proc/1/cmdline' ), 'init' ) && false !== @file_get_contents( '/proc/1/environ' ),
	'mount a file system'                  => fn(): bool => succeeds( 'mount -t tmpfs attack /mnt && umount /mnt' ),
	'enter another user namespace'         => fn(): bool => succeeds( 'unshare --user --map-root-user true' ),
	'create a device node'                 => fn(): bool => succeeds( 'mknod /tmp/attack c 1 3 && rm /tmp/attack' ),
	'read a disk of the host'              => fn(): bool => succeeds( 'head -c 1 /dev/vda' ),
	'change the host name'                 => fn(): bool => succeeds( 'hostname "$(hostname)"' ),
	'write a kernel setting'               => fn(): bool => rewrite( '/proc/sys/kernel/panic' ),
	'read the kernel log'                  => fn(): bool => succeeds( 'dmesg | head -n 1 | grep .' ),
	'load a kernel module'                 => fn(): bool => succeeds( 'modprobe dummy' ),
	'join the network namespace of pid 1'  => fn(): bool => succeeds( 'nsenter --net=/proc/1/ns/net true' ),
);
foreach ( $attempts as $name => $attempt ) {
	printf( "attack\t%s\t%s\n", $name, $attempt() ? 'done' : 'denied' );
}

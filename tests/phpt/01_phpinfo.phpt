--TEST--
The module has a phpinfo section, and no script can change its settings
--INI--
wp_codebox.mount_roots=/srv/a:/srv/b
--FILE--
<?php
var_dump( extension_loaded( 'wp_codebox' ), phpversion( 'wp_codebox' ) );
( new ReflectionExtension( 'wp_codebox' ) )->info();
foreach ( array_keys( ini_get_all( 'wp_codebox' ) ) as $name ) {
	var_dump( @ini_set( $name, '/elsewhere' ) );
	var_dump( ini_get_all( 'wp_codebox' )[ $name ]['access'] === INI_SYSTEM );
}
// Positive control: the same call changes a setting of another level.
var_dump( @ini_set( 'precision', '10' ) !== false );
var_dump( ini_get( 'wp_codebox.mount_roots' ) );
?>
--EXPECTF--
bool(true)
string(5) "%d.%d.%d"

wp_codebox

wp_codebox => enabled
Version => %d.%d.%d
Runner protocol => 5
Contract digest => %x

Directive => Local Value => Master Value
wp_codebox.state_dir => no value => no value
wp_codebox.share_dir => /usr/share/wp-codebox => /usr/share/wp-codebox
wp_codebox.runner => /usr/bin/wp-codebox => /usr/bin/wp-codebox
wp_codebox.launcher => /usr/libexec/wp-codebox-launch => /usr/libexec/wp-codebox-launch
wp_codebox.php_binary => /usr/bin/php => /usr/bin/php
wp_codebox.cgroup => no value => no value
wp_codebox.identity => auto => auto
wp_codebox.guest_ids => no value => no value
wp_codebox.mount_roots => /srv/a:/srv/b => /srv/a:/srv/b
wp_codebox.agents_dir => /opt/wp-codebox/agents => /opt/wp-codebox/agents
wp_codebox.outer_sandbox => none => none
wp_codebox.outer_sandbox_program => no value => no value
wp_codebox.max_runs => 8 => 8
wp_codebox.max_groups => 2 => 2
wp_codebox.max_limits => wall_clock_ms:28800000 memory_bytes:17179869184 disk_bytes:17179869184 => wall_clock_ms:28800000 memory_bytes:17179869184 disk_bytes:17179869184
wp_codebox.runner_socket => no value => no value
wp_codebox.provider_keys => no value => no value
wp_codebox.private_models => no value => no value
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(false)
bool(true)
bool(true)
string(13) "/srv/a:/srv/b"

--TEST--
Extension reports version, digest and configuration; a relative path in a setting fails runs and the self-test
--INI--
wp_codebox.state_dir=/srv/state
wp_codebox.mount_roots=/srv/a::/srv/b
wp_codebox.provider_keys="ACME_KEY@models.example, B_KEY@10.0.0.9:8080"
wp_codebox.launcher=relative/launcher
wp_codebox.runner={PWD}/fixtures/fake-runner
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\{Extension, Run};

$info = Extension::info();
echo implode( ' ', array_keys( $info ) ), "\n";
var_dump( $info['version'] === Extension::version(), $info['contract_digest'] === Extension::contractDigest() );
echo implode( '|', $info['provider_keys'] ), "\n";
var_dump( $info['state_dir'], $info['mount_roots'], $info['launcher'], $info['protocol'] );

// Computes the digest by its definition over the flattened schemas, which `cargo xtask dist plugin` writes.
$files = glob( getenv( 'CODEBOX_ROOT' ) . '/dist/wp-codebox/abilities/schemas/*.json' );
usort( $files, static fn( $a, $b ) => strcmp( basename( $a ), basename( $b ) ) );
$hash = hash_init( 'sha256' );
foreach ( $files as $file ) {
	$bytes = file_get_contents( $file );
	hash_update( $hash, basename( $file ) . "\n" . strlen( $bytes ) . "\n" . $bytes . "\n" );
}
var_dump( count( $files ) > 0, hash_final( $hash ) === Extension::contractDigest() );

$e = caught( static fn() => Run::start( ...request( 'echo' ) ) );
echo $e->getMessage(), ' ', json_encode( $e->data ), "\n";
caught( static fn() => Extension::doctor() );
?>
--EXPECT--
version contract_digest protocol php_api state_dir share_dir runner launcher php_binary cgroup identity guest_ids mount_roots outer_sandbox outer_sandbox_program max_runs max_groups max_limits default_ceilings runner_socket provider_keys private_models agents_dir agents
bool(true)
bool(true)
ACME_KEY@models.example|B_KEY@10.0.0.9:8080
string(10) "/srv/state"
array(2) {
  [0]=>
  string(6) "/srv/a"
  [1]=>
  string(6) "/srv/b"
}
string(17) "relative/launcher"
int(5)
bool(true)
bool(true)
UnavailableException wp_codebox_config_invalid
wp_codebox.launcher must be an absolute path without `.` and `..` segments; set it in php.ini {"setting":"wp_codebox.launcher"}
UnavailableException wp_codebox_config_invalid

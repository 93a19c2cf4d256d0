--TEST--
Artifacts computes canonical JSON and digests, and tells valid from tampered bundles
--INI--
wp_codebox.state_dir=/nonexistent-state
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
require __DIR__ . '/fixtures/bundle.php';
use WPCodebox\Native\Artifacts;

$directory = sys_get_temp_dir() . '/wpcb-bundle-' . getmypid();
mkdir( $directory );
register_shutdown_function( static fn() => remove( $directory ) );
$run_id = 'run_' . str_repeat( 'a', 32 );
$id     = write_bundle( $directory, $run_id );

// Keys sort by UTF-16 code units: U+1F600 comes before U+FF01.
echo Artifacts::canonicalJson( [ "\u{ff01}" => 1, "\u{1f600}" => 2, 'b' => [ 0.1, 1e21, -0.0 ], 'a' => "\u{1}\"/" ] ), "\n";
caught( static fn() => Artifacts::canonicalJson( array_fill( 0, 2001, 0 ) ) );

$digest = Artifacts::contentDigest( $directory );
var_dump( "artifact-bundle-sha256-{$digest['value']}" === $id, $digest['algorithm'], $digest['inputs'] );
var_dump( Artifacts::contentDigest( $directory, [ 'files/patch.diff' ] )['value'] === hash( 'sha256', "wp-codebox/artifact-content/v1\nfiles/patch.diff\n" . PATCH ) );
caught( static fn() => Artifacts::contentDigest( $directory, [ 'files/none' ] ) );
caught( static fn() => Artifacts::contentDigest( $directory, [ '../x' ] ) );
caught( static fn() => Artifacts::contentDigest( '/nonexistent' ) );

$good = Artifacts::verify( $directory );
echo json_encode( array_diff_key( $good, [ 'bundleDirectory' => 1, 'manifest' => 1, 'manifest_sha256' => 1 ] ), JSON_UNESCAPED_SLASHES ), "\n";
// The resolved path, for each spelling of the argument.
var_dump( $good['bundleDirectory'] === realpath( $directory ), Artifacts::verify( "$directory/../" . basename( $directory ) )['bundleDirectory'] === realpath( $directory ) );
var_dump( $good['manifest_sha256'] === hash_file( 'sha256', "$directory/manifest.json" ), $good['manifest']['id'] === $id );

$tampered = [
	'patch changed'   => static fn() => file_put_contents( "$directory/files/patch.diff", '+evil', FILE_APPEND ),
	'file added'      => static fn() => file_put_contents( "$directory/files/more.txt", 'x' ),
	'file removed'    => static fn() => unlink( "$directory/files/test-results.json" ),
	'link'            => static function () use ( $directory ): void {
		unlink( "$directory/files/test-results.json" );
		symlink( '/etc/passwd', "$directory/files/test-results.json" );
	},
	'second name'     => static fn() => link( "$directory/files/patch.diff", "$directory/../wpcb-second-" . getmypid() ) && register_shutdown_function( 'remove', "$directory/../wpcb-second-" . getmypid() ),
	'manifest broken' => static fn() => file_put_contents( "$directory/manifest.json", '{' ),
	'no manifest'     => static fn() => unlink( "$directory/manifest.json" ),
	'duplicate key'   => static fn() => file_put_contents( "$directory/manifest.json", preg_replace( '/\{/', '{"id":"x",', file_get_contents( "$directory/manifest.json" ), 1 ) ),
];
foreach ( $tampered as $label => $tamper ) {
	remove( $directory );
	mkdir( $directory );
	write_bundle( $directory, $run_id );
	$tamper();
	$answer = Artifacts::verify( $directory );
	$codes  = array_unique( array_column( $answer['violations'], 'code' ) );
	sort( $codes );
	echo $label, ': ', json_encode( $answer['valid'] ), ' ', implode( ' ', $codes ), "\n";
}
caught( static fn() => Artifacts::verify( '/nonexistent' ) );
caught( static fn() => Artifacts::verify( __FILE__ ) );
caught( static fn() => Artifacts::verify( "/tmp\xff" ) );
?>
--EXPECT--
{"a":"\u0001\"/","b":[0.1,1e+21,0],"😀":2,"！":1}
InvalidInputException wp_codebox_input_invalid
bool(true)
string(6) "sha256"
array(2) {
  [0]=>
  string(24) "files/changed-files.json"
  [1]=>
  string(16) "files/patch.diff"
}
bool(true)
IntegrityException wp_codebox_artifact_verification_failed
IntegrityException wp_codebox_artifact_verification_failed
NotFoundException wp_codebox_artifact_not_found
{"schema":"wp-codebox/artifact-bundle-verification/v1","valid":true,"violations":[],"signature":{"status":"unsigned"}}
bool(true)
bool(true)
bool(true)
bool(true)
patch changed: false digest-mismatch file-hash-mismatch
file added: false orphaned-file
file removed: false file-hash-mismatch missing-file
link: false file-hash-mismatch missing-file
second name: false hardlink
manifest broken: false malformed-manifest
no manifest: false missing-manifest
duplicate key: false malformed-manifest
NotFoundException wp_codebox_artifact_not_found
NotFoundException wp_codebox_artifact_not_found
InvalidInputException wp_codebox_input_invalid

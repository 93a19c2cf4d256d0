--TEST--
Bundles can be exported and imported from every source, and hostile sources are refused
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
require __DIR__ . '/fixtures/bundle.php';

$state = sys_get_temp_dir() . '/wpcb-state-' . getmypid();
$work  = sys_get_temp_dir() . '/wpcb-work-' . getmypid();
mkdir( $state, 0700 );
mkdir( $work, 0700 );
register_shutdown_function( static function () use ( $state, $work ): void { remove( $state ); remove( $work ); } );
$root = 0 === fileowner( $state );
$root && chown( $state, 65534 ) && chgrp( $state, 65534 );
clearstatcache();
$owner = fileowner( $state );

$in = static function ( string $code ) use ( $state, $work ): string {
	[ $status, $output, $errors ] = in_child(
		'require ' . var_export( __DIR__ . '/fixtures/bundle.php', true ) . '; use WPCodebox\Native\Artifacts; $state = ' . var_export( $state, true ) . '; $work = ' . var_export( $work, true ) . ';
		const RUN = "run_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; $bundle = "$state/sites/site-1/artifacts/" . RUN; ' . $code,
		[ 'wp_codebox.state_dir' => $state ]
	);
	return $output . $errors . ( 0 === $status ? '' : "exit $status\n" );
};

echo $in(
	'mkdir( $bundle, 0755, true );
	$id = write_bundle( $bundle, RUN );
	0 === fileowner( "/proc/self" ) && exec( "chown -R --reference=" . escapeshellarg( $state ) . " " . escapeshellarg( "$state/sites" ) );
	$made = Artifacts::export( "site-1", RUN, "$work/a.tar" );
	echo implode( " ", array_keys( $made ) ), "\n";
	var_dump( $made["bytes"] === filesize( "$work/a.tar" ), $made["sha256"] === hash_file( "sha256", "$work/a.tar" ), decoct( fileperms( "$work/a.tar" ) & 0777 ) );
	var_dump( Artifacts::archive( "site-1", RUN, 1 << 24 ) === file_get_contents( "$work/a.tar" ) );
	caught( static fn() => Artifacts::archive( "site-1", RUN, 1000 ) );
	caught( static fn() => Artifacts::archive( "site-1", RUN, -1 ) );
	caught( static fn() => Artifacts::export( "site-1", RUN, "$work/a.tar" ) );
	caught( static fn() => Artifacts::export( "site-1", RUN, "$work/none/a.tar" ) );
	caught( static fn() => Artifacts::export( "site-1", RUN, "relative.tar" ) );
	caught( static fn() => Artifacts::export( "site-1", "run_b", "$work/b.tar" ) );
	echo count( glob( "$work/*" ) ), "\n";

	$files = Artifacts::files( "site-1", RUN );
	foreach ( $files as $file ) {
		echo $file["path"], " ", $file["status"], " ", $file["insertions"], " ", strlen( $file["patch"] ), "\n";
	}
	var_dump( implode( "", array_column( $files, "patch" ) ) === PATCH );'
);

echo "import\n";
echo $in(
	'$row = static function ( array $got ): void { echo $got["status"], " ", $got["run_id"], " ", $got["verification"]["valid"] ? "valid" : "invalid", " ", $got["verification"]["signature"]["status"], "\n"; };
	exec( "cp -r " . escapeshellarg( $bundle ) . " " . escapeshellarg( "$work/dir" ) );
	$row( Artifacts::import( "site-2", "$work/a.tar" ) );
	$row( Artifacts::import( "site-2", "$work/dir" ) );
	$row( Artifacts::import( "site-2", "$work/dir/manifest.json" ) );
	$row( Artifacts::importArchive( "site-2", file_get_contents( "$work/a.tar" ) ) );
	$row( Artifacts::importArchive( "site-3", gzencode( file_get_contents( "$work/a.tar" ) ), [ "allowed_roots" => [] ] ) );
	$got = Artifacts::get( "site-2", RUN );
	$good = [ "expected_artifact_id" => $got["artifact_id"], "expected_content_digest" => $got["manifest"]["contentDigest"]["value"], "allowed_roots" => [ "/nowhere", $work ] ];
	$row( Artifacts::import( "site-4", "$work/a.tar", $good ) );
	caught( static fn() => Artifacts::import( "site-5", "$work/a.tar", [ "expected_artifact_id" => "artifact-bundle-sha256-" . str_repeat( "0", 64 ) ] ) );
	caught( static fn() => Artifacts::import( "site-5", "$work/a.tar", [ "expected_content_digest" => str_repeat( "0", 64 ) ] ) );
	caught( static fn() => Artifacts::import( "site-5", "$work/a.tar", [ "allowed_roots" => [ "$work/dir" ] ] ) );
	caught( static fn() => Artifacts::import( "site-5", "$work/a.tar", [ "allowed_roots" => [] ] ) );
	symlink( "$work/a.tar", "$work/dir/link.tar" );
	caught( static fn() => Artifacts::import( "site-5", "$work/dir/link.tar", [ "allowed_roots" => [ "$work/dir" ] ] ) );
	unlink( "$work/dir/link.tar" );
	caught( static fn() => Artifacts::import( "site-5", $bundle ) );
	caught( static fn() => Artifacts::import( "site-5", "" ) );
	caught( static fn() => Artifacts::import( "site-5", "$work/none" ) );
	caught( static fn() => Artifacts::import( "site-5", "relative" ) );
	caught( static fn() => Artifacts::import( "site-5", "/dev/null" ) );
	caught( static fn() => Artifacts::import( "site-5", "$work/a.tar", [ "into" => "x" ] ) );
	caught( static fn() => Artifacts::importArchive( "site-5", "no archive" ) );
	exec( "mkfifo " . escapeshellarg( "$work/fifo" ) );
	caught( static fn() => Artifacts::import( "site-5", "$work/fifo" ) );
	file_put_contents( "$work/dir/files/patch.diff", "x", FILE_APPEND );
	caught( static fn() => Artifacts::import( "site-5", "$work/dir" ) );
	echo json_encode( Artifacts::list( "site-5" ) ), " ", count( scandir( "$state/sites/site-5/artifacts" ) ) - 2, "\n";'
);
$files = new RecursiveIteratorIterator( new RecursiveDirectoryIterator( $state, FilesystemIterator::SKIP_DOTS ), RecursiveIteratorIterator::SELF_FIRST );
foreach ( $files as $file ) {
	if ( $file->getOwner() !== $owner ) {
		echo 'owned by ', $file->getOwner(), ': ', $file->getPathname(), "\n";
	}
}
?>
--EXPECT--
path bytes sha256 artifact_id run_id
bool(true)
bool(true)
string(3) "600"
bool(true)
InvalidInputException wp_codebox_artifact_too_large
InvalidInputException wp_codebox_input_invalid
InternalException wp_codebox_artifact_export_failed
InternalException wp_codebox_artifact_export_failed
InvalidInputException wp_codebox_input_invalid
NotFoundException wp_codebox_artifact_not_found
1
/workspace/demo/a.txt modified 1 169
/workspace/demo/b.txt added 1 184
bool(true)
import
created run_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa valid unsigned
existing run_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa valid unsigned
existing run_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa valid unsigned
existing run_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa valid unsigned
created run_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa valid unsigned
created run_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa valid unsigned
ConflictException wp_codebox_artifact_import_id_mismatch
ConflictException wp_codebox_artifact_import_digest_mismatch
DeniedException wp_codebox_artifact_outside_root
DeniedException wp_codebox_artifact_outside_root
DeniedException wp_codebox_artifact_outside_root
DeniedException wp_codebox_artifact_outside_root
InvalidInputException wp_codebox_artifact_import_source_missing
InvalidInputException wp_codebox_artifact_import_source_missing
InvalidInputException wp_codebox_artifact_import_source_missing
IntegrityException wp_codebox_artifact_import_source_invalid
InvalidInputException wp_codebox_input_invalid
IntegrityException wp_codebox_artifact_import_source_invalid
IntegrityException wp_codebox_artifact_import_source_invalid
IntegrityException wp_codebox_artifact_import_source_invalid
[] 0

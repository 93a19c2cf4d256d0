--TEST--
Artifacts reads and changes bundles and audit log of a site, if the state directory belongs to the user
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
require __DIR__ . '/fixtures/bundle.php';

// Settings cannot change after the start of PHP, so the work is done in child processes.
$state = sys_get_temp_dir() . '/wpcb-state-' . getmypid();
mkdir( $state, 0700 );
register_shutdown_function( static fn() => remove( $state ) );
// When root runs the test, another user owns the directory, as on a real site.
$root = 0 === fileowner( $state );
$root && chown( $state, 65534 ) && chgrp( $state, 65534 );
clearstatcache();
$owner = fileowner( $state );

$in = static function ( string $code, ?string $directory = null ) use ( $state ): string {
	[ $status, $output, $errors ] = in_child(
		'require ' . var_export( __DIR__ . '/fixtures/bundle.php', true ) . '; use WPCodebox\Native\Artifacts; $state = ' . var_export( $state, true ) . ';
		const RUN = "run_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; ' . $code,
		[ 'wp_codebox.state_dir' => $directory ?? $state ]
	);
	return $output . $errors . ( 0 === $status ? '' : "exit $status\n" );
};

echo $in( 'echo json_encode( Artifacts::list( "site-1" ) ), "\n"; echo json_encode( Artifacts::auditRecords( "site-1" ) ), "\n";' );

echo $in(
	'$bundle = "$state/sites/site-1/artifacts/" . RUN;
	mkdir( $bundle, 0755, true );
	$id = write_bundle( $bundle, RUN );
	// The count comes from the review file, which this bundle does not have.
	foreach ( Artifacts::list( "site-1" ) as $row ) {
		echo implode( " ", array_keys( $row ) ), "\n";
		var_dump( $row["artifact_id"] === $id, $row["run_id"] === RUN, $row["directory"] === $bundle, $row["changed_files"], $row["valid_manifest"] );
	}
	foreach ( [ $id, RUN, substr( $id, 0, 40 ), "run_aaaa" ] as $reference ) {
		$got = Artifacts::get( "site-1", $reference );
		var_dump( $got["run_id"] === RUN );
	}
	echo implode( " ", array_keys( $got ) ), "\n";
	echo $got["manifest"]["id"] === $id ? "manifest\n" : "other\n", count( $got["changed_files"]["files"] ), "\n";
	caught( static fn() => Artifacts::get( "site-1", "run_b" ) );
	caught( static fn() => Artifacts::get( "site-1", "" ) );
	caught( static fn() => Artifacts::get( "site-2", RUN ) );
	caught( static fn() => Artifacts::get( "../site-1", RUN ) );
	caught( static fn() => Artifacts::get( "site-1", "../../x" ) );

	var_dump( Artifacts::diff( "site-1", RUN ) === PATCH );
	$part = Artifacts::diff( "site-1", RUN, [ "/workspace/demo/b.txt" ] );
	var_dump( str_contains( PATCH, $part ), substr_count( $part, "diff --git" ) );
	caught( static fn() => Artifacts::diff( "site-1", RUN, [ "/workspace/demo/c.txt" ] ) );

	// An unsigned bundle can be read and not applied.
	$ask = static fn( array $with ) => Artifacts::preflight( "site-1", RUN, $with + [ "approved_files" => [ "/workspace/demo/a.txt" ] ] );
	caught( static fn() => $ask( [] ) );
	caught( static fn() => $ask( [ "manifest_sha256" => "short" ] ) );
	caught( static fn() => $ask( [ "targets" => [ "/workspace/demo" => "relative" ] ] ) );
	caught( static fn() => $ask( [ "patch" => "x" ] ) );
	file_put_contents( "$bundle/files/patch.diff", "x", FILE_APPEND );
	caught( static fn() => $ask( [] ) );
	caught( static fn() => Artifacts::diff( "site-1", RUN ) );

	// A second bundle with the same artifact id: the artifact id is ambiguous, the run id is not.
	$other = str_replace( "run_a", "run_b", $bundle );
	mkdir( $other );
	write_bundle( $other, "run_b" . substr( RUN, 5 ) );
	echo count( Artifacts::list( "site-1" ) ), "\n";
	$e = caught( static fn() => Artifacts::get( "site-1", $id ) );
	echo json_encode( Artifacts::discard( "site-1", RUN ) === [ "artifact_id" => $id, "run_id" => RUN, "discarded" => true ] ), "\n";
	var_dump( is_dir( $bundle ), is_dir( $other ) );
	caught( static fn() => Artifacts::discard( "site-1", RUN ) );
	file_put_contents( "$other/manifest.json", "{" );
	echo json_encode( Artifacts::discard( "site-1", "run_b" ) ), "\n";
	echo json_encode( Artifacts::list( "site-1" ) ), "\n";'
);

echo $in(
	'$first = Artifacts::audit( "site-1", [ "action" => "approve", "token" => "ghp_0123456789abcdefghijklmnop", "note" => "see ghp_0123456789abcdefghijklmnop" ] )["record"];
	echo implode( " ", array_intersect( [ "action", "seq", "previous", "hash", "timestamp" ], array_keys( $first ) ) ), "\n";
	echo $first["seq"], " ", preg_match( "/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/", $first["timestamp"] ), " ", abs( strtotime( $first["timestamp"] ) - time() ) < 60 ? "now" : "not now", "\n";
	[ "record" => $second, "anchor" => $anchor ] = Artifacts::audit( "site-1", [ "action" => "apply" ] );
	echo implode( " ", array_keys( $anchor ) ), " ", $anchor["seq"], "\n";
	var_dump( $anchor["head"] === $second["hash"], $second["previous"] === $first["hash"] );
	$log = Artifacts::auditRecords( "site-1" );
	var_dump( $log["chain"]["valid"], count( $log["records"] ), isset( $log["chain"]["broken_at"] ), $log["records"][1] === $second );
	var_dump( count( Artifacts::auditRecords( "site-1", -1 )["records"] ) );
	caught( static fn() => Artifacts::auditRecords( "site-1", 0, -1 ) );
	$about = static fn( string $site, array $runs ): array => Artifacts::auditOf( $site, $runs );
	echo json_encode( [ $about( "site-1", [ "run_1" ] ), $about( "site-2", [ "run_1" ] ) ] ), "\n";
	caught( static fn() => $about( "site-1", [ 1 ] ) );
	Artifacts::audit( "site-2", [ "action" => "apply", "run_id" => "run_1" ] );
	echo count( $about( "site-2", [ "run_0", "run_1" ] )["records"] ), count( $about( "site-2", [ "run_2" ] )["records"] ), "\n";
	$kept   = [ $anchor["key_id"] => $anchor ];
	$judged = static function ( array $kept ): void {
		$log = Artifacts::auditRecords( "site-1", 0, 9, $kept );
		echo $log["total"], " ", $log["chain"]["problem"] ?? "valid", "\n";
	};
	$judged( $kept );
	$files = [ "$state/sites/site-1/audit.jsonl", "$state/anchors/site-1.json" ];
	foreach ( $files as $file ) { rename( $file, "$file.aside" ); }
	$judged( [] );
	$judged( $kept );
	$judged( [ $anchor["key_id"] => [ "seq" => 0 ] ] );
	foreach ( $files as $file ) { rename( "$file.aside", $file ); }
	file_put_contents( $files[0], file( $files[0] )[0] );
	$judged( [] );
	file_put_contents( $files[0], json_encode( $second, JSON_UNESCAPED_SLASHES ) . "\n", FILE_APPEND );
	$judged( [] );
	$files = new RecursiveIteratorIterator( new RecursiveDirectoryIterator( $state, FilesystemIterator::SKIP_DOTS ), RecursiveIteratorIterator::SELF_FIRST );
	$found = false;
	foreach ( $files as $file ) {
		if ( $file->getOwner() !== ' . $owner . ' ) { echo "owned by ", $file->getOwner(), ": ", $file->getFilename(), "\n"; }
		if ( $file->isFile() && str_contains( file_get_contents( $file->getPathname() ), "approve" ) ) {
			$found = true;
			$text  = file_get_contents( $file->getPathname() );
			var_dump( str_contains( $text, "ghp_" ) );
			file_put_contents( $file->getPathname(), str_replace( "approve", "discard", $text ) );
		}
	}
	var_dump( $found );
	$log = Artifacts::auditRecords( "site-1" );
	var_dump( $log["chain"]["valid"], $log["chain"]["broken_at"] );'
);

echo "a state directory of another user\n";
$list = 'caught( static fn() => Artifacts::list( "site-1" ) );';
echo $in( $list, "$state/none" );
chmod( $state, 0770 );
echo $in( $list );
chmod( $state, 0777 );
echo $in( $list );
chmod( $state, 0755 );
echo $in( $list );
chmod( $state, 0750 );
echo $in( $list );
chmod( $state, 0700 );
echo $in( $list );
symlink( $state, "$state-link" );
echo $in( $list, "$state-link" );
unlink( "$state-link" );
?>
--EXPECT--
[]
{"records":[],"total":0,"chain":{"valid":true,"head":"0000000000000000000000000000000000000000000000000000000000000000"}}
artifact_id run_id created_at outcome summary changed_files valid_manifest directory
bool(true)
bool(true)
bool(true)
int(0)
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
artifact_id run_id directory created_at manifest metadata changed_files review test_results
manifest
2
NotFoundException wp_codebox_artifact_not_found
InvalidInputException wp_codebox_artifact_id_missing
NotFoundException wp_codebox_artifact_not_found
InvalidInputException wp_codebox_input_invalid
NotFoundException wp_codebox_artifact_not_found
bool(true)
bool(true)
int(1)
InvalidInputException wp_codebox_approved_files_invalid
IntegrityException wp_codebox_artifact_untrusted
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
InvalidInputException wp_codebox_input_invalid
IntegrityException wp_codebox_artifact_verification_failed
IntegrityException wp_codebox_artifact_verification_failed
2
ConflictException wp_codebox_artifact_ambiguous
true
bool(false)
bool(true)
NotFoundException wp_codebox_artifact_not_found
{"run_id":"run_baaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","discarded":true}
[]
action seq previous hash timestamp
1 1 now
site seq head key_id signature 2
bool(true)
bool(true)
bool(true)
int(2)
bool(false)
bool(true)
int(1)
InvalidInputException wp_codebox_input_invalid
[{"records":[],"complete":true,"since":null},{"records":[],"complete":true,"since":null}]
InvalidInputException wp_codebox_input_invalid
10
2 valid
0 valid
0 2 records were removed from the end of the audit log
0 the anchor (number and hash of the last record) of the audit log has no valid signature of this host
1 1 record was removed from the end of the audit log
2 valid
bool(false)
bool(true)
bool(false)
int(1)
a state directory of another user
UnavailableException wp_codebox_state_dir_invalid
UnavailableException wp_codebox_state_dir_invalid
UnavailableException wp_codebox_state_dir_invalid
UnavailableException wp_codebox_state_dir_invalid
UnavailableException wp_codebox_state_dir_invalid
no exception
UnavailableException wp_codebox_state_dir_invalid

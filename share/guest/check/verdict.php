<?php
/**
 * Prints what `record.php` saw of the test runners and linters of a check, as one JSON document, and deletes the records.
 *
 *     php verdict.php DIRECTORY
 *
 * {"tests": {total, passed, failed, skipped, unknown} or null, "reason": why the check cannot pass, or null}. `tests` is null
 * if the check has not run PHPUnit.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

$library = dirname( __DIR__ ) . '/commands/lib';
require $library . '/entry.php';
require $library . '/phpunit-log.php';

/**
 * Reads the records of a check.
 *
 * @param string $directory Directory of the records.
 * @return array{tests: ?array<string,int>, reason: ?string}
 */
function check_verdict( string $directory ): array {
	$log    = null;
	$reason = null;
	foreach ( glob( "$directory/*.json" ) ?: array() as $file ) {
		$base = substr( $file, 0, -strlen( '.json' ) );
		$row  = json_decode( (string) file_get_contents( $file ), true );
		$tool = is_array( $row ) ? $row['tool'] ?? null : null;
		if ( 'phpcs' === $tool && ! is_file( "$base.files" ) ) {
			$reason ??= 'phpcs checked 0 files: name files or directories in its configuration or on its command line';
		} elseif ( 'phpunit' === $tool ) {
			$log ??= new Phpunit_Log( (string) ( $row['directory'] ?? '' ) );
			$log->read( "$base.xml", "$base.progress" );
		}
	}
	return array(
		'tests'  => $log?->results()['summary'],
		'reason' => $reason ?? $log?->why_failed( null ),
	);
}

$directory = (string) ( $argv[1] ?? '' );
echo json_encode( check_verdict( $directory ), JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE ), "\n";
array_map( unlink( ... ), glob( "$directory/*" ) ?: array() );
is_dir( $directory ) && rmdir( $directory );

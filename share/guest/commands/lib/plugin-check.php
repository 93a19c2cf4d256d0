<?php
/**
 * Runs the plugin Plugin Check through WP-CLI.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/processes.php';

/** Maximum number of reported findings. */
const PLUGIN_CHECK_FINDINGS = 1000;

/** Constant in Plugin Check's own object-cache.php, by which that file is recognized. */
const PLUGIN_CHECK_DROP_IN = 'WP_PLUGIN_CHECK_OBJECT_CACHE_DROPIN_VERSION';

/**
 * Runs the requested checks on a plugin and reports the findings.
 *
 * @param Arguments $arguments Arguments of the guest command.
 * @return array<string,mixed> Result document.
 */
function plugin_check( Arguments $arguments ): array {
	$slug = $arguments->required( 'plugin-slug' );
	if ( 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/D', $slug ) || ! is_dir( WP_PLUGIN_DIR . '/' . $slug ) ) {
		throw Refusal::input( sprintf( 'there is no plugin %s below wp-content/plugins of this guest; mount it there', Arguments::shown( $slug ) ) );
	}
	$checks = $arguments->texts( 'checks' );
	foreach ( $checks as $check ) {
		if ( 1 !== preg_match( '/^[a-z0-9_-]{1,100}$/D', $check ) ) {
			throw Refusal::input( sprintf( 'checks has %s, which is not the name of a check', Arguments::shown( $check ) ) );
		}
	}
	$tool = array_keys( is_dir( WP_PLUGIN_DIR . '/plugin-check' ) ? get_plugins( '/plugin-check' ) : array() );
	if ( array() === $tool ) {
		throw Refusal::unsupported( 'the plugin Plugin Check is not in this guest, and a guest downloads nothing: mount its directory readonly at /wordpress/wp-content/plugins/plugin-check' );
	}
	$place = WP_PLUGIN_DIR . '/plugin-check';
	if ( ( is_file( "$place/composer.json" ) || is_file( "$place/cli.php" ) ) && ! is_file( "$place/vendor/autoload.php" ) ) {
		throw Refusal::unsupported( 'the mounted Plugin Check is a checkout without its libraries (vendor/): run composer install --no-dev in it, or mount the released plugin' );
	}
	wp_set_current_user( 1 );
	$active = activate_plugin( 'plugin-check/' . $tool[0] );
	if ( is_wp_error( $active ) && 'unexpected_output' !== $active->get_error_code() ) {
		throw Refusal::failed( 'WordPress could not activate Plugin Check: ' . cut( wp_strip_all_tags( $active->get_error_message() ), 500 ) );
	}
	// Plugin Check recognizes its command only as the first two arguments. Without --path at the end, the guest's wp
	// would insert its own --path before them.
	$root    = (string) getenv( 'CODEBOX_ROOT' );
	$command = array( 'wp', 'plugin', 'check', $slug, '--format=json', "--path=$root/wordpress" );
	if ( $checks ) {
		$command[] = '--checks=' . implode( ',', $checks );
	}
	// Runtime checks must be prepared before WordPress loads plugins, including Plugin Check.
	$early = is_file( "$place/cli.php" );
	if ( $early ) {
		$command[] = "--require=$place/cli.php";
	}
	$drop_in = WP_CONTENT_DIR . '/object-cache.php';
	$foreign = is_file( $drop_in ) && ! plugin_check_owns( $drop_in );
	list( 'exitCode' => $status, 'stdout' => $stdout, 'stderr' => $stderr ) = process( $command, '', array(), 4 << 20 );
	// Plugin Check removes its object-cache.php at the end, but not after an error or a signal.
	if ( is_file( $drop_in ) && plugin_check_owns( $drop_in ) ) {
		unlink( $drop_in );
	}

	$document = array(
		'schema'  => 'wp-codebox/plugin-check/v1',
		'status'  => 'failed',
		'plugin'  => $slug,
		'tool'    => array(
			'name'    => 'plugin-check',
			'version' => (string) ( get_plugins( '/plugin-check' )[ $tool[0] ]['Version'] ?? '' ),
		),
		'checks'  => $checks,
		'runtime' => plugin_check_runtime( $stdout, $slug, $checks, $early, $foreign ),
	);
	write_artifact( "plugin-check-$slug.raw.txt", mb_scrub( substr( $stdout, 0, 1 << 20 ), 'UTF-8' ), 'plugin-check', 'text/plain' );
	$findings = plugin_check_findings( $stdout );
	if ( 0 !== $status || null === $findings ) {
		$said = cut( trim( '' !== trim( $stderr ) ? $stderr : $stdout ), 500 );
		// Plugin Check calls a skipped check unknown, so the error also says why checks were skipped.
		$left = $document['runtime']['ran'] ? '' : sprintf( ' (checks that run the plugin were left out: %s)', $document['runtime']['reason'] );
		throw Refusal::failed( sprintf( 'Plugin Check did not finish (status %d): %s%s', $status, $said, $left ), $document );
	}
	$errors    = count( array_filter( $findings, static fn ( array $finding ): bool => 'ERROR' === $finding['type'] ) );
	$document += array(
		'summary'  => array(
			'errors'   => $errors,
			'warnings' => count( $findings ) - $errors,
		),
		'findings'  => array_slice( $findings, 0, PLUGIN_CHECK_FINDINGS ),
		'truncated' => count( $findings ) > PLUGIN_CHECK_FINDINGS,
	);
	if ( $errors > 0 ) {
		throw Refusal::failed( "Plugin Check found $errors errors", $document );
	}
	$document['status'] = 'passed';
	return $document;
}

/**
 * Checks whether an object-cache.php is the one that Plugin Check installs.
 *
 * @param string $file Path of the file.
 */
function plugin_check_owns( string $file ): bool {
	return str_contains( (string) file_get_contents( $file ), PLUGIN_CHECK_DROP_IN );
}

/**
 * Reports whether runtime checks ran, because Plugin Check does not say that it skipped them.
 *
 * @param string       $stdout  Output of Plugin Check.
 * @param string       $slug    Slug of the plugin.
 * @param list<string> $checks  Requested checks.
 * @param bool         $early   Whether Plugin Check could prepare runtime checks.
 * @param bool         $foreign Whether an object-cache.php that is not Plugin Check's is installed.
 * @return array{ran: bool, reason?: string}
 */
function plugin_check_runtime( string $stdout, string $slug, array $checks, bool $early, bool $foreign ): array {
	if ( 1 === preg_match( '/^Setting up runtime environment\.\s*$/m', $stdout ) ) {
		return array( 'ran' => true );
	}
	$active = array_filter( array_keys( get_plugins( "/$slug" ) ), static fn ( string $file ): bool => is_plugin_active( "$slug/$file" ) );
	$reason = match ( true ) {
		! $early           => 'this version of Plugin Check has no cli.php, which prepares runtime checks before WordPress loads plugins',
		$foreign           => 'wp-content/object-cache.php belongs to something else, and Plugin Check must put its own file there',
		array() === $active => 'the plugin is not active: activate it with wordpress.plugin-setup first',
		array() !== $checks => 'Plugin Check ran none of the named checks at run time',
		default            => 'Plugin Check gave no reason',
	};
	return array(
		'ran'    => false,
		'reason' => $reason,
	);
}

/**
 * Parses findings from the output: blocks of `FILE: name` and a JSON list. Returns null for any other output,
 * because an unknown result is not a success.
 *
 * @param string $stdout Output of Plugin Check.
 * @return ?list<array<string,mixed>>
 */
function plugin_check_findings( string $stdout ): ?array {
	$findings = array();
	$file     = null;
	foreach ( preg_split( '/\R/', $stdout ) ?: array() as $line ) {
		$line = trim( $line );
		if ( 1 === preg_match( '/^FILE: (.+)$/', $line, $found ) ) {
			$file = $found[1];
		} elseif ( str_starts_with( $line, '[' ) ) {
			$rows = json_decode( $line, true );
			if ( null === $file || ! is_array( $rows ) ) {
				return null;
			}
			foreach ( $rows as $row ) {
				if ( ! is_array( $row ) || ! in_array( $row['type'] ?? null, array( 'ERROR', 'WARNING' ), true ) ) {
					return null;
				}
				$findings[] = array(
					'file'    => cut( $file, 500 ),
					'line'    => (int) ( $row['line'] ?? 0 ),
					'column'  => (int) ( $row['column'] ?? 0 ),
					'type'    => $row['type'],
					'code'    => cut( (string) ( $row['code'] ?? '' ), 200 ),
					'message' => cut( (string) ( $row['message'] ?? '' ), 1000 ),
				);
			}
			$file = null;
		} elseif ( '' !== $line && 1 !== preg_match( '/^(?:Success: |Setting up runtime environment\.|Cleaning up runtime environment\.)/', $line ) ) {
			return null;
		}
	}
	return null === $file ? $findings : null;
}

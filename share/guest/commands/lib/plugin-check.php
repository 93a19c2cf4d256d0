<?php
/**
 * Plugin Check, run by WP-CLI.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/** Findings that are told. */
const PLUGIN_CHECK_FINDINGS = 1000;

/**
 * Runs it.
 *
 * @param Arguments $arguments Arguments.
 * @return array<string,mixed> The document.
 */
function plugin_check( Arguments $arguments ): array {
	$slug = $arguments->required( 'plugin-slug' );
	if ( 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/D', $slug ) || ! is_dir( WP_PLUGIN_DIR . '/' . $slug ) ) {
		throw Refusal::input( sprintf( 'there is no plugin %s below wp-content/plugins of this guest; mount it there', Arguments::shown( $slug ) ) );
	}
	$checks = $arguments->texts( 'checks' );
	foreach ( $checks as $check ) {
		if ( 1 !== preg_match( '/^[a-z0-9_-]{1,100}$/D', $check ) ) {
			throw Refusal::input( sprintf( 'checks has %s, which is no name of a check', Arguments::shown( $check ) ) );
		}
	}
	$tool = array_keys( is_dir( WP_PLUGIN_DIR . '/plugin-check' ) ? get_plugins( '/plugin-check' ) : array() );
	if ( array() === $tool ) {
		throw Refusal::unsupported( 'the plugin Plugin Check is not in this guest, and a guest downloads nothing: mount its directory readonly at /wordpress/wp-content/plugins/plugin-check' );
	}
	wp_set_current_user( 1 );
	$active = activate_plugin( 'plugin-check/' . $tool[0] );
	if ( is_wp_error( $active ) && 'unexpected_output' !== $active->get_error_code() ) {
		throw Refusal::failed( 'WordPress could not activate Plugin Check: ' . cut( wp_strip_all_tags( $active->get_error_message() ), 500 ) );
	}
	$command = array( 'wp', 'plugin', 'check', $slug, '--format=json' );
	if ( $checks ) {
		$command[] = '--checks=' . implode( ',', $checks );
	}
	list( $status, $stdout, $stderr ) = run_program( $command );

	$document = array(
		'schema'  => 'wp-codebox/plugin-check/v1',
		'status'  => 'failed',
		'plugin'  => $slug,
		'tool'    => array(
			'name'    => 'plugin-check',
			'version' => (string) ( get_plugins( '/plugin-check' )[ $tool[0] ]['Version'] ?? '' ),
		),
		'checks'  => $checks,
	);
	leave( "plugin-check-$slug.raw.txt", mb_scrub( substr( $stdout, 0, 1 << 20 ), 'UTF-8' ), 'plugin-check', 'text/plain' );
	$findings = plugin_check_findings( $stdout );
	if ( 0 !== $status || null === $findings ) {
		throw Refusal::failed( sprintf( 'Plugin Check did not come to an end (status %d): %s', $status, cut( trim( '' !== trim( $stderr ) ? $stderr : $stdout ), 500 ) ), $document );
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
 * Findings of what was printed: blocks of `FILE: name` and a JSON list. Null when it is something
 * else: then nothing is known, and that is no success.
 *
 * @param string $stdout Output.
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

/**
 * Runs a program of the guest to its end; of what it prints, 4 MiB each are kept.
 *
 * @param list<string> $command Program and arguments.
 * @return array{int, string, string} Status, standard output, standard error.
 */
function run_program( array $command ): array {
	$errors  = (string) tempnam( sys_get_temp_dir(), 'program-' );
	$pipes   = array();
	$process = proc_open( $command, array( array( 'file', '/dev/null', 'r' ), array( 'pipe', 'w' ), array( 'file', $errors, 'w' ) ), $pipes );
	if ( ! is_resource( $process ) ) {
		throw Refusal::failed( $command[0] . ' could not be started' );
	}
	$stdout = '';
	while ( ! feof( $pipes[1] ) ) {
		$piece   = (string) fread( $pipes[1], 65536 );
		$stdout .= substr( $piece, 0, max( 0, ( 4 << 20 ) - strlen( $stdout ) ) );
	}
	fclose( $pipes[1] );
	$status = proc_close( $process );
	$stderr = (string) file_get_contents( $errors, false, null, 0, 4 << 20 );
	unlink( $errors );
	return array( $status, $stdout, $stderr );
}

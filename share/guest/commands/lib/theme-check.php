<?php
/**
 * Runs the checks of the plugin Theme Check in this process.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/** Maximum number of reported findings. */
const THEME_CHECK_FINDINGS = 500;

/**
 * Runs the checks on a theme and reports the findings.
 *
 * @param Arguments $arguments Arguments of the guest command.
 * @return array<string,mixed> Result document.
 */
function theme_check( Arguments $arguments ): array {
	$slug  = $arguments->required( 'theme' );
	$theme = 1 === preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/D', $slug ) ? wp_get_theme( $slug ) : null;
	if ( null === $theme || ! $theme->exists() ) {
		throw Refusal::input( sprintf( 'there is no theme %s; available: %s', Arguments::shown( $slug ), cut( implode( ', ', array_keys( wp_get_themes() ) ), 500 ) ) );
	}
	$directory = WP_PLUGIN_DIR . '/theme-check';
	if ( ! is_file( "$directory/checkbase.php" ) ) {
		throw Refusal::unsupported( 'the plugin Theme Check is not in this guest, and a guest downloads nothing: mount its directory readonly at /wordpress/wp-content/plugins/theme-check' );
	}
	wp_set_current_user( 1 );
	// The checks register themselves in this global list.
	global $themechecks;
	foreach ( array( 'checkbase.php', 'main.php' ) as $file ) {
		if ( is_file( "$directory/$file" ) ) {
			require_once "$directory/$file";
		}
	}
	if ( ! function_exists( 'run_themechecks_against_theme' ) || ! is_array( $themechecks ) || array() === $themechecks ) {
		throw Refusal::unsupported( 'this version of Theme Check has no checks that can be called (run_themechecks_against_theme); mount a newer one' );
	}
	$passed   = (bool) run_themechecks_against_theme( $theme, $slug );
	$findings = array();
	foreach ( $themechecks as $check ) {
		foreach ( is_object( $check ) && method_exists( $check, 'getError' ) ? (array) $check->getError() : array() as $html ) {
			$text = is_string( $html ) ? trim( html_entity_decode( wp_strip_all_tags( $html ), ENT_QUOTES | ENT_HTML5 ) ) : '';
			if ( '' !== $text ) {
				$type              = 1 === preg_match( '/^(REQUIRED|WARNING|RECOMMENDED|INFO)\b[:\s]*/', $text, $found ) ? $found[1] : 'INFO';
				$findings[ $text ] = array(
					'type'    => $type,
					'check'   => get_class( $check ),
					'message' => cut( isset( $found[0] ) ? substr( $text, strlen( $found[0] ) ) : $text, 1000 ),
				);
			}
		}
	}
	$findings = array_values( $findings );
	$rank     = array_flip( array( 'REQUIRED', 'WARNING', 'RECOMMENDED', 'INFO' ) );
	usort( $findings, static fn ( array $a, array $b ): int => array( $rank[ $a['type'] ], $a['check'], $a['message'] ) <=> array( $rank[ $b['type'] ], $b['check'], $b['message'] ) );
	$counts   = array_count_values( array_column( $findings, 'type' ) );
	$document = array(
		'schema'    => 'wp-codebox/theme-check/v1',
		'status'    => 'failed',
		'theme'     => $slug,
		'checks'    => count( $themechecks ),
		'summary'   => array(
			'required'    => $counts['REQUIRED'] ?? 0,
			'warnings'    => $counts['WARNING'] ?? 0,
			'recommended' => $counts['RECOMMENDED'] ?? 0,
			'info'        => $counts['INFO'] ?? 0,
		),
		'findings'  => array_slice( $findings, 0, THEME_CHECK_FINDINGS ),
		'truncated' => count( $findings ) > THEME_CHECK_FINDINGS,
	);
	if ( ! $passed || $document['summary']['required'] > 0 ) {
		throw Refusal::failed( sprintf( 'Theme Check does not pass the theme: %d required corrections', $document['summary']['required'] ), $document );
	}
	$document['status'] = 'passed';
	return $document;
}

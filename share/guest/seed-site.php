<?php
/**
 * Creates the fixture rows that a site seed's scopes select.
 *
 * Request: {name, file, scopes, ids, format, absent}, or `content` with the text of the file. The fixture is JSON: posts, terms, media (rows of fields), options
 * (value by name), users (rows), activePlugins (files), activeTheme (directory). A fixture of another format is
 * converted to this form, or imported, by the function that a plugin adds for the format with the filter
 * `wp_codebox_site_seed_importers`. Rows that no scope selects are skipped. Users are created without their names
 * and email addresses. Prints {name, created, skipped, moved} with a count for each kind, and the new ids of
 * fixture rows; exit status 1 when a row could not be created.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

defined( 'ABSPATH' ) || exit;

require __DIR__ . '/exit-guard.php';
require __DIR__ . '/make-user.php';
require __DIR__ . '/seed-ids.php';
require __DIR__ . '/seed-scope.php';
require __DIR__ . '/seed-switches.php';
require __DIR__ . '/seed-rows.php';

/** Formats that this program reads itself. */
const SEED_FORMATS = array( 'json', 'site-seed-fixture' );

/**
 * Returns the content of a fixture.
 *
 * @param array<string, mixed> $question Request.
 * @param string               $file     Path of the fixture; unused when the request has its content.
 * @return array<string, mixed>
 * @throws \RuntimeException When the fixture cannot be read.
 */
function seed_fixture( array $question, string $file ): array {
	$text = $question['content'] ?? (string) file_get_contents( $file );
	if ( in_array( $question['format'], SEED_FORMATS, true ) ) {
		$fixture = json_decode( $text, true );
	} else {
		$seed = array(
			'name'     => $question['name'],
			'format'   => $question['format'],
			'source'   => $file,
			'contents' => $text,
			'scopes'   => $question['scopes'],
		);

		/**
		 * Filters the functions that import site seeds of further formats.
		 *
		 * @param array<string, callable> $importers Functions by format. Each gets the seed: {name, format, source,
		 *                                           contents, scopes}. It returns the fixture as an array, or
		 *                                           true when it has created the content itself, or a WP_Error.
		 * @param array<string, mixed>    $seed      The seed.
		 */
		$importers = (array) apply_filters( 'wp_codebox_site_seed_importers', array(), $seed );
		$importer  = $importers[ $question['format'] ] ?? null;
		if ( ! is_callable( $importer ) ) {
			throw new \RuntimeException( "no plugin of the guest imports the format {$question['format']}; add one that uses the filter wp_codebox_site_seed_importers, or give the fixture as JSON" );
		}
		$fixture = $importer( $seed );
		$fixture = true === $fixture ? array() : $fixture;
	}
	if ( is_wp_error( $fixture ) ) {
		throw new \RuntimeException( $fixture->get_error_message() );
	}
	if ( ! is_array( $fixture ) ) {
		throw new \RuntimeException( 'the fixture is not a JSON object' );
	}
	return $fixture;
}

wp_set_current_user( 1 );
$codebox_doing = "the seed {$codebox_question['name']} was made";
try {
	$codebox_fixture = seed_fixture( $codebox_question, rtrim( dirname( ABSPATH ), '/' ) . ( $codebox_question['file'] ?? '' ) );
} catch ( \RuntimeException $codebox_thrown ) {
	$codebox_doing = '';
	fwrite( STDERR, "the seed {$codebox_question['name']}: " . $codebox_thrown->getMessage() . "\n" );
	exit( 1 );
}
$codebox_seed = new Seed( $codebox_fixture, $codebox_question['scopes'], Seed_Ids::from( $codebox_question['ids'] ), $codebox_question['absent'] );
$codebox_seed->run();
$codebox_doing = '';

echo wp_json_encode( array( 'name' => $codebox_question['name'] ) + $codebox_seed->answer() ), "\n";
foreach ( $codebox_seed->problems() as $codebox_problem ) {
	fwrite( STDERR, $codebox_problem . "\n" );
}
exit( $codebox_seed->problems() ? 1 : 0 );

<?php
/**
 * Reads content of a WordPress site from its database, without running any code of the site.
 *
 * Standard input: {wordpress, name, scopes}. `wordpress` is the directory of the site. An SQLite database is copied
 * to a temporary directory first: the original is never opened, because SQLite may write next to it.
 * Standard output: {fixture}, in the form of `wp-codebox/site-seed-fixture/v1`, or {error} with one sentence.
 * Users have neither names nor addresses, passwords, sessions or keys; options that can hold a secret and
 * protected posts are refused. wp-config.php is read as text.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Host;

require __DIR__ . '/site-config.php';
require __DIR__ . '/site-database.php';
require __DIR__ . '/site-content.php';

/** Size limit of the fixture, in bytes. */
const FIXTURE_BYTES = 4 * 1024 * 1024;

$question = json_decode( (string) stream_get_contents( STDIN ), true );
try {
	$config  = Site_Config::read( $question['wordpress'] );
	$content = new Site_Content( Site_Database::open( $config ), $question['scopes'] );
	$fixture = array(
		'schema'     => 'wp-codebox/site-seed-fixture/v1',
		'name'       => $question['name'],
		'provenance' => array( 'source' => 'parent_site' ),
	) + $content->fixture();
	$answer  = json_encode( array( 'fixture' => $fixture ), JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR );
	if ( strlen( $answer ) > FIXTURE_BYTES ) {
		throw new \RuntimeException( sprintf( 'the selected content has more than %d MiB; select fewer records', FIXTURE_BYTES / 1024 / 1024 ) );
	}
} catch ( \RuntimeException | \PDOException | \JsonException $thrown ) {
	$answer = json_encode( array( 'error' => preg_replace( '/\s+/', ' ', substr( $thrown->getMessage(), 0, 300 ) ) ), JSON_INVALID_UTF8_SUBSTITUTE );
}
echo $answer;

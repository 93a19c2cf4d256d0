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

$question = json_decode( (string) stream_get_contents( STDIN ), true );
try {
	$config  = Site_Config::read( $question['wordpress'] );
	$content = new Site_Content( Site_Database::open( $config ), $question['scopes'] );
	$answer  = '{"fixture":' . $content->json( $question['name'] ) . '}';
} catch ( \RuntimeException | \PDOException | \JsonException $thrown ) {
	$answer = json_encode( array( 'error' => preg_replace( '/\s+/', ' ', substr( $thrown->getMessage(), 0, 300 ) ) ), JSON_INVALID_UTF8_SUBSTITUTE );
}
echo $answer;

<?php
/**
 * Creates content of the parent site that the supervisor passes on standard input.
 *
 * Request: {name, scopes, content, format, ids, absent, answer}, with the fixture as JSON text in `content`. Output
 * and exit status are those of seed-site.php.
 *
 * @package WPCodebox
 */

require __DIR__ . '/answer.php';

$codebox_question = WPCodebox\Guest\question();
WPCodebox\Guest\pretend_request();
require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';
require __DIR__ . '/seed-site.php';

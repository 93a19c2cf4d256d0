<?php
/**
 * Imports agent bundles (packaged agent definitions) with the importer that a plugin in the guest provides.
 *
 * Request: {bundles: [{source|bundle, slug, on_conflict, owner_id, token_env, import_principal}], answer}.
 * Reply: {status: imported|failed|unavailable, message}. The importer returns a list with one row per bundle,
 * each with `success`.
 *
 * @package WPCodebox
 */

require __DIR__ . '/answer.php';
require __DIR__ . '/agent-bundles.php';

$codebox_question = WPCodebox\Guest\question();
WPCodebox\Guest\pretend_request();
require rtrim( dirname( __DIR__, 3 ), '/' ) . '/wordpress/wp-load.php';
wp_set_current_user( 1 );
WPCodebox\Guest\answer( $codebox_question, codebox_import( codebox_bundles( $codebox_question['bundles'] ) ) );
